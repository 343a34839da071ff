"""Training adjusted models: the recipe against a loop by hand, saved files, errors, and resuming after a kill."""

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
from adjusting import A, B
from pairlens import InputError, Lens, ModelError, adjust
from pairlens.adjusted.card import read_record
from pairlens.adjusted.trainer import Bookkeeper, EpochOrder
from pairlens.adjusted.wrapping import wrap
from pairlens.cli import app
from pairlens.model.loading import load

TEXTS = [*zoo.TEXTS, "The tea is hot.", "A man plays music.", "I don't drink tea.", "The trains are late."]
PAIRS = [
    (a, b, len(set(a.split()) & set(b.split())) / len(set(a.split()) | set(b.split())))
    for a, b in itertools.combinations_with_replacement(TEXTS, 2)
][:40]
QUICK: dict[str, Any] = {"epochs": 3, "batch_size": 8, "lr": 2e-3, "device": "cpu", "progress": False}


def quick(**changes: Any) -> dict[str, Any]:
    """Return the settings of a quick training with some changes."""
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


def test_training_lowers_the_loss_and_saves_scores_record_and_card(place, trained):
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


def test_training_follows_the_recipe_step_by_step(tmp_path: Path):
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


def test_the_unadjusted_twin_and_the_dot_objective(place, tmp_path: Path):
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
    a, b = dot.encode([A, B]).astype(float)
    e = lens.explain(A, B, layer=2)
    assert e.score == pytest.approx(a @ b, rel=1e-4)
    assert e.matrix.sum() == pytest.approx(a @ b, abs=float(2e-3 * np.linalg.norm(a) * np.linalg.norm(b)))
    assert all(torch.equal(before[name], value) for name, value in base.state_dict().items())  # the caller's is left
    record: Any = read_record(tmp_path / "dot")
    assert (record["dev"], record["test"]) == (None, None)  # nothing to measure with, so nothing was measured
    assert "was not measured" in (tmp_path / "dot" / "README.md").read_text()
    with pytest.raises(ModelError, match="no unadjusted twin"):
        adjust(str(tmp_path / "dot"), PAIRS, tmp_path / "other", adjusted=False, **options)


def test_the_same_seed_gives_the_same_weights_and_random_states_are_restored(place, trained, tmp_path: Path):
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    adjust(str(place / "tiny"), place / "train.csv", tmp_path / "again", dev=place / "dev.csv", **QUICK)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert same_weights(trained, tmp_path / "again")
    adjust(str(place / "tiny"), PAIRS, tmp_path / "other", seed=1, **quick(epochs=1))
    assert not same_weights(tmp_path / "other", tmp_path / "again")


def test_a_finished_model_is_loaded_and_other_folders_are_refused(place, trained, tmp_path: Path):
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


def test_an_interrupted_training_resumes_to_the_same_weights(place, trained, tmp_path: Path, monkeypatch):
    given = {"dev": place / "dev.csv", "test": PAIRS[1::2]}
    notes = Bookkeeper.on_save

    def interrupt(self: Bookkeeper, *args: Any, **options: Any) -> None:
        notes(self, *args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Bookkeeper, "on_save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        adjust(str(place / "tiny"), place / "train.csv", tmp_path / "out", **given, **QUICK)
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "out.part" / "journal.jsonl").is_file()
    monkeypatch.undo()
    adjust(str(place / "tiny"), place / "train.csv", tmp_path / "out", **given, **QUICK)
    assert same_weights(trained, tmp_path / "out")
    assert read_record(trained) == read_record(tmp_path / "out")
    assert not (tmp_path / "out.part").exists()


@pytest.mark.slow
def test_a_killed_process_resumes_to_the_same_weights(place, tmp_path: Path):
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


def test_a_training_with_other_settings_does_not_resume(place, tmp_path: Path):
    part = tmp_path / "out.part"
    part.mkdir()
    asked = {"format": "pairlens.batch", "asked": {"lr": 1}}
    epoch = {"epoch": 1, "step": 5, "loss": 1.0, "dev": None}
    (part / "journal.jsonl").write_text(f"{json.dumps(asked)}\n{json.dumps(epoch)}\n")
    with pytest.raises(InputError, match=r"beginning of another run: .*lr was 1 and is 0.002"):
        adjust(str(place / "tiny"), PAIRS, tmp_path / "out", **QUICK)
    adjust(str(place / "tiny"), PAIRS, tmp_path / "out", restart=True, **quick(epochs=1))
    assert not part.exists()


def test_unusable_data_settings_devices_and_models_raise(place, tmp_path: Path):
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
        with pytest.raises(InputError, match="cannot be used"):
            train(device="cuda")
    with pytest.raises(ModelError, match="static embeddings"):
        adjust(static(), PAIRS, tmp_path / "out", **QUICK)
    assert not list(tmp_path.iterdir())


def static() -> SentenceTransformer:
    module = zoo.modules.StaticEmbedding(zoo.tokenizer("bert").backend_tokenizer, embedding_dim=8)
    return SentenceTransformer(modules=[module], device="cpu")


def test_adjust_command_trains_and_refuses_other_settings(place, tmp_path: Path):
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
