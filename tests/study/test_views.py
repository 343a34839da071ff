"""The views that a study explains its pairs in."""

from __future__ import annotations

import zoo
from pairlens import Lens
from pairlens.study.views import Choice
from studies import adjust


def test_default_views_are_the_librarys_default_and_the_papers_settings(lens):
    assert [view.label for view in Choice().standard(lens)] == ["banzhaf, keep", "layer 2, ignore"]
    assert [view.label for view in Choice().sweep(lens)][:2] == ["layer 0, project", "layer 1, project"]
    assert len(Choice().sweep(lens)) == 2 * (lens.layers + 1)


def test_a_choice_of_the_user_replaces_the_default_views(lens):
    def labels(**asked):
        return [view.label for view in Choice(**asked).standard(lens)]

    assert labels(method="occlusion") == ["occlusion, keep"]
    assert labels(layers=(-1,)) == [f"layer {lens.layers}, project"]
    assert labels(layers=(-1, 0, 0)) == ["layer 0, project", f"layer {lens.layers}, project"]
    assert labels(reference_terms="project") == ["banzhaf, project"]
    assert labels(method="integrated-jacobian", reference_terms="shift") == ["layer 0, shift"]
    assert [view.layer for view in Choice(layers=(1,), reference_terms="ignore").sweep(lens)] == [1]


def test_views_of_static_embeddings_and_adjusted_models():
    assert [view.label for view in Choice().standard(Lens(zoo.static()))] == ["layer 0, ignore"]
    adjusted = Lens(adjust(zoo.encoder("bert")))
    assert {view.reference_terms for view in Choice().sweep(adjusted)} == {"shift"}
    assert [view.label for view in Choice().standard(adjusted)] == ["layer 0, shift", "layer 2, shift"]
