"""Deletion and insertion curves: what their areas are compared with, and how they end."""

from __future__ import annotations

import numpy as np
import pytest

from judging import PAIRS, deletable_texts
from pairlens.study.faithfulness.curves import PairCurves
from pairlens.study.faithfulness.rivals import explain_by_rival
from pairlens.study.faithfulness.score_model import ScoreModel


@pytest.fixture(scope="module")
def texts(lens):
    return deletable_texts(lens, *PAIRS[0], level="word")


@pytest.fixture(scope="module")
def models(lens, texts):
    """A good explanation, and the rival named "random"."""
    (a, b), (text_a, text_b) = PAIRS[0], texts
    return {
        "occlusion": ScoreModel(lens.explain(a, b, method="occlusion", level="word"), text_a, text_b),
        "random": ScoreModel(explain_by_rival("random", lens, a, b, "cosine", "word"), text_a, text_b),
    }


def curves(texts, seed=0):
    a, b = texts
    return PairCurves(a, b, "cosine", np.random.default_rng(seed), 8)


@pytest.mark.parametrize("kind", ["deletion", "insertion"])
def test_random_orders_do_not_depend_on_the_candidates(texts, models, kind):
    both = getattr(curves(texts), kind)(models)
    alone = getattr(curves(texts), kind)({"occlusion": models["occlusion"]})
    assert both["occlusion"] == alone["occlusion"]


def test_order_of_joint_losses_beats_random_orders_and_its_opposite_is_worse(texts, models):
    deletion = curves(texts).deletion(models)["occlusion"]
    assert deletion["deletion_whole"] > 0
    assert curves(texts).insertion(models)["occlusion"]["insertion_whole"] > 0
