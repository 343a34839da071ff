"""An index is opened with the model and the settings that it was made with."""

from __future__ import annotations

import pytest
import torch

import zoo
from corpora import QUERY, TEXTS
from pairlens import IntegratedJacobian, Lens
from pairlens.corpus import Index
from pairlens.corpus.identity import fingerprint
from pairlens.errors import InputError


def test_another_model_is_refused_and_both_are_named(index):
    with pytest.raises(
        InputError, match=r"made with the model 'zoo/bert' \(fingerprint \w{16}\), and this is 'zoo/mpnet'"
    ):
        Index.open(index.path, Lens(zoo.encoder("mpnet")))


def test_other_settings_are_refused_and_both_are_named(index, lens):
    Index.open(index.path, lens, level="sentence", measure="cosine")
    with pytest.raises(InputError, match="level is 'sentence', not 'word'"):
        Index.open(index.path, lens, level="word")
    with pytest.raises(InputError, match=r"method is Banzhaf\(\), not IntegratedJacobian\(layer=2\)"):
        Index.open(index.path, lens, layer=2)
    with pytest.raises(InputError, match="precision is 'float16', not 'float32'"):
        Index.open(index.path, lens, precision="float32")


def test_the_same_layer_counted_from_the_end(lens, tmp_path):
    Index.create(tmp_path / "index", lens, layer=-1)
    assert Index.open(tmp_path / "index", lens, layer=3).settings.method == IntegratedJacobian(layer=3)


def test_computed_in_another_precision(index):
    with pytest.raises(InputError, match=r"computed in float32, and this lens computes in float64.*dtype='float32'"):
        Index.open(index.path, Lens(zoo.encoder("bert"), dtype="float64"))


def test_a_fingerprint_is_of_everything(lens):
    assert fingerprint(lens) == fingerprint(Lens(zoo.encoder("bert")))
    changed = [zoo.encoder("bert", pooling="cls"), zoo.encoder("bert", prompts={"query": "q: "}), zoo.encoder("bert")]
    changed[2].max_seq_length = 32
    one_weight = zoo.encoder("bert")
    with torch.no_grad():
        # One number among thousands, and not one of those that the settings' short fingerprint looks at.
        next(iter(one_weight.parameters()))[17, 5] += 1e-3
    assert len({fingerprint(Lens(model)) for model in [*changed, one_weight, zoo.encoder("bert")]}) == 5


def test_a_query_before_the_fingerprint_changes_nothing():
    model = zoo.encoder("bert")
    lens = Lens(model)
    model.encode(["coffee " * 100, "tea"])  # leaves padding and truncation behind in the tokenizer
    assert fingerprint(lens) == fingerprint(Lens(zoo.encoder("bert")))


def test_an_index_is_made_once(index, lens):
    with pytest.raises(InputError, match="holds an index already"):
        Index.create(index.path, lens)
    with pytest.raises(InputError, match="there is no index in"):
        Index.open(index.path / "nowhere", lens)


def test_an_index_opened_without_a_model_loads_it_by_name(tmp_path):
    zoo.encoder("bert").save(str(tmp_path / "model"))
    Index.create(tmp_path / "index", Lens(str(tmp_path / "model"))).add([{"text": TEXTS[0]}, {"text": TEXTS[1]}])
    index = Index.open(tmp_path / "index")
    assert index._lens is None
    assert index.compare("1", "2").text_b == TEXTS[1]  # needs no model
    assert index._lens is None
    assert index.search(TEXTS[0], 1)[0].id == "1"
    zoo.encoder("bert", seed=5).save(str(tmp_path / "model"))
    with pytest.raises(InputError, match="was made with the model"):
        Index.open(tmp_path / "index").search(TEXTS[0])


def test_an_index_whose_model_is_gone(index):
    with pytest.raises(InputError, match="'zoo/bert', which cannot be loaded by that name"):
        Index.open(index.path).search(QUERY)
