"""CoNLL-U, and how a parser's words meet a model's tokens: by characters, with every mismatch counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pairlens.cli import app
from pairlens.errors import InputError
from pairlens.study.language import conllu, parsing
from pairlens.study.language.annotations import MISMATCHES, Annotations, by_word, match, report
from pairlens.study.language.conllu import Sentence, Token, Word
from pairlens.text import Unit


def line(number: object, form: str, lemma="_", upos="_", head: object = "_", deprel="_", misc="_") -> str:
    return "\t".join([str(number), form, lemma, upos, "_", "_", str(head), deprel, "_", misc])


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def words_of(path: Path, text: str) -> tuple[list[tuple[str, str, str]], dict[str, int]]:
    """The words that annotations have for a text: characters, lemma and part of speech; and the mismatches."""
    mismatches: Counter[str] = Counter()
    found = Annotations.load(path).words(text, mismatches)
    shown = [] if found is None else [(text[word.start : word.end], word.lemma, word.upos) for word in found]
    return shown, {name: count for name, count in mismatches.items() if count}


# Reading.


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
    # The white space of the text at hand is another than the parser saw: the words are laid along it.
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
    found = Annotations.load(path).words("Café crème!", Counter())
    assert found is not None
    assert [word.deprel for word in found] == ["root", "nmod", "punct"]


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


def test_the_word_that_speaks_for_a_contraction_is_its_head(tmp_path):
    # Spanish "dámelo": the pronouns depend on the verb, which speaks for all three.
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


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\tIt\tit"], r"line 1: CoNLL-U has 10 columns, and this has 3"),
        ([line("x", "It")], "'x' is not the number of a word"),
        (["# text = nothing"], "hold no sentence"),
    ],
)
def test_files_that_are_not_conllu(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        Annotations.load(write(tmp_path / "f.conllu", *lines))


def test_what_is_written_reads_back(tmp_path):
    text = "It's 3.14, e.g.\n東京!"
    spans = [(0, 2), (2, 4), (5, 9), (9, 10), (11, 15), (16, 18), (18, 19)]
    words = [Word(n, text[i:j], "", "X", 0 if n == 1 else 1, "dep", (i, j)) for n, (i, j) in enumerate(spans, 1)]
    sentence = Sentence(text, [Token(word.form, [word], word.span) for word in words])
    path = write(tmp_path / "f.conllu", *conllu.write([sentence], "1"))
    shown, counted = words_of(path, text)
    assert [form for form, _, _ in shown] == ["It", "'s", "3.14", ",", "e.g.", "東京", "!"]
    assert counted == {}
    assert "SpaceAfter=No|TokenRange=0:2" in path.read_text(encoding="utf-8")


# Matching words and tokens.


def side(text: str, tokens: list[str], words: list[str]):
    """Match tokens and words given by their forms in order; also what was counted."""

    def spans(forms):
        here, found = 0, []
        for form in forms:
            start = text.index(form, here)
            found.append((start, start + len(form)))
            here = start + len(form)
        return found

    from pairlens.study.language.annotations import Word as Annotated

    units = [Unit("[CLS]", 0, 0, "special"), *(Unit(text[i:j], i, j) for i, j in spans(tokens))]
    units.append(Unit("[SEP]", len(text), len(text), "special"))
    mismatches: Counter[str] = Counter()
    own = match(text, units, [Annotated(i, j, "", "", "") for i, j in spans(words)], mismatches)
    groups = {
        text[word.start : word.end]: [units[i].text for i in np.flatnonzero(row)]
        for word, row in zip(own.words, own.sums, strict=True)
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
    assert side(text, tokens, words) == (groups, counted)


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
    e = minilm.explain(a, b, method="output")
    mismatches: Counter[str] = Counter()
    found = by_word(e, Annotations.load(path), mismatches)
    assert found is not None
    one, other, matrix = found
    # "isn" begins in "is" and ends in "n't": the one thing that does not fit.
    assert report(mismatches) == {**dict.fromkeys(MISMATCHES, 0), "tokens_across": 1}
    assert [a[word.start : word.end] for word in one.words] == ["It", "is", "n't", "well", "-", "known", "."]
    assert [b[word.start : word.end] for word in other.words] == ["Café", "№5", "cost", "3.14", "€", "."]
    tokens = {
        word: [e.tokens_b[i] for i in np.flatnonzero(row)]
        for word, row in zip(("Café", "№5", "cost", "3.14"), other.sums, strict=False)
    }
    assert tokens["3.14"] == ["3", ".", "14"]
    assert tokens["Café"] == ["cafe"]
    # Nothing is lost but the special tokens' rows and columns.
    inner = np.array([unit.kind == "text" for unit in e.units_a]), np.array([unit.kind == "text" for unit in e.units_b])
    assert matrix.sum() == pytest.approx(e.matrix[np.ix_(*inner)].sum())
    mean = by_word(e, Annotations.load(path), Counter(), "mean")
    assert mean is not None
    rows, columns = (np.flatnonzero(own.sums[i]) for own, i in ((one, 2), (other, 3)))  # n't and 3.14
    assert mean[2][2, 3] == pytest.approx(e.matrix[np.ix_(rows, columns)].mean())
    assert matrix[2, 3] == pytest.approx(e.matrix[np.ix_(rows, columns)].sum())


# spaCy.


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Path:
    """A pipeline of spaCy's own English tokenizer and rules for sentences and tags, saved like any other."""
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed: make setup")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    ruler = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"LOWER": "n't"}]], {"POS": "PART", "LEMMA": "not"})
    ruler.add([[{"LOWER": "is"}]], {"POS": "AUX", "LEMMA": "be"})
    folder = tmp_path_factory.mktemp("pipeline") / "tiny"
    nlp.to_disk(folder)
    return folder


