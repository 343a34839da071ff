"""Training adjusted models: the recipe against a loop by hand, what is saved, what is refused, and being killed."""

from __future__ import annotations

import copy
import csv
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

import zoo
from imports import OPTIONAL, WITHOUT
from pairlens import InputError, Lens, ModelError, adjust
from pairlens.adjusted.card import read_record
from pairlens.adjusted.data import read_pairs
from pairlens.adjusted.recipe import Recipe
from pairlens.adjusted.trainer import EpochOrder
from pairlens.adjusted.wrapping import wrap
from pairlens.cli import app
from pairlens.io.files import require_pyarrow
from pairlens.model.loading import load

TEXTS = [*zoo.TEXTS, "The tea is hot.", "A man plays music.", "I don't drink tea.", "The trains are late."]
PAIRS = [
    (a, b, len(set(a.split()) & set(b.split())) / len(set(a.split()) | set(b.split())))
    for a, b in itertools.combinations_with_replacement(TEXTS, 2)
][:40]
QUICK: dict[str, Any] = {"epochs": 3, "batch_size": 8, "lr": 2e-3, "device": "cpu", "progress": False}
REAL = [
    ("A man is playing a guitar.", "A man plays music on a guitar."),
    ("The coffee here is not good.", "This coffee is bad."),
    ("Two dogs run through the snow.", "The stock market fell sharply today."),
]
STSB = Path(os.environ.get("PAIRLENS_DATA", Path(__file__).parents[3] / "shared" / "data")) / "stsb"
TOL = 1e-3


def quick(**changes: Any) -> dict[str, Any]:
    """The settings of a quick training, some of them changed."""
    return {**QUICK, **changes}


