"""WordNet's files, read from a small database made here in its own format."""

from __future__ import annotations

import pytest

from pairlens.errors import InputError
from pairlens.study.language.wordnet import WordNet, find
from pairlens.study.papers.adjectives import from_wordnet

LICENCE = "  1 This is a small database in the format of WordNet.  \n"
# Meanings: part of speech, then the words, then pointers (symbol, target, kind, source and target word), then a gloss.
MEANINGS = {
    "adj": {
        "hot": (["hot", "torrid(p)"], [("!", "cold", "a", "0101")]),
        "cold": (["cold"], [("!", "hot", "a", "0101")]),
    },
    "noun": {"car": (["car", "automobile"], []), "mouse": (["mouse"], []), "dog": (["dog", "Canis_familiaris"], [])},
    "verb": {"run": (["run", "operate"], []), "dog": (["chase", "dog"], [])},
    "adv": {"fast": (["fast", "quickly"], [])},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("wordnet")
    for part, meanings in MEANINGS.items():
        letter = {"adj": "a", "noun": "n", "verb": "v", "adv": "r"}[part]
        offsets: dict[str, int] = dict.fromkeys(meanings, 0)
        data = LICENCE
        for _ in range(2):  # the first time to learn the offsets, whose width is fixed
            data = LICENCE
            for name, (words, pointers) in meanings.items():
                offsets[name] = len(data.encode("latin-1"))
                links = " ".join(f"{symbol} {offsets[to]:08d} {kind} {ends}" for symbol, to, kind, ends in pointers)
                members = " ".join(f"{word} 0" for word in words)
                head = f"{offsets[name]:08d} 00 {letter} {len(words):02x} {members} {len(pointers):03d}"
                data += f"{head} {links} | a gloss with ! in it  \n"
        (out / f"data.{part}").write_bytes(data.encode("latin-1"))
        lemmas: dict[str, list[int]] = {}
        for name, (words, _) in meanings.items():
            for word in words:
                lemmas.setdefault(word.split("(")[0].lower(), []).append(offsets[name])
        lines = []
        for lemma, at in sorted(lemmas.items()):
            tagged = 2 if lemma == "hot" else 1
            lines.append(f"{lemma} {letter} {len(at)} 0 {len(at)} {tagged} {' '.join(f'{o:08d}' for o in at)}  \n")
        (out / f"index.{part}").write_text(LICENCE + "".join(lines))
        (out / f"{part}.exc").write_text({"noun": "mice mouse\n", "verb": "ran run\n"}.get(part, ""))
    return out


def test_lemmas(folder):
    net = WordNet(folder)
    assert net.lemmas("cars") == {"car"}
    assert net.lemmas("Mice") == {"mouse"}  # an exception, not a rule
    assert net.lemmas("ran", "verb") == {"run"}
    assert net.lemmas("hottest", "adj") == set()  # the rules do not undouble letters
    assert net.lemmas("colder", "adj") == {"cold"}
    assert net.lemmas("unheard") == set()


def test_synonyms_and_antonyms(folder):
    net = WordNet(folder)
    assert net.synonyms("cars", "automobile")
    assert not net.synonyms("car", "dog")
    assert net.synonyms("dogs", "chased", "verb")
    assert not net.synonyms("dogs", "chased", "noun")
    assert net.antonyms("hot") == ["cold"]
    assert net.antonyms("cold") == ["hot"]
    assert net.antonyms("torrid") == []  # the pointer is from word one to word one
    assert net.members(*net.senses("torrid", "adj")[0]) == ["hot", "torrid"]
    assert net.common("adj")[0] == "hot"


def test_adjectives_of_wordnet(folder):
    assert list(from_wordnet(WordNet(folder), 5)) == [("hot", "torrid", "synonym"), ("hot", "cold", "antonym")]


def test_wordnet_that_is_not_there(tmp_path, monkeypatch, folder):
    with pytest.raises(InputError, match="apt install wordnet-base"):
        WordNet(tmp_path)
    monkeypatch.setenv("WNSEARCHDIR", str(folder))
    assert find() == folder
