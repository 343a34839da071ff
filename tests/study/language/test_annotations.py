"""A parser's words and a model's tokens, matched by characters, with every mismatch counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from handmade_conllu import line, words_of, write
from pairlens.study.language.annotations import MISMATCHES, AnnotatedWord, Annotations, by_word, match, report
from pairlens.text import Unit


def test_ranges_are_characters_of_the_whole_text(tmp_path):
    path = write(
        tmp_path / "f.conllu",
        "# newdoc id = 7",
        "# sent_id = 7-1",
        "# text = It rains.",
        line(1, "It", "it", "PRON", 2, "nsubj", "TokenRange=0:2"),
        line(2, "rains", "rain", "VERB", 0, "root", "SpaceAfter=No|TokenRange=3:8"),
        line(3, ".", ".", "PUNCT", 2, "punct", "TokenRange=8:9"),
        "",
        "# text = We stay.",
        line(1, "We", "we", "PRON", 2, "nsubj", "TokenRange=12:14"),
        line(2, "stay", "stay", "VERB", 0, "root", "TokenRange=15:19"),
        line(3, ".", ".", "PUNCT", 2, "punct", "TokenRange=19:20"),
        "",
    )
    expected = [
        ("It", "it", "PRON"),
        ("rains", "rain", "VERB"),
        (".", ".", "PUNCT"),
        ("We", "we", "PRON"),
        ("stay", "stay", "VERB"),
        (".", ".", "PUNCT"),
    ]
    assert words_of(path, "It rains.   We stay.") == (expected, {})
    # The text's white space differs from the parser's: the words are found one after the other.
    assert words_of(path, "It rains. We  stay.") == (expected, {})
    assert words_of(path, "It snows.") == ([], {"texts_unannotated": 1})


def test_other_tools_write_start_char_and_no_documents(tmp_path):
    path = write(
        tmp_path / "f.conllu",
        "# text = Café crème!",
        line(1, "Café", "café", "NOUN", 0, "root", "start_char=0|end_char=4"),
        line(2, "crème", "crème", "NOUN", 1, "nmod:of", "start_char=5|end_char=10|NER=O"),
        line(3, "!", "!", "PUNCT", 1, "punct", "start_char=10|end_char=11"),
        "",
        "# text = Ja.",
        line(1, "Ja", "ja", "INTJ", 0, "root"),
        line(2, ".", ".", "PUNCT", 1, "punct"),
    )
    assert words_of(path, "Café crème!")[0] == [
        ("Café", "café", "NOUN"),
        ("crème", "crème", "NOUN"),
        ("!", "!", "PUNCT"),
    ]
    assert words_of(path, " Ja .")[0] == [("Ja", "ja", "INTJ"), (".", ".", "PUNCT")]
    words = Annotations.load(path).words("Café crème!", Counter())
    assert words is not None
    assert [word.deprel for word in words] == ["root", "nmod", "punct"]


def test_a_contraction_of_two_words_is_one_unit_and_counted(tmp_path):
    path = write(
        tmp_path / "f.conllu",
        "# text = It isn't cold.",
        line(1, "It", "it", "PRON", 4, "nsubj"),
        line("2-3", "isn't"),
        line(2, "is", "be", "AUX", 4, "cop"),
        line(3, "n't", "not", "PART", 4, "advmod"),
        line(4, "cold", "cold", "ADJ", 0, "root"),
        line("4.1", "empty", "empty", "VERB"),
        line(5, ".", ".", "PUNCT", 4, "punct"),
    )
    shown, counted = words_of(path, "It isn't cold.")
    assert shown == [("It", "it", "PRON"), ("isn't", "be", "AUX"), ("cold", "cold", "ADJ"), (".", ".", "PUNCT")]
    assert counted == {"words_sharing": 1}


def test_a_contraction_has_the_lemma_and_tag_of_its_head(tmp_path):
    # Spanish "dámelo": the pronouns depend on the verb, which stands for all three.
    path = write(
        tmp_path / "f.conllu",
        "# text = dámelo",
        line("1-3", "dámelo"),
        line(1, "me", "yo", "PRON", 2, "iobj"),
        line(2, "da", "dar", "VERB", 0, "root"),
        line(3, "lo", "él", "PRON", 2, "obj"),
    )
    assert words_of(path, "dámelo") == ([("dámelo", "dar", "VERB")], {"words_sharing": 2})


def test_words_of_a_contraction_with_ranges_of_their_own_stay_apart(tmp_path):
    path = write(
        tmp_path / "f.conllu",
        "# text = isn't",
        line("1-2", "isn't", misc="TokenRange=0:5"),
        line(1, "is", "be", "AUX", 0, "root", "TokenRange=0:2"),
        line(2, "n't", "not", "PART", 1, "advmod", "TokenRange=2:5"),
    )
    assert words_of(path, "isn't") == ([("is", "be", "AUX"), ("n't", "not", "PART")], {})


def test_words_that_are_not_the_text_are_counted_and_dropped(tmp_path):
    path = write(tmp_path / "f.conllu", "# text = It's", line(1, "It", "it", "PRON"), line(2, "is", "be", "AUX"))
    assert words_of(path, "It's") == ([], {"texts_differing": 1})


def groups_of(text: str, tokens: list[str], words: list[str]):
    """The tokens of every word, all given by their forms in order, and the counts of mismatches."""

    def spans(forms):
        here, places = 0, []
        for form in forms:
            start = text.index(form, here)
            here = start + len(form)
            places.append((start, here))
        return places

    units = [Unit("[CLS]", 0, 0, "special"), *(Unit(text[i:j], i, j) for i, j in spans(tokens))]
    units.append(Unit("[SEP]", len(text), len(text), "special"))
    mismatches: Counter[str] = Counter()
    held, sums = match(text, units, [AnnotatedWord(i, j, "", "", "") for i, j in spans(words)], mismatches)
    groups = {
        text[word.start : word.end]: [units[i].text for i in np.flatnonzero(row)]
        for word, row in zip(held, sums, strict=True)
    }
    return groups, {name: count for name, count in mismatches.items() if count}


@pytest.mark.parametrize(
    ("text", "tokens", "words", "groups", "counted"),
    [
        # A contraction: the tokenizer cuts after "isn", the parser before it.
        (
            "isn't",
            ["isn", "'", "t"],
            ["is", "n't"],
            {"is": ["isn"], "n't": ["'", "t"]},
            {"tokens_across": 1},
        ),
        # A hyphen: three words for the parser, three tokens for the model.
        ("re-open", ["re", "-", "open"], ["re", "-", "open"], {"re": ["re"], "-": ["-"], "open": ["open"]}, {}),
        ("re-open", ["re", "-", "open"], ["re-open"], {"re-open": ["re", "-", "open"]}, {}),
        # A number in pieces.
        ("3.14 m", ["3", ".", "14", "m"], ["3.14", "m"], {"3.14": ["3", ".", "14"], "m": ["m"]}, {}),
        # A word that a token of the word before swallows.
        ("cannot", ["cannot"], ["can", "not"], {"can": ["cannot"]}, {"words_without_token": 1, "tokens_across": 1}),
        # A token that no word holds.
        ("oh ☃ no", ["oh", "☃", "no"], ["oh", "no"], {"oh": ["oh"], "no": ["no"]}, {"tokens_outside": 1}),
        # Characters beyond the basic plane and combining marks: offsets count characters, not bytes.
        (
            "a🚀 naı\u0308ve",
            ["a", "🚀", "naı\u0308ve"],
            ["a🚀", "naı\u0308ve"],
            {"a🚀": ["a", "🚀"], "naı\u0308ve": ["naı\u0308ve"]},
            {},
        ),
    ],
)
def test_tokens_belong_to_the_word_that_holds_their_first_character(text, tokens, words, groups, counted):
    assert groups_of(text, tokens, words) == (groups, counted)


def test_the_model_s_own_tokens(minilm, tmp_path):
    a, b = "It isn't well-known.", "Café №5 cost 3.14 €."
    path = write(
        tmp_path / "f.conllu",
        f"# text = {a}",
        line(1, "It", "it", "PRON"),
        line(2, "is", "be", "AUX"),
        line(3, "n't", "not", "PART"),
        line(4, "well", "well", "ADV"),
        line(5, "-", "-", "PUNCT"),
        line(6, "known", "know", "VERB"),
        line(7, ".", ".", "PUNCT"),
        "",
        f"# text = {b}",
        line(1, "Café", "café", "NOUN"),
        line(2, "№5", "№5", "NUM"),
        line(3, "cost", "cost", "VERB"),
        line(4, "3.14", "3.14", "NUM"),
        line(5, "€", "€", "SYM"),
        line(6, ".", ".", "PUNCT"),
    )
    e = minilm.explain(a, b, method="output", level="token")
    mismatches: Counter[str] = Counter()
    annotations = Annotations.load(path)
    matched = by_word(e, annotations, mismatches)
    assert matched is not None
    one, other, matrix = matched
    # "isn" begins in "is" and ends in "n't": the only mismatch.
    assert report(mismatches) == {**dict.fromkeys(MISMATCHES, 0), "tokens_across": 1}
    assert [a[word.start : word.end] for word in one] == ["It", "is", "n't", "well", "-", "known", "."]
    assert [b[word.start : word.end] for word in other] == ["Café", "№5", "cost", "3.14", "€", "."]
    sums_a, sums_b = (match(*side, Counter())[1] for side in ((a, e.units_a, one), (b, e.units_b, other)))
    tokens = {
        word: [e.tokens_b[i] for i in np.flatnonzero(row)]
        for word, row in zip(("Café", "№5", "cost", "3.14"), sums_b, strict=False)
    }
    assert tokens["3.14"] == ["3", ".", "14"]
    assert tokens["Café"] == ["cafe"]
    # Only the special tokens' rows and columns are missing.
    inner = np.array([unit.kind == "text" for unit in e.units_a]), np.array([unit.kind == "text" for unit in e.units_b])
    assert matrix.sum() == pytest.approx(e.matrix[np.ix_(*inner)].sum())
    mean = by_word(e, annotations, Counter(), "mean")
    assert mean is not None
    rows, columns = np.flatnonzero(sums_a[2]), np.flatnonzero(sums_b[3])  # n't and 3.14
    assert mean[2][2, 3] == pytest.approx(e.matrix[np.ix_(rows, columns)].mean())
    assert matrix[2, 3] == pytest.approx(e.matrix[np.ix_(rows, columns)].sum())
