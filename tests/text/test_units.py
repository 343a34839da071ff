"""Grouping tokens into words, sentences and spans: a partition that adds up, for every kind of tokenizer."""

from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.errors import InputError
from pairlens.text import Span, Unit, group, level_spans, token_units, words
from scripts import AWKWARD, FAMILY, TOKENIZERS, WORDS, tokens_of


def check_partition(units: tuple[Unit, ...], coarse: tuple[Unit, ...], members: tuple[int, ...]) -> None:
    """Check that every unit has one index, in range, and a kind that fits its coarse unit."""
    assert len(members) == len(units)
    assert sum(members.count(n) for n in range(len(coarse))) == len(units)
    for unit, n in zip(units, members, strict=True):
        assert coarse[n].kind == unit.kind or (unit.kind, coarse[n].kind) == ("text", "rest")
    assert all(unit == coarse[n] for unit, n in zip(units, members, strict=True) if unit.kind == "special")


def test_the_check_of_partitions_can_fail() -> None:
    with pytest.raises(AssertionError):
        check_partition((Unit("a", 0, 1),), (Unit("a", 0, 1),), (1,))
    with pytest.raises(AssertionError):
        check_partition((Unit("a", 0, 1),), (Unit("[CLS]", 0, 0, "special"),), (0,))


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize(("text", "expected"), [pair for pair in WORDS if pair[1]])
def test_tokens_group_into_the_words_they_begin_in(name: str, text: str, expected: list[str]) -> None:
    units = tokens_of(name, text)
    coarse, members = group(text, units, "word", finest=True)
    check_partition(units, coarse, members)
    texts = [unit.text for unit in coarse if unit.kind == "text"]
    crossed = [unit for unit in units if any(unit.start < start < unit.end for start, _ in words(text))]
    if not crossed:
        assert texts == expected
    for unit, n in zip(units, members, strict=True):
        if unit.kind == "text" and text[unit.start : unit.end].strip():
            assert coarse[n].start <= unit.start < coarse[n].end


def test_subwords_and_bytes_share_a_word() -> None:
    text = f"isn't {FAMILY} ok"
    units = tokens_of("bpe", text)
    first_character = [unit for unit in units if unit.text == FAMILY[0]]
    assert len(first_character) > 1  # several byte tokens, one character
    assert len(set(first_character)) == 1
    coarse, members = group(text, units, "word", finest=True)
    assert [unit.text for unit in coarse] == ["[CLS]", "isn't", FAMILY, "ok", "[SEP]"]
    assert members.count(2) > 4


@pytest.mark.parametrize("name", TOKENIZERS)
def test_prompt_tokens_group_into_one_unit(name: str) -> None:
    text = "not good."
    units = tokens_of(name, text, prompt="The coffee: ")
    assert regex.fullmatch("sp+t+s", "".join(unit.kind[0] for unit in units))
    assert all((unit.start, unit.end) == (0, 0) for unit in units if unit.kind == "prompt")
    assert "".join(unit.text for unit in units if unit.kind == "prompt").replace(" ", "") == "Thecoffee:"
    assert units[-1].start == len(text)
    coarse, members = group(text, units, "word", finest=True)
    check_partition(units, coarse, members)
    assert [(unit.text, unit.start) for unit in coarse] == [
        ("[CLS]", 0),
        ("(prompt)", 0),
        ("not", 0),
        ("good", 4),
        (".", 8),
        ("[SEP]", 9),
    ]
    assert group(text, coarse, "sentence")[0][1:3] == (Unit("(prompt)", 0, 0, "prompt"), Unit(text, 0, 9))


def test_special_tokens_between_text_stay_single() -> None:
    units = token_units(
        "a b",
        ["a", "<sep>", "<sep>", "b", "</s>"],
        [(0, 1), (0, 0), (0, 0), (1, 3), (0, 0)],
        [False, True, True, False, True],
    )
    assert units[1] == Unit("<sep>", 1, 1, "special")
    assert units[4] == Unit("</s>", 3, 3, "special")
    coarse, members = group("a b", units, "sentence", finest=True)
    assert [unit.text for unit in coarse] == ["a b", "<sep>", "<sep>", "</s>"]
    assert members == (0, 1, 2, 0, 3)  # equal special tokens stay apart


def test_whitespace_tokens_belong_to_the_text_after_them() -> None:
    text = " a  b "
    units = token_units(text, ["▁", "▁a", "▁", "▁b", "▁"], [(0, 0), (0, 2), (2, 3), (3, 5), (5, 6)], [False] * 5)
    assert [(unit.text, unit.start, unit.end) for unit in units] == [
        ("▁", 0, 0),
        ("a", 1, 2),
        (" ", 2, 3),
        ("b", 4, 5),
        (" ", 5, 6),
    ]
    assert group(text, units, "word", finest=True)[1] == (0, 0, 1, 1, 1)
    # A given span that holds the whitespace itself keeps it.
    assert group(text, units, [(0, 4), (4, 6)], finest=True)[1] == (0, 0, 0, 1, 1)


