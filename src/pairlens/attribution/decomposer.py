"""From texts to contributions: each distinct text is decomposed once, texts of one length together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import pairlens
from pairlens import progress
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.zoom import Inside, has_sentences, is_long, open_sentences, words_of
from pairlens.autodiff import Steps, together
from pairlens.errors import InputError, TruncationWarning, UnknownTokensWarning, warn
from pairlens.methods import Batch, Decomposition, Method, default_method
from pairlens.methods.sampled import Sampled
from pairlens.model import Text
from pairlens.quadrature import Rule
from pairlens.text import Level, Span, Unit, find_unit, group, level_spans, plain_level

BATCH = 32
"""Texts in one batch."""
CACHE_BYTES = 2**32
"""The size of the cache of contributions, which serves texts that come again."""


class Job(NamedTuple):
    """A text to decompose, in a role, at a level, with a prompt (None: the role's).

    Where it `zooms`, its level is that of sentences, of which some are then opened.
    """

    text: str
    role: str | None
    spans: str | tuple[Span, ...]
    prompt: str | None = None
    zooms: bool = False

    @classmethod
    def of(cls, text: Any, role: str | None, level: Level, prompt: str | None = None) -> Job:
        """The job for a text and a level that a user gave, checked."""
        if not isinstance(text, str):
            raise InputError(f"expected a text, and got {type(text).__name__}: {text!r:.60}.")
        return cls(text, role, level if isinstance(level, str) else tuple(level_spans(text, level)), prompt)

    @property
    def level(self) -> Level:
        """The level, as `units.group` takes it."""
        return self.spans if isinstance(self.spans, str) else list(self.spans)


class Decomposer:
    """Decomposes texts with one method, rule and space, and caches the results.

    Args:
        encoder: the model.
        method: how to decompose a text; None for the default of the text's role.
        rule: how to integrate.
        space: the embedding to decompose, "unit", "output" or "raw".
        strict: raise on texts longer than the model takes, instead of warning.
    """

    def __init__(self, encoder: Any, method: Method | None, rule: Rule, space: str, *, strict: bool = False) -> None:
        self.encoder = encoder
        self.method = method
        self.rule = rule
        self.space = space
        self.strict = strict
        self._cache: OrderedDict[Job, Contributions] = OrderedDict()
        self._cached_bytes = 0

    def job(self, text: Any, role: str | None, level: Level | None, prompt: str | None = None) -> Job:
        """The job for a text and a level that a user gave; None means words or, in long texts, "zoom"."""
        if level is not None and level != "zoom":
            return Job.of(text, role, level, prompt)
        job = Job.of(text, role, "word", prompt)
        if isinstance(self._method(role), Sampled):
            zooms = is_long(text) if level is None else has_sentences(text)
            return job._replace(spans="sentence", zooms=True) if zooms else job
        if level == "zoom":
            raise InputError(
                "level='zoom' goes from sentences to words by deletions, with method='banzhaf' or 'shapley'; methods "
                "that integrate add up at every level: use level='word', and at('sentence')."
            )
        return job

    def open_sentences(
        self, jobs: Sequence[Job], contributions: Sequence[Contributions], chosen: Sequence[Sequence[Unit]]
    ) -> list[Contributions]:
        """The contributions of texts, in those that zoom with the words of some sentences.

        Args:
            jobs: the texts.
            contributions: what `decompose` returned for each.
            chosen: the sentences to open in each.
        """
        wanted = [(job, unit) for job, units in zip(jobs, chosen, strict=True) if job.zooms for unit in units]
        inside = self._words_inside(list(dict.fromkeys(wanted)))
        return [
            open_sentences(c, {unit: inside[job, unit] for unit in units} if job.zooms else {})
            for job, c, units in zip(jobs, contributions, chosen, strict=True)
        ]

    def _words_inside(self, places: Sequence[tuple[Job, Unit]]) -> dict[tuple[Job, Unit], Inside]:
        """The words of sentences, by deletions inside each of them."""
        inside: dict[tuple[Job, Unit], Inside] = {}
        for start in range(0, len(places), BATCH):
            batch = places[start : start + BATCH]
            role = batch[0][0].role
            texts = [self.encoder.read(job.text, job.role, job.prompt) for job, _ in batch]
            words = [words_of(text.text, text.units, unit) for text, (_, unit) in zip(texts, batch, strict=True)]
            labels, counts = [index for _, index in words], [len(units) for units, _ in words]
            space = self.encoder.space(role, self.space, path=False)
            method = self._method(role)
            with progress.share(start / len(places), (start + len(batch)) / len(places)):
                done = method.decompose(self.encoder, Batch(texts, labels, counts, space), self.rule)
            inside |= {place: Inside(units, part) for place, (units, _), part in zip(batch, words, done, strict=True)}
        return inside

    def decompose(self, jobs: Sequence[Job]) -> Mapping[Job, Contributions]:
        """The contributions of all these texts; the mapping may hold earlier texts too."""
        wanted = dict.fromkeys(jobs)
        self._evict(keep=wanted)
        texts = {job: self._read(job) for job in wanted if job not in self._cache}
        batches = self._batches(texts)
        done, total = 0, sum(len(text.tokens) ** 2 for text in texts.values())
        concurrent = self._concurrent()
        for some in (batches[i : i + concurrent] for i in range(0, len(batches), concurrent)):
            until = done + sum(len(texts[job].tokens) ** 2 for batch in some for job in batch)
            with progress.share(done / total, until / total):
                steps = (self._decompose(batch, [texts[job] for job in batch]) for batch in some)
                results = together(steps, self.encoder.lanes(len(some)))
            for batch, contributions in zip(some, results, strict=True):
                self._cache.update(zip(batch, contributions, strict=True))
                self._cached_bytes += sum(map(_bytes, contributions))
            done = until
        return self._cache

    def _batches(self, texts: Mapping[Job, Text]) -> list[list[Job]]:
        """Jobs that are decomposed together: of one role and, unless the method deletes, of one length."""
        buckets: dict[tuple[str | None, int], list[Job]] = {}
        for job, text in texts.items():
            length = 0 if self._method(job.role).deletes else len(text.tokens)
            buckets.setdefault((job.role, length), []).append(job)
        return [bucket[i : i + BATCH] for bucket in buckets.values() for i in range(0, len(bucket), BATCH)]

    def _method(self, role: str | None) -> Method:
        return self.method or default_method(self.encoder, role)

    def _concurrent(self) -> int:
        """How many batches run beside each other: 1 on CPUs, and whenever progress is reported."""
        return 1 if progress.watched() else self.encoder.concurrent_batches

    def decompose_features(self, job: Job, unit: str | int) -> Contributions:
        """What the hidden dimensions of one unit contribute: a row for every dimension, (width, dim)."""
        text = self._read(job)
        units, index = group(text.text, text.units, job.level, finest=True)
        unit = find_unit(units, unit, f"the text {job.text!r:.40}")
        tokens = [position for position, place in enumerate(index) if place == unit]
        space, method = self.encoder.space(job.role, self.space), self._method(job.role)
        decomposition = method.decompose_features(self.encoder, text, tokens, space=space, rule=self.rule)
        return _contributions(text, (), decomposition, {"model": self.encoder.name, "space": space})

    def _read(self, job: Job) -> Text:
        text = self.encoder.read(job.text, job.role, job.prompt)
        if text.truncated:
            message = (
                f"the text {job.text[:40]!r}… is longer than the model takes ({len(text.tokens)} tokens): only what "
                "fits is scored and explained."
            )
            if self.strict:
                raise InputError(message)
            warn(message, TruncationWarning)
        if text.meaningless:
            warn(
                f"the model's tokenizer knows no word of {job.text[:40]!r}: to the model it is the same as any other "
                "such text.",
                UnknownTokensWarning,
            )
        return text

    def _decompose(self, jobs: Sequence[Job], texts: Sequence[Text]) -> Steps[list[Contributions]]:
        """Contributions of one batch of texts, yielding where the method would wait for a device."""
        role, encoder = jobs[0].role, self.encoder
        method = self._method(role)
        space = encoder.space(role, self.space, path=not method.deletes)
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
        decompositions = yield from method.decompose_in_steps(encoder, Batch(texts, labels, counts, space), self.rule)
        return [
            _contributions(
                text,
                _with_compounds(text, units, decomposition),
                decomposition,
                {
                    **settings,
                    **({"prompt": text.prompt} if text.prompt or job.prompt is not None else {}),
                    "level": plain_level(job.level),
                    "nodes": decomposition.nodes,
                },
            )
            for job, text, (units, _), decomposition in zip(jobs, texts, grouped, decompositions, strict=True)
        ]

    def _evict(self, keep: Container[Job]) -> None:
        """Drop the oldest contributions while the cache is too large; those of `keep` stay."""
        for job in [job for job in self._cache if job not in keep]:
            if self._cached_bytes <= CACHE_BYTES:
                return
            self._cached_bytes -= _bytes(self._cache.pop(job))


def _bytes(c: Contributions) -> int:
    """The memory of contributions: their values and, of texts with deletions, what was tried, which is larger."""
    return sum(array.nbytes for array in vars(c).values() if isinstance(array, np.ndarray))


def _with_compounds(text: Text, units: tuple[Unit, ...], decomposition: Decomposition) -> tuple[Unit, ...]:
    return (*units, *(Unit.compound(text.text, [units[i] for i in group]) for group in decomposition.compounds))


def _contributions(
    text: Text, units: tuple[Unit, ...], decomposition: Decomposition, settings: dict[str, Any]
) -> Contributions:
    weights, residuals = decomposition.noise or (None, None)
    trials = decomposition.trials
    return Contributions(
        text=text.text,
        units=units,
        tokens=text.tokens,
        values=decomposition.values,
        error=decomposition.error,
        reference=decomposition.reference,
        embedding=decomposition.embedding,
        output=decomposition.output.astype(np.float64),
        gap=decomposition.gap,
        noise_weights=weights,
        noise_residuals=residuals,
        tried=trials and trials.kept,
        tried_embeddings=trials and trials.embeddings,
        tried_predictions=trials and trials.predictions,
        tried_with_compounds=trials and trials.compound_predictions,
        truncated=text.truncated,
        unknown=text.unknown,
        settings=settings,
    )