def test_annotate_command(pipeline, tmp_path):
    text = "It isn't well-known.  Prices rose 3.5% to €2bn; naïve?"
    (tmp_path / "pairs.csv").write_text(f'"{text}",It is new.,3\n"{text}",It is new.,3\n', encoding="utf-8")
    out = tmp_path / "pairs.conllu"
    done = CliRunner().invoke(app, ["annotate", str(tmp_path / "pairs.csv"), "--spacy", str(pipeline), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "2 texts annotated" in done.output
    shown, counted = words_of(out, text)
    assert counted == {}
    forms = [form for form, _, _ in shown]
    assert forms[:7] == ["It", "is", "n't", "well", "-", "known", "."]
    assert "".join(forms) == "".join(text.split())
    assert ("n't", "not", "PART") in shown
    assert ("is", "be", "AUX") in shown
    assert len([document for document in conllu.read(out) for _ in document]) == 3  # sentences


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--spacy", "no_such_pipeline"], "spaCy has no pipeline 'no_such_pipeline' here"),
        (["--spacy", "x", "--column-a", "a"], "--column-a and --column-b go together"),
    ],
)
def test_what_annotate_refuses(tmp_path, arguments, message):
    pytest.importorskip("spacy")
    (tmp_path / "p.csv").write_text("x,y\n")
    done = CliRunner().invoke(app, ["annotate", str(tmp_path / "p.csv"), "-o", str(tmp_path / "p.conllu"), *arguments])
    assert done.exit_code == 2
    assert message in done.output.replace("\n", " ")
    assert not (tmp_path / "p.conllu").exists()


def test_a_pipeline_without_a_parser_gives_one_sentence():
    spacy = pytest.importorskip("spacy")
    (document,) = parsing.parse(spacy.blank("en"), ["One. Two."])
    assert [[token.form for token in sentence.tokens] for sentence in document] == [["One", ".", "Two", "."]]
    assert {word.head for sentence in document for token in sentence.tokens for word in token.words} == {None}
