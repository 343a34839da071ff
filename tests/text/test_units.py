"""Where tokens stand and what they add up to: the kinds of subword tokenizers, and every script that is awkward."""

from functools import cache
from itertools import pairwise

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from pairlens.errors import InputError
from pairlens.text.units import Span, Unit, align, group, level_spans, sentences, token_units, words

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
FLAG = "🇫🇷"
WAVE = "👋🏽"
KEYCAP = "#\ufe0f\u20e3"

# Each text with its words, in order.
WORDS = [
    ("The coffee here is not good.", ["The", "coffee", "here", "is", "not", "good", "."]),
    ("It isn't state-of-the-art, is it?!", ["It", "isn't", "state-of-the-art", ",", "is", "it", "?!"]),
    (
        "rock'n'roll ’tis dogs’ (e.g. cats)...",
        ["rock'n'roll", "’", "tis", "dogs", "’", "(", "e.g", ".", "cats", ")..."],
    ),
    ("Pay $5 or 5%, 3.14 and 1,000!", ["Pay", "$5", "or", "5", "%,", "3.14", "and", "1,000", "!"]),
    ("C++ and C# by @user #tag a/b x_y", ["C++", "and", "C", "#", "by", "@", "user", "#", "tag", "a/b", "x_y"]),
    ("U.S.A. J. K.", ["U.S.A", ".", "J", ".", "K", "."]),
    ("café cafe\u0301 naïve nai\u0308ve", ["café", "cafe\u0301", "naïve", "nai\u0308ve"]),
    (f"I {FAMILY} love {FLAG} {WAVE}!", ["I", FAMILY, "love", FLAG, WAVE, "!"]),
    (f"{KEYCAP}1 ok\u203c\ufe0f", [KEYCAP, "1", "ok", "\u203c\ufe0f"]),
    ("東京は「日本」の首都。", ["東", "京", "は", "「", "日", "本", "」", "の", "首", "都", "。"]),
    ("ガラス か\u3099 ｶﾞ", ["ガ", "ラ", "ス", "か\u3099", "ｶﾞ"]),
    ("iPhoneを3.5台，ok", ["iPhone", "を", "3.5", "台", "，", "ok"]),
    ("한국어는 띄어 쓴다.", ["한국어는", "띄어", "쓴다", "."]),
    ("ภาษาไทย สวัสดี", ["ภาษาไทย", "สวัสดี"]),
    ("Привет, мир! مرحبا؟ हिन्दी।", ["Привет", ",", "мир", "!", "مرحبا", "؟", "हिन्दी", "।"]),
    ("\ta\n\n b\u00a0c\u3000d ", ["a", "b", "c", "d"]),
    ("--- a -- b", ["---", "a", "--", "b"]),
    ("", []),
    (" \t\n", []),
]

# Each text's sentences, separated by |; the bar is not part of the text.
SENTENCES = [
    "The coffee is bad. |It is cold! |Why?! |Who knows… |Not me.",
    "Mr. Smith and Dr. J. K. Jones met Prof. X in the U.S. Senate. |They spoke.",
    "He moved to the U.S. |He likes it, e.g. The Met, i.e. art, etc. |It is fine.",
    "See Fig. 3 and No. 5, cf. Smith et al. (2020). |No. |I disagree.",
    "I ate an egg. |Then pi is 3.14. |Version 2.0.1 is out at example.com today.",
    '"Why?" he asked. |"No." |(She left.) |“Fine.” |Done',
    "Well... he said. |Wait . . . what? |A man plays a guitar . |A dog barks .",
    "一つ目。|二つ目！？|「三つ目。」|四つ目",
    "A title\n\n|Some wrapped\nprose goes on. |Here\n\n\n|end",
    "hello!\n|how are you?\n|fine",
    "Buy:\n|- milk\n|- eggs and\nham\n|1. First. |Then this.\n|2. Second",
    "Ask Mr.\nJones. |Он ушёл. |Она осталась. |यह है। |ठीक है।",
    "  spaces around.  |\tHere too.  ",
    "one\u2029|two\r\n\r\n|three\r\nfour",
    "no terminator at all",
]

CORPUS = [text for text, _ in WORDS] + [text.replace("|", "") for text in SENTENCES]
SPECIAL = ["[UNK]", "[CLS]", "[SEP]"]


@cache
def tokenizer(name: str) -> Tokenizer:
    """A small tokenizer of the kind named, trained on the texts of this file."""
    frame = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, SPECIAL.index(token)) for token in SPECIAL[1:]]
    )
    if name == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=250, special_tokens=SPECIAL, show_progress=False)
    elif name == "unigram":
        made = Tokenizer(models.Unigram())
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=300, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False
        )
    else:
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space="prefix" in name)
        frame = processors.Sequence([processors.ByteLevel(trim_offsets="trim" in name), frame])
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
    made.train_from_iterator(CORPUS, trainer)
    made.post_processor = frame
    return made


TOKENIZERS = ["wordpiece", "unigram", "bpe", "bpe-prefix", "bpe-trim", "bpe-prefix-trim"]


def tokens_of(name: str, text: str, prompt: str = "") -> tuple[Unit, ...]:
    encoding = tokenizer(name).encode(prompt + text)
    special = [bool(flag) for flag in encoding.special_tokens_mask]
    return token_units(prompt + text, encoding.tokens, encoding.offsets, special, len(prompt))


