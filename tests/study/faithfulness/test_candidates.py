"""The candidates that options make, and the options that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from pairlens import InputError
from pairlens.study.faithfulness import make_candidates


def test_default_candidates_have_different_names_and_cover_methods_and_rivals(lens):
    names = [candidate.name for candidate in make_candidates(lens)]
    assert len(names) == len(set(names))
    for name in ("integrated-jacobian/0/project", "integrated-jacobian/1/ignore", "integrated-jacobian/2/project"):
        assert name in names
    assert {"banzhaf", "banzhaf/64", "banzhaf/compounds", "shapley/keep", "shapley/64/project"} < set(names)
    assert {"fade/keep", "occlusion", "least-squares/64", "faith-shap", "word-cosine", "bilrp", "random"} < set(names)


def test_candidates_have_the_options_given(lens):
    jacobians = make_candidates(lens, methods=["integrated-jacobian"], layers=[-1], reference_terms=["keep"])
    assert [candidate.name for candidate in jacobians] == ["integrated-jacobian/-1/keep"]
    assert make_candidates(lens, methods=["fade"], paths=[4])[-1].name == "fade/4 paths/project"
    budgets = make_candidates(lens, methods=["shapley"], passes=[16])
    assert [candidate.name for candidate in budgets] == [
        "shapley/keep",
        "shapley/project",
        "shapley/16/keep",
        "shapley/16/project",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["shapely"]}, "Did you mean 'shapley'"),
        ({"layers": [9]}, "layer 9 does not exist: this model has the layers 0 to 3"),
        ({"reference_terms": ["drop"]}, "unknown reference_terms 'drop'"),
        ({"passes": [0]}, "passes must be a whole number of at least 4"),
        ({"paths": [1]}, "paths must be a whole number of at least 2"),
        ({"methods": []}, "nothing to judge"),
    ],
)
def test_wrong_options_are_refused(lens, options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        make_candidates(lens, **options)


def test_settings_of_a_candidate_name_its_method_and_options(lens):
    candidates = {
        candidate.name: candidate for candidate in make_candidates(lens, methods=["output", "bilrp"], tol=0.1)
    }
    assert not candidates["output/project"].rival
    assert candidates["output/project"].settings() == {
        "family": "output",
        "method": "IntegratedJacobian(layer=-1, reference='padding')",
        "reference_terms": "project",
        "tol": 0.1,
    }
    assert candidates["bilrp"].rival
    assert candidates["bilrp"].settings() == {"family": "bilrp", "method": "bilrp"}


def test_candidates_that_differ_in_reference_terms_alone_share_a_decomposition(lens):
    keys = {one.name: one.decomposition_key("cosine") for one in make_candidates(lens, layers=[0])}
    assert keys["integrated-jacobian/0/keep"] == keys["integrated-jacobian/0/project"]
    assert keys["integrated-jacobian/0/keep"] != keys["integrated-jacobian/0/ignore"]
    assert keys["banzhaf"] != keys["banzhaf/64"]
    assert keys["random"] != keys["bilrp"]
