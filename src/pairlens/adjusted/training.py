"""`pairlens.adjust`: train a model so that its attributions are exact, or its unadjusted twin, for comparison."""

from __future__ import annotations

import copy
import math
import shutil
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pairlens
from pairlens.adjusted.data import Data, ScoredPairs, check_evaluation, read_pairs
from pairlens.adjusted.recipe import Recipe
from pairlens.errors import InputError, MissingExtra, ModelError, choose
from pairlens.io.journal import Journal, differences
from pairlens.model.adjusted_layout import ADJUSTED, class_name
from pairlens.model.bundled import DEFAULT_MODEL, offline_model
from pairlens.model.loading import fingerprint, load

DEVICES = ("cpu", "cuda", "mps")


@dataclass(frozen=True)
class Splits:
    """The pairs to train on and, where given, those to choose the best epoch by and those to report."""

    train: ScoredPairs
    dev: ScoredPairs | None
    test: ScoredPairs | None

    def describe(self) -> dict[str, Any]:
        """For the record."""
        return {name: own and own.describe() for name, own in vars(self).items()}


def adjust(
    base: Any,
    data: Data,
    out: str | Path,
    *,
    objective: str = "cosine",
    adjusted: bool = True,
    dev: Data | None = None,
    test: Data | None = None,
    epochs: int = 5,
    batch_size: int = 16,
    lr: float = 2e-5,
    weight_decay: float = 0.1,
    warmup: float = 0.1,
    seed: int = 0,
    max_score: float | None = None,
    columns: tuple[str, str] | None = None,
    score: str | None = None,
    device: str | None = None,
    precision: str = "float32",
    restart: bool = False,
    progress: bool = True,
) -> Any:
    """Train an adjusted model: e(x) = e'(x) - e'(r), so that token-pair attributions sum to the score itself.

    The defaults are the papers' recipe. The model goes to the folder `out`, whole or not at all; what is under way is
    in `out` with ".part" behind it, and the same call again goes on from there.

    Args:
        base: the model to begin with: a hub id, a folder, a SentenceTransformer (left as it is), or None for
            all-MiniLM-L6-v2.
        data: scored pairs to train on: a table, a hub dataset, or triples; see `pairlens.adjusted.data.read_pairs`.
        out: the folder of the trained model.
        objective: "cosine", or "dot", which leaves out a final Normalize.
        adjusted: False trains the unadjusted twin in the same way.
        dev: pairs that choose the best epoch; without them it is the last.
        test: pairs to measure the result by.
        epochs: as in `Recipe`, like all options down to `seed`.
        max_score: what the scores are divided by; None is 5 where any score is above 1, else 1.
        columns: the names of the two columns of texts; None to find them.
        score: the name of the column of scores; likewise.
        device: "cpu", "cuda" or "mps"; the fastest there is by default.
        precision: what is computed in, "float32", "bfloat16" or "float16".
        restart: forget what an earlier call has begun; a finished model is never overwritten.
        progress: show a progress bar.

    Returns:
        The trained SentenceTransformer, as it was read back from `out`.

    Raises:
        InputError: the data, a setting or the folder cannot be used.
        ModelError: the model cannot be adjusted.
        MissingExtra: sentence-transformers' trainer needs packages that are not installed.
    """
    recipe = Recipe(objective, adjusted, epochs, batch_size, lr, weight_decay, warmup, seed, precision)
    place = _check_device(device)
    _require_trainer()
    read: dict[str, Any] = {"columns": columns, "score": score, "max_score": max_score}
    splits = Splits(
        read_pairs(data, **read),
        None if dev is None else check_evaluation(read_pairs(dev, split="validation", **read)),
        None if test is None else check_evaluation(read_pairs(test, split="test", **read)),
    )
    from pairlens.adjusted.repeatable import repeatable

    folder = Path(out).expanduser()
    with repeatable(recipe.seed, place):
        model, name = starting_model(base, recipe, place)
        asked = {
            "pairlens": pairlens.__version__,
            "base": name,
            "weights": fingerprint(model),
            "data": splits.describe(),
            **asdict(recipe),
        }
        if not _finished(folder, asked):
            _train(model, recipe, splits, asked, folder, place, restart=restart, progress=progress)
        shutil.rmtree(_part(folder), ignore_errors=True)  # also that of a call that was cut off just before
    return load(str(folder), place)[0]


def starting_model(base: Any, recipe: Recipe, device: str) -> tuple[Any, str]:
    """The model as training begins: adjusted or not, of float32 weights, with the objective as its similarity."""
    from pairlens.adjusted.wrapping import rebuilt, wrap

    if base in (DEFAULT_MODEL, DEFAULT_MODEL.split("/")[-1]) and offline_model() is not None:
        base = None
    model, name, already = load(base, device)
    if not isinstance(base, str | Path | None):
        model = copy.deepcopy(model)
    if already and class_name(model[0]) != ADJUSTED:
        raise ModelError(f"{name} is one of the papers' own adjusted models, which can be explained but not trained.")
    if already and not recipe.adjusted:
        raise ModelError(f"{name} is adjusted already, so it has no unadjusted twin; begin with the model it is from.")
    model = model if already or not recipe.adjusted else wrap(model)
    modules = list(model.children())
    if recipe.objective == "dot":
        # As in the first paper: after Normalize a dot product is the cosine.
        modules = [module for module in modules if type(module).__name__ != "Normalize"]
    return rebuilt(model, modules, similarity_fn_name=recipe.objective).float(), name


