"""What a new user of sentence-transformers tries in the first five minutes."""

import pickle
import subprocess
import sys
import warnings
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from datasets import Dataset
from scipy import sparse
from sentence_transformers import SentenceTransformer
from transformers.utils import logging

from commands import ENVIRONMENT
from pairlens import Adaptive, Explanation, GaussLegendre, InputError, Lens, UnknownTokensWarning
from pairlens.model import offline_model
from pairlens.render.html import document
from pairlens.render.notebook import static
from terminal_output import show

A, B = "The coffee here is not good.", "This coffee is bad."


def test_first_a_pair_is_one_short_line(minilm):
    best = minilm.explain(A, B, level="word").top(1)[0]
    assert repr(best) == f"Pair(coffee · coffee, {best.value:+.3f} ± {best.error:.3f})"


def test_first_the_strongest_pairs_have_no_special_tokens_unless_asked(minilm):
    e = minilm.explain(A, B, layer=5)
    assert all(pair.a.kind == pair.b.kind == "text" for pair in e.top(1000))
    assert len(e.top(1000, special=True)) == e.matrix.size


def test_first_results_become_tables_and_dicts(minilm):
    e = minilm.explain(A, B, level="word")
    table = e.to_pandas()
    assert len(table) == e.matrix.size
    strongest = table.loc[table["value"].abs().idxmax()]
    assert (strongest["a"], strongest["b"]) == ("coffee", "coffee")
    assert strongest["value"] == e.top(1)[0].value
    assert A[strongest["a_start"] : strongest["a_end"]] == "coffee"
    document = e.to_dict()
    assert document["score"] == e.score
    assert document["matrix"] == e.matrix.tolist()


@pytest.mark.parametrize(
    "several",
    [
        [(A, B), (B, A)],
        [[A, B], [B, A]],
        np.array([[A, B], [B, A]]),
        pd.DataFrame({"first": [A, B], "second": [B, A]}),
        pd.Series([(A, B), (B, A)]),
        pa.table({"first": [A, B], "second": [B, A]}),
        Dataset.from_dict({"first": [A, B], "second": [B, A]}),
        [{"first": A, "second": B}, {"first": B, "second": A}],
        zip([A, B], [B, A], strict=True),
    ],
    ids=lambda several: type(several).__name__,
)
def test_first_pairs_come_in_any_container(minilm, several):
    forward, backward = minilm.explain_many(several, level="word", progress=False)
    assert (forward.text_a, forward.text_b) == (A, B)
    assert (backward.text_a, backward.text_b) == (B, A)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"id": [1], "a": [A], "b": [B]}), "has two columns, the texts, and this one has 3: id, a, b"),
        (pa.table({"id": [1], "a": [A], "b": [B]}), "has two columns, the texts, and this one has 3: id, a, b"),
        ([{"a": A, "b": B, "score": 1.0}], "expected a pair of texts"),
        ([{A, B}], "expected a pair of texts"),
        (A, "takes pairs of texts"),
        (pd.Series([A, B]), "expected a pair of texts"),
    ],
)
def test_first_other_containers_are_named_in_the_error(minilm, given, message):
    with pytest.raises(InputError, match=message):
        list(minilm.explain_many(given, progress=False))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (A, "takes several texts; for one, write decompose"),
        (pd.DataFrame({"review": [A, B]}), r"got a table. Choose a column: table\['review'\]"),
        (None, "takes texts, such as"),
    ],
)
def test_first_what_is_no_list_of_texts_is_named_in_the_error(minilm, given, message):
    with pytest.raises(InputError, match=message):
        minilm.decompose(given)


def test_first_lists_of_texts_lead_to_explain_many(minilm):
    with pytest.raises(InputError, match=r"is list.*explain_many\(zip\(a, b\)\)"):
        minilm.explain([A], [B])


def test_first_a_lens_pickles(minilm):
    again = pickle.loads(pickle.dumps(minilm))
    assert again.name == minilm.name
    assert again.explain(A, B, level="word").score == pytest.approx(minilm.explain(A, B, level="word").score, abs=1e-6)
    black_box = pickle.loads(pickle.dumps(Lens.from_function(count_letters)))
    assert black_box.explain("an apple", "a bean").score > 0


def test_first_a_lens_on_a_lambda_pickles_as_joblib_and_ray_do_it():
    lens = Lens.from_function(lambda texts: [[text.count("a") + 1.0, len(text)] for text in texts])
    again = cloudpickle.loads(cloudpickle.dumps(lens))
    assert again.explain(A, B).score == lens.explain(A, B).score


