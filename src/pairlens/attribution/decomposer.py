"""Where texts are decomposed: each distinct one once, those of one length together."""

from __future__ import annotations

import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import pairlens
from pairlens import progress
from pairlens.attribution.contributions import Contributions
from pairlens.autodiff.streams import Steps, together
from pairlens.errors import InputError, ModelError, TruncationWarning, warn, whole
from pairlens.methods import Method
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.methods.occlusion import Occlusion
from pairlens.methods.shapley import NEAR, Shapley
from pairlens.model.encoder import Encoder
from pairlens.model.function import EmbeddingFunction
from pairlens.model.tokenize import Text
from pairlens.quadrature.integrate import Integral
from pairlens.quadrature.rules import Rule
from pairlens.shapes import Array
from pairlens.text.units import Level, Span, Unit, group, level_spans, plain_level

BATCH = 32
"""Texts that are decomposed together."""
BESIDE = 2
"""Batches that are under way at a time on a CUDA device: a pair's texts rarely have one length."""
CACHE_BYTES = 2**32
"""How much is kept of the contributions of texts that may come again."""


class Job(NamedTuple):
    """A text to decompose, in a role, at a level."""

    text: str
    role: str | None
    spans: str | tuple[Span, ...]

    @classmethod
    def of(cls, text: Any, role: str | None, level: Level) -> Job:
        """A job from what a user gave."""
        if not isinstance(text, str):
            raise InputError(f"expected a text, and got {type(text).__name__}: {text!r:.60}.")
        return cls(text, role, level if isinstance(level, str) else tuple(level_spans(text, level)))

    @property
    def level(self) -> Level:
        """The level, as `tokens.group` takes it."""
        return self.spans if isinstance(self.spans, str) else list(self.spans)


class Decomposer:
    """Decomposes texts with one method, rule and space, and remembers them.

    Args:
        encoder: the model.
        method: how to take a text apart; None for the default.
        rule: how to integrate.
        space: the embedding to take apart, "unit", "output" or "raw".
        strict: raise on texts longer than the model takes, instead of warning.
    """

    def __init__(
        self,
        encoder: Encoder | EmbeddingFunction,
        method: Method | None,
        rule: Rule,
        space: str,
        *,
        strict: bool = False,
    ) -> None:
        self.encoder = encoder
        self.method = method
        self.rule = rule
        self.space = space
        self.strict = strict
        self._done: OrderedDict[Job, Contributions] = OrderedDict()
        self._size = 0

    def knows(self, jobs: Iterable[Job]) -> bool:
        """Whether all these texts are remembered."""
        return all(job in self._done for job in jobs)

    def decompose(self, jobs: Sequence[Job]) -> Mapping[Job, Contributions]:
        """The contributions of all these texts, and perhaps of some from before."""
        asked = dict.fromkeys(jobs)
        self._forget(asked)
        missing = [job for job in asked if job not in self._done]
        read = {job: self._read(job) for job in missing}
        buckets: dict[tuple[str | None, int], list[Job]] = {}
        for job in missing:
            method = self.method or default_method(self.encoder, job.role)
            # Deletion makes texts of all lengths anyway; an integral wants states of one shape.
            length = 0 if isinstance(method, Shapley | Occlusion) else len(read[job].tokens)
            buckets.setdefault((job.role, length), []).append(job)
        parts = [bucket[i : i + BATCH] for bucket in buckets.values() for i in range(0, len(bucket), BATCH)]
        reached, total = 0, sum(len(text.tokens) ** 2 for text in read.values())
        beside = self._beside()
        for some in (parts[i : i + beside] for i in range(0, len(parts), beside)):
            until = reached + sum(len(read[job].tokens) ** 2 for part in some for job in part)
            with progress.share(reached / total, until / total):
                works = (self._decompose(part, [read[job] for job in part]) for part in some)
                found = together(works, self.encoder.lanes(len(some)) if isinstance(self.encoder, Encoder) else ())
            for part, contributions in zip(some, found, strict=True):
                self._done.update(zip(part, contributions, strict=True))
                self._size += sum(map(_bytes, contributions))
            reached = until
        return self._done

    def _beside(self) -> int:
        """How many batches are under way at a time: while one waits for a device, another goes on.

        A processor does not wait, and who watches wants one after the other.
        """
        device = getattr(self.encoder, "device", None)
        return BESIDE if device is not None and device.type == "cuda" and not progress.watched() else 1

    def features(self, job: Job, unit: int) -> Contributions:
        """What the hidden dimensions of one unit contribute: a row for every dimension, (width, dim)."""
        if isinstance(self.encoder, EmbeddingFunction) or not isinstance(self.method, IntegratedJacobian):
            raise ModelError("only integrated-jacobian has hidden dimensions to look at, and a black box has none.")
        if self.encoder.route(job.role).static:
            raise ModelError("static embeddings have no hidden dimensions apart from the embedding's own.")
        text = self._read(job)
        units, index = group(text.text, text.units, job.level, finest=True)
        unit = whole(f"the unit of {job.text!r:.40}", unit, 0, len(units) - 1)
        tokens = [position for position, place in enumerate(index) if place == unit]
        space = self.encoder.space(job.role, self.space)
        integral, output = self.method.features(self.encoder, text, tokens, space=space, rule=self.rule)
        return _assemble(text, (), integral, output, {"model": self.encoder.name, "space": space})

    def _read(self, job: Job) -> Text:
        text = self.encoder.read(job.text, job.role)
        if text.truncated:
            message = (
                f"the text {job.text[:40]!r}… is longer than the model takes ({len(text.tokens)} tokens): only what "
                "fits is scored and explained."
            )
            if self.strict:
                raise InputError(message)
            warn(message, TruncationWarning)
        return text

    def _decompose(self, jobs: Sequence[Job], texts: Sequence[Text]) -> Steps[list[Contributions]]:
        """Contributions of texts of one length and role."""
        role, encoder = jobs[0].role, self.encoder
        method = self.method or default_method(encoder, role)
        space = encoder.space(role, self.space)
        grouped = [group(text.text, text.units, job.level, finest=True) for job, text in zip(jobs, texts, strict=True)]
        labels, counts = [index for _, index in grouped], [len(units) for units, _ in grouped]
        settings: dict[str, Any] = {
            "pairlens": pairlens.__version__,
            "model": encoder.name,
            "method": method.name,
            "fingerprint": encoder.fingerprint,
            "rule": repr(self.rule),
            **method.describe(encoder, role),
            "space": space,
            "dtype": encoder.precision,
            "role": role,
        }
        options: dict[str, Any] = {"space": space, "rule": self.rule}
        if isinstance(method, IntegratedJacobian) and isinstance(encoder, Encoder):
            found = yield from method.decomposing(encoder, texts, labels, counts, **options)
        else:
            own: Any = encoder
            found = method.decompose(own, texts, labels, counts, **options)
        contributions = []
        for job, text, (units, _), (integral, output) in zip(jobs, texts, grouped, found, strict=True):
            own = {**settings, "level": plain_level(job.level), "nodes": integral.nodes}
            contributions.append(_assemble(text, units, integral, output, own))
        return contributions

    def _forget(self, keep: Container[Job]) -> None:
        """Drop the oldest contributions, but for these, where they take too much memory."""
        if self._size <= CACHE_BYTES:
            return
        for job in [job for job in self._done if job not in keep]:
            self._size -= _bytes(self._done.pop(job))
            if self._size <= CACHE_BYTES:
                break