def _train(
    model: Any,
    recipe: Recipe,
    splits: Splits,
    asked: dict[str, Any],
    folder: Path,
    device: str,
    *,
    restart: bool,
    progress: bool,
) -> None:
    """Train or go on training, then put the best epoch's model where it belongs."""
    from pairlens.adjusted import card
    from pairlens.adjusted.scores import measure_scores
    from pairlens.adjusted.trainer import best, checkpoint

    part = _part(folder)
    try:
        part.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {part} cannot be made: {error.strerror}. Give another place.") from error
    with Journal(part / "journal.jsonl", asked, restart=restart) as journal:
        _run(model, recipe, splits, part, journal, device, progress=progress)
        records = list(journal.records())
        chosen = best(records, recipe.objective)
        trained = load(str(checkpoint(part, chosen)), device)[0]
        record = {
            "settings": asked,
            "epochs": records,
            "epoch": chosen["epoch"],
            "device": _device_name(device),
            "dev": chosen["dev"],
            "test": None if splits.test is None else measure_scores(trained, splits.test),
        }
        card.write_model(part / "model", trained, record)
        if folder.is_dir():
            folder.rmdir()  # it is empty, as `_finished` has seen
        (part / "model").rename(folder)


def _run(
    model: Any, recipe: Recipe, splits: Splits, part: Path, journal: Journal, device: str, *, progress: bool
) -> None:
    """All epochs that are left."""
    from datasets import Dataset
    from transformers import PrinterCallback, ProgressCallback

    from pairlens.adjusted.scores import measure_scores
    from pairlens.adjusted.trainer import Bookkeeper, ProgressBar, SimilarityLoss, Trainer, checkpoint

    records = list(journal.records())
    if len(records) >= recipe.epochs:
        return
    done = [checkpoint(part, record) for record in records]
    for path in part.glob("checkpoint-*"):
        if path not in done:
            shutil.rmtree(path)  # cut off while it was written
    if done and not done[-1].is_dir():
        raise InputError(f"{done[-1]}, from which the training would go on, is gone. Begin anew with restart.")
    train, dev = splits.train, splits.dev
    trainer = Trainer(
        model=model,
        args=_arguments(model, recipe, len(train), part, device),
        train_dataset=Dataset.from_dict({"a": list(train.a), "b": list(train.b), "score": list(train.scores)}),
        loss=SimilarityLoss(model, recipe.objective),
        callbacks=[
            Bookkeeper(part, journal, None if dev is None else lambda: measure_scores(model, dev), recipe.objective),
            ProgressBar(progress, "training"),
        ],
    )
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    collator: Any = trainer.data_collator
    if hasattr(collator, "include_prompt_lengths"):  # before sentence-transformers 5.4 only on request
        collator.include_prompt_lengths = True
    trainer.train(resume_from_checkpoint=str(done[-1]) if done else None)


def _arguments(model: Any, recipe: Recipe, pairs: int, part: Path, device: str) -> Any:
    from sentence_transformers import SentenceTransformerTrainingArguments

    steps = recipe.epochs * math.ceil(pairs / recipe.batch_size)
    prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(part),
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch_size,
        learning_rate=recipe.lr,
        weight_decay=recipe.weight_decay,
        warmup_steps=math.ceil(recipe.warmup * steps),
        lr_scheduler_type="linear",
        optim="adamw_torch",
        seed=recipe.seed,
        bf16=recipe.precision == "bfloat16",
        fp16=recipe.precision == "float16",
        use_cpu=device == "cpu",
        prompts=prompt or None,
        eval_strategy="no",
        save_strategy="epoch",
        logging_strategy="epoch",
        dataloader_pin_memory=device == "cuda",
        disable_tqdm=True,
        report_to="none",
    )
    _ = arguments.device  # found out now, so that what follows stays
    arguments._n_gpu = min(arguments.n_gpu, 1)  # one training is one device's: several would take larger batches
    return arguments


def _part(folder: Path) -> Path:
    """Where a training is while it is under way."""
    return folder.with_name(f"{folder.name}.part")


def _finished(folder: Path, asked: dict[str, Any]) -> bool:
    """Whether the folder holds the very model that was asked for; raises if it holds anything else."""
    from pairlens.adjusted import card

    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    before = card.read_record(folder)
    if before is None:
        raise InputError(f"{folder} exists, and is no model that pairlens has trained. Give another place, or move it.")
    changed = differences(before["settings"], asked)
    if changed:
        raise InputError(
            f"{folder} holds a model that was trained otherwise: {'; '.join(changed)}. Give another place, or move it."
        )
    return True


def _check_device(device: str | None) -> str:
    """The device to train on."""
    import torch

    found = [name for name in DEVICES if name == "cpu" or getattr(torch, name).is_available()]
    if device is None:
        return found[-1]
    if choose("device", device, DEVICES) not in found:
        raise InputError(f"device {device!r} cannot be used on this machine, which has {', '.join(found)}.")
    return device


def _device_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else device


def _require_trainer() -> None:
    for package in ("datasets", "accelerate"):
        if find_spec(package) is None:
            raise MissingExtra(package, "train")
