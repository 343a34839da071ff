"""Where tokens stand in a text: tokenizers with offsets and without, prompts and special tokens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from pairlens.errors import InputError
from pairlens.text import Unit, align, group, token_units
from pairlens.text.alignment import tokens_left
from scripts import AWKWARD, CORPUS, SPECIAL, TOKENIZERS, WORDS, tokenizer, tokens_of


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", CORPUS)
def test_token_units_hold_the_characters_of_their_tokens(name: str, text: str) -> None:
    units = tokens_of(name, text)
    assert [unit.kind for unit in units] == ["special", *["text"] * (len(units) - 2), "special"]
    assert units[0] == Unit("[CLS]", 0, 0, "special")
    close = len(text) if units[1:-1] else 0
    assert units[-1] == Unit("[SEP]", close, close, "special")
    for unit in units[1:-1]:
        assert 0 <= unit.start <= unit.end <= len(text)
        piece = text[unit.start : unit.end]
        assert piece in ("", unit.text)
        assert not piece.strip() or piece == piece.strip()


def test_a_transformers_tokenizer_gives_the_same_units() -> None:
    text = "It isn't the café."
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer("wordpiece"), unk_token="[UNK]")
    batch = wrapped(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    names = wrapped.convert_ids_to_tokens(batch["input_ids"])
    special = [bool(flag) for flag in batch["special_tokens_mask"]]
    assert token_units(text, names, batch["offset_mapping"], special) == tokens_of("wordpiece", text)


def test_a_prompt_that_is_not_part_of_the_text_raises() -> None:
    with pytest.raises(InputError, match="joined"):
        token_units("good", ["q:", "good"], [(0, 2), (3, 7)], [False, False], prompt=3)


@pytest.mark.parametrize("name", ["wordpiece", "unigram"])
@pytest.mark.parametrize("text", [text for text, _ in WORDS])
def test_align_agrees_with_the_offsets_of_the_tokenizer(name: str, text: str) -> None:
    encoding = tokenizer(name).encode(text)
    aligned = align(text, encoding.tokens)
    special = [bool(flag) for flag in encoding.special_tokens_mask]
    ours = group(text, token_units(text, encoding.tokens, aligned, special), "word", finest=True)
    assert ours == group(text, tokens_of(name, text), "word", finest=True)


def test_align_ignores_case_accents_and_markers() -> None:
    assert align("Élan vital", ["el", "##an", "vit@@", "al</w>"]) == [(0, 2), (2, 4), (5, 8), (8, 10)]
    assert align("cafe\u0301s", ["▁caf", "é", "s"]) == [(0, 3), (3, 5), (5, 6)]
    assert align("one of the", ["▁one", "▁of▁the"]) == [(0, 3), (4, 10)]
    assert align("☃ 😀 cat", ["<s>", "[UNK]", "[UNK]", "cat", "</s>"]) == [(0, 0), (0, 1), (2, 3), (4, 7), (7, 7)]
    assert align("😀 ok", ["ðŁ", "ĺ", "Ģ", "Ġok"]) == [(0, 1)] * 3 + [(2, 4)]  # bytes share their character
    assert align("की हिन", ["क", "##ी", "हिन"]) == [(0, 2), (0, 2), (3, 6)]
    assert align("a  b", ["▁a", "▁", "b"]) == [(0, 1), (3, 3), (3, 4)]


@given(AWKWARD, st.lists(AWKWARD | st.sampled_from([*SPECIAL, "##", "▁", "@@", "</w>", "##a", "<unk>"])))
@settings(deadline=None)
def test_align_never_raises(text: str, tokens: list[str]) -> None:
    spans = align(text, tokens)
    assert len(spans) == len(tokens)
    assert all(0 <= start <= end <= len(text) for start, end in spans)


def test_tokens_left_are_those_of_a_text_cut_at_either_side() -> None:
    full, special = [0, 7, 8, 9, 1], [True, False, False, False, True]
    assert tokens_left(full, full, special, "right") == [0, 1, 2, 3, 4]
    assert tokens_left([0, 7, 8, 1], full, special, "right") == [0, 1, 2, 4]
    assert tokens_left([0, 9, 1], full, special, "left") == [0, 3, 4]
    assert tokens_left([0, 7, 1], full, special, "left") is None  # other tokens than the end of the text
    assert tokens_left([0, 1], full, special, "right") is None  # a cut always leaves a text token
