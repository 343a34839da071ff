"""Tokens, units and prompts of every family stand at the right characters."""

from typing import Any

import numpy as np
import pytest

import zoo
from families import FLOAT32_INSIDE, ROLES, A, B, check, families, lens_of, model_of, score_of
from pairlens import Explanation, GaussLegendre

LONG_A, LONG_B = "The coffee isn't good. Nobody listens!", "This coffee is bad, I think. Do you?"


# The base of these random models is often large.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def spans(e: Explanation, side: str) -> list[tuple[str, int, int]]:
    return [(unit.text, unit.start, unit.end) for unit in getattr(e, f"units_{side}")]


@pytest.mark.parametrize("family", families("bert", "roberta"))
def test_coarser_levels_are_sums_of_tokens(family):
    lens = lens_of(family)
    options: Any = {"layer": 1, "rule": GaussLegendre(3)}
    tokens = lens.explain(LONG_A, LONG_B, level="token", **options)
    close: Any = {"atol": 1e-6 if family in FLOAT32_INSIDE else 1e-9}
    for level in ("word", "sentence", [(0, 10), (11, 22)], ("word", "sentence")):
        coarse = lens.explain(LONG_A, LONG_B, level=level, **options)
        regrouped = tokens.at(level)
        assert spans(coarse, "a") == spans(regrouped, "a")
        assert spans(coarse, "b") == spans(regrouped, "b")
        np.testing.assert_allclose(coarse.matrix, regrouped.matrix, **close)
        assert coarse.score == pytest.approx(tokens.score, abs=1e-9)
        assert coarse.matrix.sum() == pytest.approx(tokens.matrix.sum(), abs=1e-6)
    # By hand: a token belongs to the word that holds its first character, whitespace aside.
    words = lens.explain(LONG_A, LONG_B, level="word", **options)
    assert [u.text for u in words.units_a if u.kind == "text"] == "The coffee isn't good . Nobody listens !".split()
    firsts = [len(LONG_A) - len(LONG_A[unit.start :].lstrip()) for unit in tokens.units_a]
    for i, word in enumerate(words.units_a):
        if word.kind == "text":
            inside = [
                word.start <= n < word.end and u.kind == "text" for n, u in zip(firsts, tokens.units_a, strict=True)
            ]
            np.testing.assert_allclose(words.row[i], tokens.row[inside].sum(), **close)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_units_hold_the_characters_of_their_tokens(family):
    e = lens_of(family).explain(A, B, rule=GaussLegendre(1), level="token")
    special = [unit for unit in e.units_a if unit.kind == "special"]
    assert len(special) == len(e.tokens_a) - len(model_of(family).tokenizer.tokenize(A)) > 0
    assert [unit.text for unit in special] == [
        t for t in e.tokens_a if t in model_of(family).tokenizer.all_special_tokens
    ]
    assert all(A[unit.start : unit.end] == unit.text for unit in e.units_a if unit.kind == "text")
    assert "".join(unit.text for unit in e.units_a if unit.kind == "text") == A.replace(" ", "")


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("family", families("bert", "qwen3"))
def test_prompts_of_roles_are_read_as_the_model_reads_them(family, include_prompt):
    prompts = {"query": "query: ", "document": "passage: "}
    model = zoo.encoder(family, prompts=prompts, include_prompt=include_prompt)
    e = check(model, layer=1, tol=1e-2, roles=ROLES, level="token")
    prompt = [unit for unit in e.units_a if unit.kind == "prompt"]
    assert "".join(unit.text for unit in prompt).endswith("ry:")
    assert {(unit.start, unit.end) for unit in prompt} == {(0, 0)}
    assert all(A[unit.start : unit.end] == unit.text for unit in e.units_a if unit.kind == "text")
    assert sum(unit.kind == "prompt" for unit in e.at("word").units_a) == 1
    if family not in ("qwen3", "gemma3"):  # pooling the last token, they never include the prompt
        other = zoo.encoder(family, prompts=prompts, include_prompt=not include_prompt)
        assert abs(e.score - score_of(other, ROLES)) > 1e-4


@pytest.mark.parametrize("default", [None, "query", "other"])
@pytest.mark.parametrize("roles", [(None, None), ROLES, ROLES[::-1]])
def test_default_prompts_are_used_without_a_role(default, roles):
    prompts = {"query": "query: ", "document": "", "other": "an other one: "}
    e = check(zoo.encoder("bert", prompts=prompts, default_prompt_name=default), layer=2, roles=roles)
    expected = [prompts[default] if default else "", prompts["query"], prompts["document"]]
    for units, role in zip((e.units_a, e.units_b), roles, strict=True):
        prompt = expected[[None, "query", "document"].index(role)]
        assert any(unit.kind == "prompt" for unit in units) is bool(prompt)
