"""Materials: explanations that are made once, plain scores, and pairs that cannot be explained."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from pairlens import Lens
from pairlens.errors import InputError
from pairlens.study.archive import Archive
from pairlens.study.materials import CHUNK, scaled, text_tokens
from pairlens.study.views import View
from studies import PAIRS, TEXTS, explanation, materials, tree

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


@pytest.mark.parametrize("terms", ["project", "ignore", "shift", "keep"])
def test_explanations_are_those_of_the_lens(lens, terms):
    view = View("integrated-jacobian", 1, terms)
    found = materials(lens).explain(view)
    options = {"layer": 1, "reference_terms": terms, "level": "token"}
    expected = lens.explain_many([pair[:2] for pair in PAIRS], **options, progress=False)
    for (row, e), other in zip(found, expected, strict=True):
        assert (row.a, row.b) == (e.text_a, e.text_b)
        np.testing.assert_allclose(e.matrix, other.matrix, atol=1e-6)
        assert (e.score, e.base) == pytest.approx((other.score, other.base), abs=1e-6)


def test_a_decomposition_is_made_once(lens, tmp_path, monkeypatch):
    made = []
    decompose = Lens.decompose
    monkeypatch.setattr(
        Lens, "decompose", lambda self, texts, **more: made.append(texts) or decompose(self, texts, **more)
    )
    one, other = View("integrated-jacobian", 1, "ignore"), View("integrated-jacobian", 1, "shift")
    first = materials(lens, archive=Archive(tmp_path)).explain(one)
    assert made == [TEXTS]  # every text once
    again = materials(lens, archive=Archive(tmp_path))
    second, sibling = again.explain(one), again.explain(other)
    assert len(made) == 1  # reference terms that decompose the same embedding cost nothing more
    for (_, e), (_, same) in zip(first, second, strict=True):
        assert np.array_equal(e.matrix, same.matrix)
        assert e.settings == same.settings
        assert e.units_a == same.units_a
    assert not np.allclose(sibling[0][1].matrix, first[0][1].matrix)
    materials(lens, archive=Archive(tmp_path), tol=1e-2).explain(one)
    assert len(made) == 2  # other settings are other pieces


def test_a_larger_limit_reuses_whole_chunks(lens, tmp_path):
    pairs = [(f"one {i}", f"two {i}") for i in range(CHUNK + 3)]
    view = View("output", None, "project")
    materials(lens, pairs=pairs[:CHUNK], archive=Archive(tmp_path)).explain(view)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(materials(lens, pairs=pairs, archive=Archive(tmp_path)).explain(view)) == CHUNK + 3
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(after) == len(before) + 1
    assert {name: after[name] for name in before} == before


def test_pieces_do_not_depend_on_how_many_pairs_are_explained_together(lens, tmp_path):
    pairs = [(f"one {i}", f"two {i}") for i in range(2 * CHUNK + 3)]
    view = View("output", None, "project")
    for folder, together in (("apart", CHUNK), ("joined", 2 * CHUNK)):
        explained = materials(lens, pairs=pairs, archive=Archive(tmp_path / folder), together=together).explain(view)
        assert [row.number for row, _ in explained] == list(range(1, len(pairs) + 1))
    assert tree(tmp_path / "apart") == tree(tmp_path / "joined")
    # A run that was interrupted between two pieces of a group.
    next((tmp_path / "joined").iterdir()).unlink()
    again = materials(lens, pairs=pairs, archive=Archive(tmp_path / "joined"), together=2 * CHUNK).explain(view)
    assert [e.text_a for _, e in again] == [a for a, _ in pairs]
    assert tree(tmp_path / "apart") == tree(tmp_path / "joined")


def test_some_of_the_pairs_come_from_pieces_of_all_pairs(lens, tmp_path):
    given = materials(lens, archive=Archive(tmp_path))
    view = View("output", None, "project")
    everything = given.explain(view)
    before = set(tmp_path.iterdir())
    some = given.explain(view, [given.rows[3], given.rows[1]])
    assert set(tmp_path.iterdir()) == before  # nothing was made
    assert [row.number for row, _ in some] == [4, 2]
    for (_, e), place in zip(some, (3, 1), strict=True):
        assert np.array_equal(e.matrix, everything[place][1].matrix)
    # Texts outside the data have the same numbers as pairs of the data, but other keys.
    (new,) = given.of_texts(view, [("Something else.", "Nothing.")])
    assert new is not None
    assert new.text_a == "Something else."
    assert len(set(tmp_path.iterdir())) == len(before) + 1


def test_words_are_sums_or_means(lens):
    with pytest.raises(InputError, match="unknown words 'median'"):
        materials(lens, words="median")


def test_a_text_that_cannot_be_explained_is_left_out_and_noted(lens):
    bad = "\N{ZERO WIDTH SPACE}"
    given = materials(lens, pairs=[*PAIRS[:2], ("Tea.", bad, 1.0)])
    view = View("output", None, "project")
    assert [row.number for row, _ in given.explain(view)] == [1, 2]
    assert list(given.left_out["output, project"]) == [3]
    assert "no token of the text" in given.describe([view], 2)["left_out"]["output, project"]["3"]
    assert np.isnan(given.score([("Tea.", bad)])).all()


def test_wrong_options_raise_instead_of_leaving_texts_out(lens):
    with pytest.raises(InputError, match="has no layer"):
        materials(lens).explain(View("shapley", 3, "project"))


def test_plain_scores_are_the_model_s_own(lens):
    model = zoo.encoder("bert")
    scores = materials(lens).score([pair[:2] for pair in PAIRS])
    expected = [float(model.similarity(model.encode(a), model.encode(b))) for a, b, _ in PAIRS]
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_labels_are_scaled_to_at_most_one():
    assert scaled(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert scaled(np.array([0.0, 2.0])).tolist() == [0.0, 0.4]
    assert scaled(np.array([20.0, 80.0])).tolist() == [0.25, 1.0]
    assert scaled(np.array([])).tolist() == []


def test_text_tokens_leave_special_tokens_out():
    e = explanation(np.arange(16).reshape(4, 4))
    assert text_tokens(e).tolist() == [[5, 6], [9, 10]]
