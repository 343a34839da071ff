"""sentence-transformers' trainer, made repeatable: the order of pairs depends only on the seed and the epoch."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainer
from torch import Tensor, nn
from torch.utils.data import BatchSampler, Sampler
from tqdm.auto import tqdm
from transformers import TrainerCallback

from pairlens.io import Journal, Record

Scores = dict[str, float]


class Trainer(SentenceTransformerTrainer):
    """The trainer, with an order of pairs that a resumed training repeats, and without a model card of its own."""

    def get_batch_sampler(self, dataset: Any, batch_size: int, drop_last: bool, *_: Any, **__: Any) -> BatchSampler:
        """Return batches in an order that depends only on the seed and the epoch."""
        return EpochBatches(EpochOrder(len(dataset), self.args.seed), batch_size, drop_last)

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Do nothing: `card.py` writes the card."""


class EpochOrder(Sampler[int]):
    """A permutation for every epoch, from the seed and the epoch's number."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed, self.epoch = count, seed, 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        return iter(torch.randperm(self.count, generator=generator).tolist())


class EpochBatches(BatchSampler):
    """Batches of an `EpochOrder`; the trainer sets the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, from 0."""
        self.sampler.epoch = epoch  # pyright: ignore[reportAttributeAccessIssue]


class SimilarityLoss(nn.Module):
    """The mean squared error between the similarity of two embeddings and their score."""

    def __init__(self, model: nn.Module, objective: str) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        a, b = (self.model(features)["sentence_embedding"] for features in sentence_features)
        similarities = torch.cosine_similarity(a, b) if self.objective == "cosine" else (a * b).sum(-1)
        return nn.functional.mse_loss(similarities, labels.to(similarities).view(-1))


class Bookkeeper(TrainerCallback):
    """Measures after every epoch and writes it to the journal once the checkpoint is complete.

    A checkpoint that is not in the journal does not count.
    """

    def __init__(self, folder: Path, journal: Journal, measure: Callable[[], Scores] | None, objective: str) -> None:
        self._folder = folder
        self._journal = journal
        self._measure = measure
        self._objective = objective
        self._dev: Scores | None = None

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure on dev."""
        self._dev = None if self._measure is None else self._measure()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the checkpoint to the journal, and remove all but the last and the best."""
        loss = sum(
            entry["loss"] for entry in state.log_history if "loss" in entry and entry["step"] == state.global_step
        )
        self._journal.append([{"epoch": round(state.epoch), "step": state.global_step, "loss": loss, "dev": self._dev}])
        records = list(self._journal.records())
        needed = {checkpoint(self._folder, record) for record in (records[-1], best(records, self._objective))}
        for path in self._folder.glob("checkpoint-*"):
            if path not in needed:
                shutil.rmtree(path)


class ProgressBar(TrainerCallback):
    """A progress bar over all steps, shown on a terminal."""

    def __init__(self, show: bool, name: str) -> None:
        self._show = show
        self._name = name
        self._bar: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Show the bar."""
        # None: shown only where standard error is a terminal.
        disable = None if self._show else True
        self._bar = tqdm(
            total=state.max_steps, initial=state.global_step, desc=self._name, unit=" steps", disable=disable
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Advance the bar by one step."""
        self._bar.update(1)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the bar."""
        self._bar.close()


def checkpoint(folder: Path, record: Record) -> Path:
    """Return the folder of a record's checkpoint."""
    return folder / f"checkpoint-{record['step']}"


def best(records: list[Record], objective: str) -> Record:
    """Return the record of the epoch with the best dev score by the objective, or the last one without dev scores."""
    if any(record["dev"] is None for record in records):
        return records[-1]
    return max(records, key=lambda record: record["dev"][objective])