def _bytes(c: Contributions) -> int:
    """What contributions take: their values and, of sampled texts, the draws of their errors, which are most of it."""
    arrays = (c.values, c.noise_weights, c.noise_residuals)
    return sum(array.nbytes for array in arrays if array is not None)


def default_method(encoder: Encoder | EmbeddingFunction, role: str | None) -> Method:
    """The method closest to real deletions (docs/faithfulness.md).

    Static embeddings are their own decomposition, and an adjusted model is made for the papers': its padding reference
    is zero.
    """
    static = isinstance(encoder, Encoder) and encoder.route(role).static
    return IntegratedJacobian() if static or encoder.adjusted else Shapley(near=NEAR)


def _assemble(
    text: Text, units: tuple[Unit, ...], integral: Integral, output: Array, settings: dict[str, Any]
) -> Contributions:
    return Contributions(
        text=text.text,
        units=units,
        tokens=text.tokens,
        values=integral.values,
        error=integral.error,
        reference=integral.reference,
        embedding=integral.embedding,
        output=output.astype(np.float64),
        gap=integral.gap,
        noise_weights=None if integral.noise is None else integral.noise[0],
        noise_residuals=None if integral.noise is None else integral.noise[1],
        truncated=text.truncated,
        settings=settings,
    )


def windows(
    items: Iterable[Any], size: int, progress: bool, noun: str, read: Callable[[Any], Any]
) -> Iterator[list[Any]]:
    """Items, as `read` reads them, in lists of at most `size`. What came before an error comes first.

    With `progress`, a bar is shown on a terminal.
    """
    size = whole("window", size, 1)
    total = len(items) if isinstance(items, Sequence) else None
    left = map(read, items)
    with _bar(total, noun) if progress else contextlib.nullcontext() as bar:
        while True:
            window: list[Any] = []
            try:
                for item in itertools.islice(left, size):
                    window.append(item)  # noqa: PERF402  what came before an error is kept
            except Exception:
                if window:
                    yield window
                raise
            if not window:
                return
            yield window
            if bar is not None:
                bar.update(len(window))


def _bar(total: int | None, noun: str) -> Any:
    from tqdm.auto import tqdm

    # None: shown only where standard error is a terminal.
    return tqdm(total=total, unit=f" {noun}", disable=None)
