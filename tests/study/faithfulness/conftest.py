"""Results of the judge that several files of tests look at."""

from __future__ import annotations

import numpy as np
import pytest

from judging import FAST_METHODS, PAIRS, given_matrix
from pairlens.study.faithfulness import FaithfulnessResult, JudgeSettings, judge, make_candidates
from pairlens.study.faithfulness.ground_truth import ground_truth


@pytest.fixture(scope="session")
def result(lens) -> FaithfulnessResult:
    """Fast candidates on all of `PAIRS`; the first two pairs have the expensive measures too."""
    candidates = make_candidates(lens, methods=[*FAST_METHODS, "integrated-jacobian"], layers=[2], passes=[32])
    return judge(lens, PAIRS, candidates, settings=JudgeSettings(checks=2), progress=False)


@pytest.fixture(scope="session")
def known_result(lens) -> FaithfulnessResult:
    """The candidates "perfect" (the Shapley values themselves), "negated" (minus these values) and "noise"."""

    def true_matrix(lens, a, b):
        return ground_truth(lens, a, b, "cosine").matrix

    generator = np.random.default_rng(0)
    candidates = [
        given_matrix("perfect", true_matrix),
        given_matrix("negated", lambda lens, a, b: -true_matrix(lens, a, b)),
        given_matrix("noise", lambda _, a, b: generator.standard_normal((a.count, b.count))),
    ]
    return judge(lens, PAIRS * 4, candidates, settings=JudgeSettings(checks=0), progress=False)