def test_tokens_across_words_belong_to_the_first() -> None:
    text = "one of the.\nTen"
    units = token_units(text, ["▁one", "▁of▁the", ".\n", "Ten"], [(0, 3), (3, 10), (10, 12), (12, 15)], [False] * 4)
    coarse, members = group(text, units, "word", finest=True)
    assert [unit.text for unit in coarse] == ["one", "of", ".", "Ten"]  # no token begins in "the"
    assert members == (0, 1, 2, 3)
    with pytest.raises(InputError, match=r"'of the'.* coarser than 'word'.*level='token'"):
        group(text, units, "word")


def test_regrouping_to_a_finer_level_raises() -> None:
    text = "A dog ran. A cat sat."
    tokens = tokens_of("wordpiece", text)
    by_word = group(text, tokens, "word", finest=True)[0]
    by_sentence = group(text, by_word, "sentence")[0]
    assert group(text, by_word, "word")[0] == by_word
    assert group(text, by_sentence, "sentence")[0] == by_sentence
    with pytest.raises(InputError, match=r"'A dog ran.'.* coarser than 'word'"):
        group(text, by_sentence, "word")
    with pytest.raises(InputError, match=r"coarser than \[\(0, 3\)\]"):
        group(text, by_sentence, [(0, 3)])
    with pytest.raises(InputError, match=r"\(rest\)"):
        group(text, group(text, by_word, [(0, 1)])[0], "word")


def test_spans_keep_their_order_and_the_rest_is_one_unit() -> None:
    text = "The coffee is good"
    ends = Unit("<s>", 0, 0, "special"), Unit("</s>", 18, 18, "special")
    units = (ends[0], *(Unit(text[i:j], i, j) for i, j in words(text)), ends[1])
    coarse, members = group(text, units, [(11, 13), (0, 5)], finest=True)  # in any order
    assert coarse == (ends[0], Unit("The c", 0, 5), Unit("is", 11, 13), ends[1], Unit("(rest)", 0, 0, "rest"))
    assert members == (0, 1, 1, 2, 4, 3)
    assert group(text, coarse, [(0, 5), (11, 13)])[0] == coarse
    # Spans without a token stay, in their place.
    coarse, members = group(text, units, [(1, 2), (4, 10), (12, 13), (16, 18)], finest=True)
    assert [unit.text for unit in coarse] == ["<s>", "h", "coffee", "s", "od", "</s>", "(rest)"]
    assert members == (0, 6, 2, 6, 6, 5)
    assert group("ab", ends, [(0, 1)])[0][2] == Unit("a", 0, 1)


@pytest.mark.parametrize("spans", [[(0, 9)], [(-1, 2)], [(2, 2)], [(3, 1)], [(0, 2), (1, 3)], [(1, 3), (0, 2)]])
def test_bad_spans_raise(spans: list[Span]) -> None:
    with pytest.raises(InputError, match=r"bad span \(-?\d, \d\): .*(8, the text's length|overlaps)"):
        group("a text .", (), spans)


@pytest.mark.parametrize("level", [3, None, [], [(0, 1.5)], [(0,)], [0, 1], [("a", "b")]])
def test_levels_that_are_neither_names_nor_spans_raise(level: object) -> None:
    with pytest.raises(InputError, match=r"unknown level .* token, word, sentence, or spans"):
        level_spans("a text", level)


def test_unknown_level_raises_and_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'words'.*'word'.*token, word, sentence"):
        group("a", (), "words")


@given(st.sampled_from(TOKENIZERS), AWKWARD, st.data())
@settings(deadline=None, max_examples=200)
def test_grouping_is_a_partition_and_composes(name: str, text: str, data: st.DataObject) -> None:
    units = tokens_of(name, text)
    assert group(text, units, "token") == (units, tuple(range(len(units))))
    by_word, in_word = group(text, units, "word", finest=True)
    by_sentence, in_sentence = group(text, units, "sentence", finest=True)
    check_partition(units, by_word, in_word)
    check_partition(units, by_sentence, in_sentence)
    assert set(in_word) == set(range(len(by_word)))  # no unit without members
    through_words, of_word = group(text, by_word, "sentence")
    assert through_words == by_sentence
    assert tuple(of_word[n] for n in in_word) == in_sentence
    assert group(text, by_word, "word") == (by_word, tuple(range(len(by_word))))
    if text:
        edges = sorted(data.draw(st.sets(st.integers(0, len(text)), min_size=2, max_size=6)))
        spans = list(pairwise(edges))[::2]
        coarse, members = group(text, units, spans, finest=True)
        check_partition(units, coarse, members)
        assert [(unit.start, unit.end) for unit in coarse if unit.kind == "text"] == spans