def pieces(text: str, spans: list[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]


def check_spans(text: str, spans: list[Span]) -> None:
    """Disjoint, in order, no whitespace at their ends, and every other character inside one of them."""
    assert all(start < end for start, end in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    assert all(piece == piece.strip() for piece in pieces(text, spans))
    held = {i for start, end in spans for i in range(start, end)}
    assert all(i in held for i, char in enumerate(text) if not char.isspace())


def check_partition(units: tuple[Unit, ...], coarse: tuple[Unit, ...], members: tuple[int, ...]) -> None:
    """Every unit has one index, in range, and a kind that goes with its new home."""
    assert len(members) == len(units)
    assert sum(members.count(n) for n in range(len(coarse))) == len(units)
    for unit, n in zip(units, members, strict=True):
        assert coarse[n].kind == unit.kind or (unit.kind, coarse[n].kind) == ("text", "rest")
    assert all(unit == coarse[n] for unit, n in zip(units, members, strict=True) if unit.kind == "special")


def test_checking_helpers_can_fail() -> None:
    with pytest.raises(AssertionError):
        check_spans("ab c", [(0, 2)])
    with pytest.raises(AssertionError):
        check_spans("ab c", [(0, 2), (1, 4)])
    with pytest.raises(AssertionError):
        check_partition((Unit("a", 0, 1),), (Unit("a", 0, 1),), (1,))
    with pytest.raises(AssertionError):
        check_partition((Unit("a", 0, 1),), (Unit("[CLS]", 0, 0, "special"),), (0,))


@pytest.mark.parametrize(("text", "expected"), WORDS)
def test_words(text: str, expected: list[str]) -> None:
    assert pieces(text, words(text)) == expected


@pytest.mark.parametrize("marked", SENTENCES)
def test_sentences(marked: str) -> None:
    text = marked.replace("|", "")
    assert pieces(text, sentences(text)) == [part.strip() for part in marked.split("|")]


# Dense in everything that the rules mention, so that rare neighbours meet.
AWKWARD = st.text(
    st.sampled_from("aAбé1 .,!?…'\"-()%$#\n\t。！「」，東がカ한\u0301\u3099\u200d\ufe0f\u00a0👨👩🏽🇫🇷ß½ﬁ")
    | st.characters(codec="utf-8"),
    max_size=40,
)


@given(AWKWARD)
@settings(deadline=None)
def test_words_and_sentences_cover_the_text_and_nest(text: str) -> None:
    check_spans(text, words(text))
    check_spans(text, sentences(text))
    for start, end in words(text):
        assert any(begin <= start and end <= stop for begin, stop in sentences(text))


@given(st.text(st.sampled_from("aé!. 。「東か\u0301\u3099\u200d\ufe0f👨👩🏽🇫🇷한‼#\u20e3"), max_size=20))
@example(".\u200d🇫🇫")
@settings(deadline=None)
def test_no_grapheme_is_cut(text: str) -> None:
    # Unicode joins an accent to a space before it; there the space separates all the same.
    allowed = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    allowed |= {i + 1 for i, char in enumerate(text) if char.isspace()}
    assert {edge for span in words(text) for edge in span} <= allowed


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", CORPUS)
def test_units_of_real_tokens(name: str, text: str) -> None:
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


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize(("text", "expected"), [pair for pair in WORDS if pair[1]])
def test_words_of_real_tokens(name: str, text: str, expected: list[str]) -> None:
    units = tokens_of(name, text)
    coarse, members = group(text, units, "word", finest=True)
    check_partition(units, coarse, members)
    found = [unit.text for unit in coarse if unit.kind == "text"]
    crossed = [unit for unit in units if any(unit.start < start < unit.end for start, _ in words(text))]
    if not crossed:
        assert found == expected
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


def test_wrapped_tokenizer_gives_the_same_units() -> None:
    text = "It isn't the café."
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer("wordpiece"), unk_token="[UNK]")
    batch = wrapped(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    names = wrapped.convert_ids_to_tokens(batch["input_ids"])
    special = [bool(flag) for flag in batch["special_tokens_mask"]]
    assert token_units(text, names, batch["offset_mapping"], special) == tokens_of("wordpiece", text)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_prompt(name: str) -> None:
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


def test_prompt_must_be_part_of_the_text() -> None:
    with pytest.raises(InputError, match="joined"):
        token_units("good", ["q:", "good"], [(0, 2), (3, 7)], [False, False], prompt=3)


def test_special_token_in_the_middle() -> None:
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


def test_whitespace_tokens_go_with_what_follows() -> None:
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


def test_coarser_units_raise() -> None:
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


def test_spans() -> None:
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
def test_levels_of_another_type_raise(level: object) -> None:
    with pytest.raises(InputError, match=r"unknown level .* token, word, sentence, or spans"):
        level_spans("a text", level)


def test_unknown_level_names_the_nearest() -> None:
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


@pytest.mark.parametrize("name", ["wordpiece", "unigram"])
@pytest.mark.parametrize("text", [text for text, _ in WORDS])
def test_align_finds_what_the_tokenizer_says(name: str, text: str) -> None:
    encoding = tokenizer(name).encode(text)
    aligned = align(text, encoding.tokens)
    special = [bool(flag) for flag in encoding.special_tokens_mask]
    ours = group(text, token_units(text, encoding.tokens, aligned, special), "word", finest=True)
    assert ours == group(text, tokens_of(name, text), "word", finest=True)


def test_align() -> None:
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