@pytest.mark.slow
def test_first_a_lens_works_in_joblib_multiprocessing_and_ray(minilm):
    import multiprocessing

    import joblib
    import ray

    pairs = [(A, B), (B, A)]
    expected = [e.score for e in minilm.explain_many(pairs, progress=False)]
    found: Any = joblib.Parallel(n_jobs=2)(joblib.delayed(minilm.explain)(*pair) for pair in pairs)
    assert [e.score for e in found] == expected
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert [e.score for e in pool.starmap(minilm.explain, pairs)] == expected
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        lens, explain = ray.put(minilm), ray.remote(score_of)
        assert ray.get([explain.remote(lens, *pair) for pair in pairs]) == expected
    finally:
        ray.shutdown()


def test_first_prompts_are_those_of_encode(minilm):
    model: Any = SentenceTransformer(str(offline_model()), device="cpu")
    model.prompts = {"query": "query: ", "passage": "passage: "}
    lens = Lens(model)
    query, passage = model.encode(A, prompt="query: "), model.encode(B, prompt_name="passage")
    expected = float(query @ passage)
    assert lens.explain(A, B, prompt=("query: ", "passage: ")).score == pytest.approx(expected, abs=1e-6)
    named = lens.explain(A, B, prompt_name=("query", "passage"))
    assert named.score == pytest.approx(expected, abs=1e-6)
    assert named.settings["prompt"] == ["query: ", "passage: "]
    assert lens.explain(A, B, prompt="query: ").score != pytest.approx(expected, abs=1e-6)
    assert "a with the prompt “query:”, b with the prompt “passage:”, by words" in " ".join(repr(named).split())
    assert "a as query, b as document" in " ".join(repr(lens.explain(A, B, roles=("query", "document"))).split())
    assert [unit.kind for unit in named.units_a][:3] == ["special", "prompt", "text"]
    assert named.without("coffee") == named.without(3)
    with pytest.raises(InputError, match="unknown prompt_name ''"):
        lens.explain(A, B, prompt_name="")
    with pytest.raises(InputError, match=r"unknown prompt_name 'querry'. Did you mean 'query'\?"):
        lens.explain(A, B, prompt_name="querry")
    three: Any = ("a", "b", "c")
    with pytest.raises(InputError, match="a pair of texts, one for each side"):
        lens.explain(A, B, prompt=three)
    with pytest.raises(InputError, match="a black box has no prompts"):
        Lens.from_function(count_letters).explain(A, B, prompt="query: ")


def test_first_a_device_that_is_not_there_gets_one_line():
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    with pytest.raises(InputError) as caught:
        Lens(device=missing)
    assert str(caught.value).startswith(f"device '{missing}' cannot be used: PyTorch finds cpu")
    assert "\n" not in str(caught.value)


def test_first_texts_of_unknown_words_are_announced(minilm):
    with pytest.warns(UnknownTokensWarning, match="knows no word of '😀'"):
        minilm.explain("😀", "A cat.")
    with warnings.catch_warnings(action="error"):
        minilm.explain("A 😀!", "A cat.")


def test_first_single_words_that_the_model_does_not_know_are_named(minilm, tmp_path):
    e = minilm.explain("I play the 🎸 and drink ☕, ☕.", "Music and coffee.")
    assert (e.unknown_a, e.unknown_b) == (("🎸", "☕"), ())
    assert e.to_dict()["unknown_a"] == ["🎸", "☕"]
    assert (e.swap().unknown_b, e.at("sentence").unknown_a) == (e.unknown_a, e.unknown_a)
    for suffix in (".json", ".npz", ".csv", ".parquet"):
        assert Explanation.load(e.save(tmp_path / f"why{suffix}")).unknown_a == e.unknown_a
    remark = "The model does not know: 🎸, ☕. To it they are all the same word."
    for view in (repr(e), show(e), static(e), document(e)):
        assert remark in view or remark.encode("ascii", "backslashreplace").decode() in view
    known = minilm.explain(A, B)
    assert not any("does not know" in view for view in (repr(known), show(known), static(known)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "tol=0.1 is for methods that integrate, and the default deletes words: leave tol out"),
        ({"method": "banzhaf"}, "method='banzhaf' does not integrate, so it takes no tol; leave tol=0.1 out"),
        ({"method": "shapley"}, "takes no tol"),
        ({"rule": GaussLegendre(4)}, r"a rule has its own tolerance. Use rule=Adaptive\(0.1\)"),
    ],
)
def test_first_a_tolerance_that_would_be_ignored_is_an_error(minilm, options, message):
    with pytest.raises(InputError, match=message):
        minilm.explain(A, B, tol=0.1, **options)