def write(path: Path, rows: list[Any], **options: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **options).writerows(rows)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a tiny model and pairs to train it on."""
    folder = tmp_path_factory.mktemp("adjust")
    zoo.encoder().save(str(folder / "tiny"))
    write(folder / "train.csv", PAIRS)
    write(folder / "dev.csv", PAIRS[::2])
    return folder


@pytest.fixture(scope="module")
def trained(place) -> Path:
    """The tiny model, adjusted with the cosine objective."""
    adjust(str(place / "tiny"), place / "train.csv", place / "cosine", dev=place / "dev.csv", test=PAIRS[1::2], **QUICK)
    return place / "cosine"


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same_weights(one: Path, other: Path) -> bool:
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# What a training does.


def test_the_loss_falls_and_everything_is_saved(place, trained):
    record: Any = read_record(trained)
    losses = [epoch["loss"] for epoch in record["epochs"]]
    assert len(losses) == 3
    assert losses[-1] < 0.9 * losses[0]
    model = load(str(trained), "cpu")[0]
    assert [type(module).__name__ for module in model] == ["Adjusted", "Normalize"]
    assert model.similarity_fn_name == "cosine"
    for split, pairs in (("dev", PAIRS[::2]), ("test", PAIRS[1::2])):
        bare = SentenceTransformer(modules=list(model)[:1], device="cpu")
        a, b = (bare.encode([pair[side] for pair in pairs]).astype(float) for side in (0, 1))
        dot, gold = (a * b).sum(1), [pair[2] for pair in pairs]
        cosine = dot / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        found: Any = spearmanr(cosine, gold), spearmanr(dot, gold)
        assert record[split]["cosine"] == pytest.approx(found[0].statistic, abs=2e-3)
        assert record[split]["dot"] == pytest.approx(found[1].statistic, abs=2e-3)
    assert record["epoch"] == max(record["epochs"], key=lambda epoch: epoch["dev"]["cosine"])["epoch"]
    card = (trained / "README.md").read_text()
    for text in ("tiny, adjusted, trained with cosine similarity", f"| {record['test']['cosine']:.4f} |", "AdamW"):
        assert text in card
    assert not (place / "cosine.part").exists()


def test_the_recipe_is_what_it_says(tmp_path: Path):
    base = zoo.encoder(normalize=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    pairs, epochs, size, rate, decay = PAIRS[:20], 2, 8, 1e-3, 0.1
    recipe: dict[str, Any] = {"epochs": epochs, "batch_size": size, "lr": rate, "weight_decay": decay, "warmup": 0.4}
    found = adjust(base, pairs, tmp_path / "out", seed=7, device="cpu", progress=False, **recipe)
    model = wrap(copy.deepcopy(base)).train()
    bare = {name for name, _ in model.named_parameters() if "bias" in name or "norm" in name.lower()}
    groups = [
        {"params": [p for name, p in model.named_parameters() if name not in bare], "weight_decay": decay},
        {"params": [p for name, p in model.named_parameters() if name in bare], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=rate)
    steps, warm, done = 2 * 3, 3, 0  # three batches an epoch; 0.4 of six steps, rounded up
    order = EpochOrder(len(pairs), 7)
    for order.epoch in range(epochs):
        places = list(order)
        assert sorted(places) == list(range(20))
        for start in range(0, len(pairs), size):
            batch = [pairs[place] for place in places[start : start + size]]
            a, b = (model(model[0].preprocess([pair[side] for pair in batch]))["sentence_embedding"] for side in (0, 1))
            loss = ((torch.cosine_similarity(a, b) - torch.tensor([pair[2] for pair in batch])) ** 2).mean()
            for group in optimizer.param_groups:
                group["lr"] = rate * (done / warm if done < warm else (steps - done) / (steps - warm))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            done += 1
    own, expected = found.state_dict(), model.state_dict()
    moved = max(float((expected[name] - value).abs().max()) for name, value in wrap(base).state_dict().items())
    assert moved > 1e-3
    for name, value in expected.items():
        assert torch.allclose(own[name], value, atol=1e-5), name


def test_the_twin_and_the_dot_objective(place, tmp_path: Path):
    base = zoo.encoder()
    before = copy.deepcopy(base.state_dict())
    options = quick(epochs=1)
    plain = adjust(base, PAIRS, tmp_path / "plain", adjusted=False, **options)
    assert [type(module).__name__ for module in plain] == ["Transformer", "Pooling", "Normalize"]
    assert not Lens(str(tmp_path / "plain")).adjusted
    dot = adjust(base, PAIRS, tmp_path / "dot", objective="dot", **options)
    assert [type(module).__name__ for module in dot] == ["Adjusted"]
    assert dot.similarity_fn_name == "dot"
    assert (
        json.loads((tmp_path / "dot" / "config_sentence_transformers.json").read_text())["similarity_fn_name"] == "dot"
    )
    lens = Lens(str(tmp_path / "dot"))
    assert (lens.adjusted, lens.measure) == (True, "dot")
    a, b = dot.encode(list(REAL[1])).astype(float)
    e = lens.explain(*REAL[1], layer=2)
    assert e.score == pytest.approx(a @ b, rel=1e-4)
    assert e.matrix.sum() == pytest.approx(a @ b, abs=float(2 * TOL * np.linalg.norm(a) * np.linalg.norm(b)))
    assert all(torch.equal(before[name], value) for name, value in base.state_dict().items())  # the caller's is left
    record: Any = read_record(tmp_path / "dot")
    assert (record["dev"], record["test"]) == (None, None)  # nothing to measure with, so nothing was measured
    assert "was not measured" in (tmp_path / "dot" / "README.md").read_text()
    with pytest.raises(ModelError, match="no unadjusted twin"):
        adjust(str(tmp_path / "dot"), PAIRS, tmp_path / "other", adjusted=False, **options)


def test_the_same_seed_gives_the_same_weights_and_random_states_are_left(place, trained, tmp_path: Path):
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    adjust(str(place / "tiny"), PAIRS, tmp_path / "again", **QUICK)
    assert torch.equal(torch.random.get_rng_state(), state)
    last: Any = read_record(trained)
    if last["epoch"] == 3:
        assert same_weights(trained, tmp_path / "again")
    adjust(str(place / "tiny"), PAIRS, tmp_path / "other", seed=1, **QUICK)
    assert not same_weights(tmp_path / "other", tmp_path / "again")


# Being called again, and being killed.


def test_an_existing_folder(place, trained, tmp_path: Path):
    given = {"dev": place / "dev.csv", "test": PAIRS[1::2]}
    before = (trained / "model.safetensors").stat().st_mtime_ns
    adjust(str(place / "tiny"), place / "train.csv", trained, **given, **QUICK)  # finished: read back
    assert (trained / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(InputError, match=r"trained otherwise: lr was 0.002 and is 0.001.* Give another place"):
        adjust(str(place / "tiny"), place / "train.csv", trained, **given, **quick(lr=1e-3))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="no model that pairlens has trained"):
        adjust(str(place / "tiny"), PAIRS, tmp_path / "mine", **QUICK)


def test_killed_half_way_it_ends_at_the_same_weights(place, tmp_path: Path):
    command = [sys.executable, "-m", "pairlens.cli", "adjust", str(place / "tiny"), "--data", str(place / "train.csv")]
    command += [
        "--dev",
        str(place / "dev.csv"),
        "--epochs",
        "4",
        "--batch-size",
        "2",
        "--lr",
        "1e-3",
        "--device",
        "cpu",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    quiet: dict[str, Any] = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    whole = subprocess.Popen([*command, "--out", str(tmp_path / "whole")], **quiet)
    killed = subprocess.Popen([*command, "--out", str(tmp_path / "killed")], **quiet)
    journal = tmp_path / "killed.part" / "journal.jsonl"
    deadline = time.monotonic() + 300
    while not (journal.is_file() and journal.read_bytes().count(b"\n") >= 3):  # what was asked, then two epochs
        assert killed.poll() is None, killed.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed").exists()
    again = subprocess.run([*command, "--out", str(tmp_path / "killed")], check=False, **quiet)
    assert again.returncode == 0, again.stderr
    errors = whole.communicate()[1]
    assert whole.returncode == 0, errors
    assert same_weights(tmp_path / "whole", tmp_path / "killed")
    one, other = read_record(tmp_path / "whole"), read_record(tmp_path / "killed")
    assert one == other
    assert not (tmp_path / "killed.part").exists()


def test_what_was_begun_otherwise_is_not_mixed(place, tmp_path: Path):
    part = tmp_path / "out.part"
    part.mkdir()
    asked = {"format": "pairlens.batch", "asked": {"lr": 1}}
    epoch = {"epoch": 1, "step": 5, "loss": 1.0, "dev": None}
    (part / "journal.jsonl").write_text(f"{json.dumps(asked)}\n{json.dumps(epoch)}\n")
    with pytest.raises(InputError, match=r"beginning of another run: .*lr was 1 and is 0.002"):
        adjust(str(place / "tiny"), PAIRS, tmp_path / "out", **QUICK)
    adjust(str(place / "tiny"), PAIRS, tmp_path / "out", restart=True, **quick(epochs=1))
    assert not part.exists()


# Data.


def test_tables_of_every_kind(tmp_path: Path):
    rows = [("A cat.", "A dog.", 2.5), ('He said "no", twice.', "Zwei Züge.", 5.0), ("x", "y", 0.0)]
    header = ["id", "sentence1", "sentence2", "score"]
    numbered = [(i, *row) for i, row in enumerate(rows)]
    write(tmp_path / "bare.csv", rows)
    write(tmp_path / "named.csv", [header, *numbered])
    write(tmp_path / "other.csv", [["links", "rechts", "urteil"], *rows])
    (tmp_path / "tabs.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in [header, *numbered]))
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(dict(zip("abs", r, strict=True))) + "\n" for r in rows))
    pa, parquet = require_pyarrow()
    columns = dict(zip(("sentence1", "sentence2", "label"), map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), tmp_path / "table.parquet")
    given: dict[str, dict[str, Any]] = {
        "bare.csv": {},
        "named.csv": {},
        "other.csv": {"columns": ("links", "rechts"), "score": "urteil"},
        "tabs.tsv": {},
        "lines.jsonl": {"score": "s"},
        "table.parquet": {},
    }
    for name, options in given.items():
        found = read_pairs(tmp_path / name, **options)
        assert (list(found.a), list(found.b)) == ([row[0] for row in rows], [row[1] for row in rows]), name
        assert list(found.scores) == [0.5, 1.0, 0.0], name
        assert found.max_score == 5.0
    assert list(read_pairs(tmp_path / "bare.csv", max_score=10).scores) == [0.25, 0.5, 0.0]
    assert list(read_pairs([("a", "b", 0.3)]).scores) == [0.3]  # from 0 to 1 already


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("cat", "dog", 1), ("cat", "dog", "high")], "line 2"),
        ([("cat", "dog", 1), ("cat", "", 2)], "line 2"),
        ([("cat", "dog", 1), ("cat", "dog", 7)], "line 2: the score 7 is not between 0 and 5"),
        ([("cat", "dog", -1)], "line 1: the score -1"),
        (
            [("cat", "dog", "x"), ("cat", "dog", ""), ("cow", "", 1), ("", "pig", 1)],
            "line 1.*line 2.*line 3.*and 1 more",
        ),
        ([("cat", "dog"), ("cow", "pig")], "line 1: the score is missing"),
        ([], "holds no pairs"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, rows, message):
    with pytest.raises(InputError, match=message):
        read_pairs(write(tmp_path / "bad.csv", rows))


def test_what_cannot_be_used(place, tmp_path: Path):
    def train(**changes: Any) -> None:
        adjust(str(place / "tiny"), PAIRS, tmp_path / "out", **quick(**changes))

    with pytest.raises(InputError, match="all scores of given pairs are the same"):
        train(dev=[("a", "b", 1), ("c", "d", 1)])
    for changes in ({"lr": 0}, {"epochs": 0}, {"warmup": 2}, {"objective": "euclid"}, {"precision": "int8"}):
        with pytest.raises(InputError, match=next(iter(changes))):
            train(**changes)
    with pytest.raises(InputError, match="pair 2 is not two texts and a score"):
        adjust(str(place / "tiny"), [("a", "b", 1.0), ("a", "b")], tmp_path / "out", **QUICK)  # pyright: ignore[reportArgumentType]
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="cannot be used on this machine"):
            train(device="cuda")
    with pytest.raises(ModelError, match="static embeddings"):
        adjust(static(), PAIRS, tmp_path / "out", **QUICK)
    assert not list(tmp_path.iterdir())
    assert Recipe() == Recipe("cosine", True, 5, 16, 2e-5, 0.1, 0.1, 0, "float32")  # the papers' recipe


def static() -> SentenceTransformer:
    module = zoo.modules.StaticEmbedding(zoo.tokenizer("bert").backend_tokenizer, embedding_dim=8)
    return SentenceTransformer(modules=[module], device="cpu")


def test_the_command(place, tmp_path: Path):
    def command(*more: str) -> Any:
        given = ["adjust", str(place / "tiny"), "--data", str(place / "train.csv"), "--out", str(tmp_path / "out")]
        return CliRunner().invoke(app, [*given, "--epochs", "1", "--device", "cpu", *more])

    assert command("--column-a", "x").exit_code == 2
    done = command("--test", str(place / "dev.csv"), "--plain", "--objective", "dot", "--max-score", "2")
    assert done.exit_code == 0, done.output
    assert "test: Spearman " in done.stderr
    record: Any = read_record(tmp_path / "out")
    assert (record["settings"]["adjusted"], record["settings"]["data"]["train"]["max_score"]) == (False, 2.0)
    refused = command()
    assert refused.exit_code == 2
    assert "trained otherwise" in refused.stderr.replace("\n", " ")


# A real model.


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Path:
    """all-MiniLM-L6-v2 after a few steps, enough that it is another model than before."""
    folder = tmp_path_factory.mktemp("real") / "minilm"
    pairs = [(*pair, score) for pair, score in zip(REAL, (0.9, 0.7, 0.0), strict=True)]
    adjust(None, pairs, folder, epochs=1, batch_size=1, lr=1e-4, device="cpu", progress=False)
    return folder


def own_scores(folder: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    """What sentence-transformers says, with the module found by its name."""
    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)
    a, b = (model.encode([pair[side] for pair in pairs]).astype(float) for side in (0, 1))
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_the_matrix_of_a_real_model_sums_to_its_score(real):
    scores, lens = own_scores(real, REAL), Lens(str(real), device="cpu")
    plain = Lens(device="cpu").explain(*REAL[0], layer=6, reference_terms="shift")
    assert abs(plain.score - scores[0]) > 1e-3  # it was trained
    for layer in (0, 3, 5):
        for e, score in zip(lens.explain_many(REAL, layer=layer, tol=TOL), scores, strict=True):
            assert (e.base, abs(e.effects_a).max(), abs(e.effects_b).max()) == (0.0, 0.0, 0.0)
            assert abs(e.matrix.sum() - score) <= TOL
            assert e.score == pytest.approx(score, abs=1e-5)


def test_a_real_model_in_a_fresh_process(real, tmp_path: Path):
    texts = [text for pair in REAL for text in pair]
    code = (
        WITHOUT.format(optional=[*OPTIONAL, "accelerate"])
        + "import numpy as np\nfrom sentence_transformers import SentenceTransformer\n"
        f"model = SentenceTransformer({str(real)!r}, device='cpu', trust_remote_code=True)\n"
        f"np.save({str(tmp_path / 'own.npy')!r}, model.encode({texts!r}))"
    )
    # The order of a sum depends on the number of threads, and tests have one.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "own.npy"), load(str(real), "cpu")[0].encode(texts))


@pytest.mark.slow
def test_two_hundred_pairs_of_a_real_model(real):
    if not (STSB / "stsb-en-test.csv").is_file():
        pytest.skip(f"{STSB} does not hold STS-B")
    read = read_pairs(STSB / "stsb-en-test.csv")
    drawn = np.random.default_rng(0).permutation(len(read))[:200]
    pairs = [(read.a[int(i)], read.b[int(i)]) for i in drawn]
    scores, lens = own_scores(real, pairs), Lens(str(real), device="cpu")
    for layer in (0, 3, 5):
        sums = np.array([e.matrix.sum() for e in lens.explain_many(pairs, layer=layer, tol=TOL)])
        assert abs(sums - scores).max() <= TOL
