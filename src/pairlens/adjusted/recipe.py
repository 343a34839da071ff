"""The settings of a training; the defaults are the papers' recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pairlens.errors import InputError, choose, whole

OBJECTIVES = ("cosine", "dot")
PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Recipe:
    """The settings of a training, checked; the defaults are those of the first paper's appendix H.

    Attributes:
        objective: the similarity that is fitted to the score, "cosine" or "dot"; a dot model has no final Normalize.
        adjusted: whether embeddings are shifted by their reference's; False trains the unadjusted twin.
        epochs: passes over the pairs.
        batch_size: pairs in a step.
        lr: the highest learning rate of AdamW, which falls linearly to zero after the warm-up.
        weight_decay: of AdamW.
        warmup: the share of the steps in which the learning rate rises linearly.
        seed: of everything random: the order of the pairs, dropout.
        precision: the dtype to compute in; the weights stay float32.

    Example:
        >>> Recipe(objective="dot").epochs
        5
        >>> Recipe(warmup=10)
        Traceback (most recent call last):
            ...
        pairlens.errors.InputError: warmup is the share of the steps, from 0 to 1, not 10.
    """

    objective: str = "cosine"
    adjusted: bool = True
    epochs: int = 5
    batch_size: int = 16
    lr: float = 2e-5
    weight_decay: float = 0.1
    warmup: float = 0.1
    seed: int = 0
    precision: str = "float32"

    def __post_init__(self) -> None:
        choose("objective", self.objective, OBJECTIVES)
        choose("precision", self.precision, PRECISIONS)
        for name, low, high in (("epochs", 1, None), ("batch_size", 1, None), ("seed", 0, 2**32 - 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), low, high))
        if not isinstance(self.adjusted, bool):
            raise InputError(f"adjusted is True or False, not {self.adjusted!r}.")
        if not _number(self.lr) or not self.lr > 0:
            raise InputError(f"lr is a number above 0, for example 2e-5, not {self.lr!r}.")
        if not _number(self.weight_decay) or not self.weight_decay >= 0:
            raise InputError(f"weight_decay is a number of at least 0, not {self.weight_decay!r}.")
        if not _number(self.warmup) or not 0 <= self.warmup <= 1:
            raise InputError(f"warmup is the share of the steps, from 0 to 1, not {self.warmup!r}.")


def _number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