def test_first_methods_that_integrate_take_a_tolerance(minilm):
    for options in ({"method": "fade"}, {"method": "integrated-jacobian", "layer": 5}, {"layer": 5}):
        assert minilm.explain(A, B, tol=0.1, **options).gap_a <= 0.1
    assert minilm.explain(A, B, layer=5).settings["rule"] == repr(Adaptive(1e-3))


def test_first_units_are_named_by_their_words(minilm):
    e = minilm.explain("The coffee is not good, and the tea is not good.", B)
    assert e.without("coffee", "bad") == e.without([2], [4]) == e.without(2, 4)
    assert e.without(["coffee", 4]) == e.without([2, 4])
    for word, message in (
        ("cofee", r"text a has no unit 'cofee'. Did you mean 'coffee'\?"),
        ("COFFEE", r"Did you mean 'coffee'\?"),
        ("zebra", "Its units: 'The', 'coffee', 'is', 'not'"),
        ("not", "text a has 'not' 2 times. Say which by its index: 4, 11."),
    ):
        with pytest.raises(InputError, match=message):
            e.without(word)
    with pytest.raises(InputError, match="text b has no unit 'tea'"):
        e.without(b="tea")


def test_first_misspelled_options_get_the_right_name(minilm):
    misspelled: Any = {"levl": "word", "progress": False}
    for call, texts in ((minilm.explain_many, [(A, B)]), (minilm.decompose, [A])):
        with pytest.raises(InputError, match=r"unknown option 'levl'. Did you mean 'level'\?"):
            next(call(texts, **misspelled))


def test_first_errors_name_the_pair_and_the_text(minilm):
    with pytest.raises(InputError, match=r"^text a is empty \(''\)"):
        minilm.explain("", B)
    with pytest.raises(InputError, match=r"^text b is empty"):
        minilm.explain(A, " ")
    with pytest.raises(InputError, match=r"^the query is empty"):
        minilm.contrast("", A, B)
    with pytest.raises(InputError, match=r"^texts\[1\]: the text is empty"):
        list(minilm.decompose([A, ""], progress=False))
    for window in (1, 2, 256):
        for bad, message in (
            ((A, ""), r"^pairs\[3\]: text b is empty"),
            ((A,), r"^pairs\[3\]: expected a pair of texts, and got \('The coffee"),
            ((A, 5), r"^pairs\[3\]: text b should be a text, and is int: 5"),
            ((A, "half \ud800"), r"^pairs\[3\]: character 5 of the text 'half"),
        ):
            several: Any = [(A, B), (B, A), (B, B), bad, (A, B)]
            with pytest.raises(InputError, match=message):
                list(minilm.explain_many(several, method="output", window=window, progress=False))


def test_first_sparse_vectors_are_taken(minilm):
    dense, thin = Lens.from_function(count_letters), Lens.from_function(lambda t: sparse.csr_matrix(count_letters(t)))
    assert np.array_equal(dense.explain(A, B).matrix, thin.explain(A, B).matrix)


def score_of(lens: Any, a: str, b: str) -> float:
    return lens.explain(a, b).score


def count_letters(texts: list[str]) -> Any:
    return [[text.count(letter) + 1.0 for letter in "abcde"] for text in texts]


def test_first_a_lens_is_made_without_a_word(capfd):
    shown = []
    before = logging.set_tqdm_hook(lambda factory, args, kwargs: shown.append(kwargs) or factory(*args, **kwargs))
    try:
        Lens()
        assert (shown, *capfd.readouterr()) == ([], "", "")
        list(logging.tqdm([1], desc="Loading weights"))  # bars of others are as they were
        assert shown == [{"desc": "Loading weights"}]
    finally:
        logging.set_tqdm_hook(before)


def test_first_a_notebook_without_ipywidgets_gets_no_warning():
    fake = "sys.modules.update({'ipykernel.zmqshell': types.ModuleType('shell'), 'ipywidgets': None})"
    notebook = f"import sys, types, IPython; {fake}; "
    options: Any = {"capture_output": True, "text": True, "env": ENVIRONMENT, "check": True}
    for code, warned in (("import tqdm.auto", True), ("import pairlens as p; p.InputError; import tqdm.auto", False)):
        done = subprocess.run([sys.executable, "-c", notebook + code], **options)
        assert ("IProgress not found" in done.stderr) == warned
