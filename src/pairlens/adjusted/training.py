"""`pairlens.adjust`: train a model whose attributions are exact, or its unadjusted twin for comparison."""

from __future__ import annotations

import copy
import math
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainingArguments
from transformers import PrinterCallback, ProgressCallback

import pairlens
from pairlens.adjusted.card import read_record, write_model
from pairlens.adjusted.data import Data, ScoredPairs, check_evaluation, read_pairs
from pairlens.adjusted.recipe import Recipe
from pairlens.adjusted.repeatable import repeatable
from pairlens.adjusted.scores import measure_scores
from pairlens.adjusted.trainer import Bookkeeper, ProgressBar, SimilarityLoss, Trainer, best, checkpoint
from pairlens.adjusted.wrapping import wrap
from pairlens.errors import InputError, ModelError, choose
from pairlens.io import Journal, differences, make_folder, require
from pairlens.model.adjusted_layout import ADJUSTED, class_name
from pairlens.model.loading import fingerprint, load, with_modules

DEVICES = ("cpu", "cuda", "mps")


@dataclass(frozen=True)
class Splits:
    """The pairs to train on and, if given, those that choose the best epoch and those that measure the result."""

    train: ScoredPairs
    dev: ScoredPairs | None
    test: ScoredPairs | None

    def describe(self) -> dict[str, Any]:
        """Return the splits' descriptions for the record, None for a split that was not given."""
        return {name: pairs and pairs.describe() for name, pairs in vars(self).items()}


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

    The defaults are the papers' recipe. The folder `out` appears when the training is finished; until then its
    checkpoints are in `out` with ".part" appended, and the same call resumes from there.

    Args:
        base: the model to start from: a hub id, a folder, a SentenceTransformer (left as it is), or None for
            all-MiniLM-L6-v2.
        data: scored pairs to train on: a table, a hub dataset, or triples; see `pairlens.adjusted.data.read_pairs`.
        out: the folder of the trained model.
        objective: "cosine", or "dot", which removes a final Normalize.
        adjusted: False trains the unadjusted twin in the same way.
        dev: pairs that choose the best epoch; without them the last epoch is kept.
        test: pairs that measure the result.
        epochs: as in `Recipe`, like all options down to `seed`.
        max_score: what the scores are divided by; None is 5 where any score is above 1, else 1.
        columns: the names of the two columns of texts; None to find them.
        score: the name of the column of scores; None to find it.
        device: "cpu", "cuda" or "mps"; by default the fastest one available.
        precision: the dtype to compute in, "float32", "bfloat16" or "float16".
        restart: discard the checkpoints of an earlier call; a finished model is never overwritten.
        progress: show a progress bar.

    Returns:
        The trained SentenceTransformer, loaded from `out`.

    Raises:
        InputError: the data, a setting or the folder cannot be used.
        ModelError: the model cannot be adjusted.
        MissingExtra: sentence-transformers' trainer needs packages that are not installed.
    """
    recipe = Recipe(objective, adjusted, epochs, batch_size, lr, weight_decay, warmup, seed, precision)
    device = _check_device(device)
    for package in ("datasets", "accelerate"):
        require(package, "train")
    read: dict[str, Any] = {"columns": columns, "score": score, "max_score": max_score}
    splits = Splits(
        read_pairs(data, **read),
        None if dev is None else check_evaluation(read_pairs(dev, split="validation", **read)),
        None if test is None else check_evaluation(read_pairs(test, split="test", **read)),
    )
    folder = Path(out).expanduser()
    with repeatable(recipe.seed, device):
        model, name = starting_model(base, recipe, device)
        asked = {
            "pairlens": pairlens.__version__,
            "base": name,
            "weights": fingerprint(model),
            "data": splits.describe(),
            **asdict(recipe),
        }
        if not _finished(folder, asked):
            _train(model, recipe, splits, asked, folder, device, restart=restart, progress=progress)
        # Also left behind by a call that was killed right after it moved the model.
        shutil.rmtree(_part(folder), ignore_errors=True)
    return load(str(folder), device)[0]


def starting_model(base: Any, recipe: Recipe, device: str) -> tuple[Any, str]:
    """Return the model to train and its name: adjusted or not, in float32, with the objective as its similarity."""
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
    return with_modules(model, modules, similarity_fn_name=recipe.objective).float(), name


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
    """Train or resume training, then move the best epoch's model to its folder."""
    part = make_folder(_part(folder), "place")
    with Journal(part / "journal.jsonl", asked, restart=restart) as journal:
        _run_epochs(model, recipe, splits, part, journal, device, progress=progress)
        records = list(journal.records())
        chosen = best(records, recipe.objective)
        trained = load(str(checkpoint(part, chosen)), device)[0]
        record = {
            "settings": asked,
            "epochs": records,
            "epoch": chosen["epoch"],
            "device": torch.cuda.get_device_name() if device == "cuda" else device,
            "dev": chosen["dev"],
            "test": None if splits.test is None else measure_scores(trained, splits.test),
        }
        write_model(part / "model", trained, record)
        if folder.is_dir():
            folder.rmdir()  # `_finished` has checked that it is empty
        (part / "model").rename(folder)


def _run_epochs(
    model: Any, recipe: Recipe, splits: Splits, part: Path, journal: Journal, device: str, *, progress: bool
) -> None:
    """Run the epochs that are not in the journal yet."""
    from datasets import Dataset

    records = list(journal.records())
    if len(records) >= recipe.epochs:
        return
    done = [checkpoint(part, record) for record in records]
    for path in part.glob("checkpoint-*"):
        if path not in done:
            shutil.rmtree(path)  # the process was killed while it wrote this checkpoint
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
    """Return the recipe as arguments of sentence-transformers' trainer."""
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
    _ = arguments.device  # computes the number of GPUs, which is then changed
    arguments._n_gpu = min(arguments.n_gpu, 1)  # on several GPUs the trainer would use larger batches
    return arguments


def _part(folder: Path) -> Path:
    """Return the folder of checkpoints of a training that is not finished."""
    return folder.with_name(f"{folder.name}.part")


def _finished(folder: Path, asked: dict[str, Any]) -> bool:
    """Return whether the folder holds exactly the model that is asked for; raise if it holds anything else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    before = read_record(folder)
    if before is None:
        raise InputError(f"{folder} exists, and is no model that pairlens has trained. Give another place, or move it.")
    changed = differences(before["settings"], asked)
    if changed:
        raise InputError(
            f"{folder} holds a model that was trained otherwise: {'; '.join(changed)}. Give another place, or move it."
        )
    return True


def _check_device(device: str | None) -> str:
    """Return the device to train on; None is the fastest one available."""
    available = [name for name in DEVICES if name == "cpu" or getattr(torch, name).is_available()]
    if device is None:
        return available[-1]
    if choose("device", device, DEVICES) not in available:
        raise InputError(f"device {device!r} cannot be used on this machine, which has {', '.join(available)}.")
    return device
