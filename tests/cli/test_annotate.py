"""`pairlens annotate`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from handmade_conllu import words_of
from pairlens.cli import app
from pairlens.study.language import conllu


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


def test_annotate_writes_words_tags_and_sentences(pipeline, tmp_path):
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
def test_annotate_refuses_missing_pipelines_and_half_a_choice_of_columns(tmp_path, arguments, message):
    pytest.importorskip("spacy")
    (tmp_path / "p.csv").write_text("x,y\n")
    done = CliRunner().invoke(app, ["annotate", str(tmp_path / "p.csv"), "-o", str(tmp_path / "p.conllu"), *arguments])
    assert done.exit_code == 2
    assert message in done.output.replace("\n", " ")
    assert not (tmp_path / "p.conllu").exists()
