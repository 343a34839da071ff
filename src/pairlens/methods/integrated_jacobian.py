"""The papers' decomposition: integrate the tail's Jacobian along the straight path from a reference to the text."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlens import progress
from pairlens.autodiff.dual import LIMITS, Groups, grouped
from pairlens.autodiff.streams import Steps, finish
from pairlens.autodiff.tail import Tail, Then
from pairlens.errors import InputError, ModelError, NotConverged, NumericalError, choose, whole
from pairlens.linalg import length
from pairlens.methods.static import decompose_static
from pairlens.model.encoder import Encoder
from pairlens.model.reference import REFERENCES, reference_token
from pairlens.model.states import Heads
from pairlens.model.tokenize import Text
from pairlens.quadrature import planner
from pairlens.quadrature.integrate import Integral, integrating, look, measured, spread
from pairlens.quadrature.paths import Problems, at_once, rounding, values
from pairlens.quadrature.planner import SAMPLES, Habit, first_points
from pairlens.quadrature.rules import Adaptive, Rule, Table
from pairlens.shapes import Array, States

Decomposed = tuple[Integral, Array]
"""A text's contributions, and the model's own output, (dim,)."""
TYPICAL = (
    "A woman is reading a book to two children in the garden.",
    "Prices rose by 3 percent last year, the office said on Monday, although most people had expected them to fall.",
    "No, it isn't!",
    "The weather was fine.",
)
"""Texts that say how many nodes a layer usually takes."""


@dataclass(frozen=True)
class IntegratedJacobian:
    """Integrated Jacobians from layer ℓ to the embedding.

    Attributes:
        layer: 0, the embedding layer's output, to L, the last layer's; negative ones count from the end.
        reference: where the path starts: "padding" (the papers'), "mask" or "zero".
    """

    layer: int = 0
    reference: str = "padding"
    name = "integrated-jacobian"

    def __post_init__(self) -> None:
        choose("reference", self.reference, REFERENCES)
        # Frozen, but a NumPy integer is to be a plain one. How many layers there are, the model will say.
        object.__setattr__(self, "layer", whole("layer", self.layer, -10_000, 10_000))

    def describe(self, encoder: Encoder, role: str | None) -> dict[str, Any]:
        """What of this method belongs into a result's settings."""
        if encoder.route(role).static:
            return {"layer": 0, "reference": "zero"}
        _, token = reference_token(self.reference, encoder.route(role).reader)
        return {
            "layer": encoder.layer_index(self.layer, role),
            "reference": self.reference,
            "reference_token": token,
            **({} if encoder.matmul == "highest" else {"precision": encoder.matmul}),
        }

    def decompose(
        self,
        encoder: Encoder,
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        space: str,
        rule: Rule,
    ) -> list[Decomposed]:
        """Contributions of groups of tokens, for texts of one length and role; see `Method`."""
        return finish(self.decomposing(encoder, texts, labels, counts, space=space, rule=rule))

    def decomposing(
        self,
        encoder: Encoder,
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        space: str,
        rule: Rule,
    ) -> Steps[list[Decomposed]]:
        """As `decompose`, stopping where it would wait for a device."""
        role = texts[0].role
        if encoder.route(role).static:
            return decompose_static(encoder, texts, labels, counts, self.reference)
        batch = _Batch(texts, labels, counts, space)
        with encoder.running():
            habit = self._habit(encoder, role, space, rule)
        found: dict[int, Decomposed] = {}
        if isinstance(habit, Table) and isinstance(rule, Adaptive) and batch.is_launched(encoder, habit):
            try:
                solved = yield from self._at_once(encoder, batch, habit)
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                solved = []
            found, habit = {i: own for i, own in enumerate(solved) if own[0].gap <= rule.tol}, None
        left = [i for i in range(len(texts)) if i not in found]
        if left:
            planned = yield from self._planned(encoder, batch.part(left), rule, habit)
            found |= zip(left, planned, strict=True)
        return [found[i] for i in range(len(texts))]

    def _at_once(self, encoder: Encoder, batch: _Batch, table: Table) -> Steps[list[Decomposed]]:
        """All with one table and in one launch, whatever the gaps will be."""
        groups = max(batch.counts)
        marks = grouped(np.array(batch.labels), groups, encoder.dtype, encoder.device)

        def work(tail: Tail, x: States, r: States, given: Sequence[Tensor]) -> Tensor:
            return at_once(Problems(tail, x, r, NOWHERE, (), cost=1, marks=Groups(*given[1:])), given[0], groups)

        inputs = (_asked(table, len(batch.texts)), marks.labels, marks.members, marks.valid)
        with encoder.running():
            with progress.unseen():  # it is not known yet whether this will be all
                then = Then((groups, encoder.matmul), inputs, work)
                layer = encoder.layer_index(self.layer, batch.role)
                pending = encoder.launch(batch.texts, layer, self.reference, batch.space, then)
            yield
            _, plain, output, starts, found = encoder.arrived(pending)
        return list(zip(measured(found, starts, plain, batch.counts, len(table)), output, strict=True))

    def _planned(self, encoder: Encoder, batch: _Batch, rule: Rule, habit: Habit | None) -> Steps[list[Decomposed]]:
        """Each with as many nodes as it needs; out of habit a table is tried first."""
        with encoder.running():
            heads = self._heads(encoder, batch.texts, batch.space)
            problems = self._problems(encoder, heads)
            looked = None if isinstance(habit, Table) else look(problems, rule, habit)
            yield
            moved, plain, output, starts = encoder.arrived(heads.pending)
            seen = [] if looked is None else looked.arrays()
            if habit is not None:  # the ends are the model's own
                between = seen or [plain[:0]] * len(plain)
                seen = [np.vstack(parts) for parts in zip(starts, between, plain, strict=True)]
            # Tokens that are the same in the reference (special ones at layer 0) contribute nothing: no tangent there.
            active = [sorted(set(itertools.compress(*row))) for row in zip(batch.labels, moved, strict=True)]
            compact = np.array([_renumbered(row, own) for row, own in zip(batch.labels, active, strict=True)])
            groups = tuple(map(len, active))
            problems = replace(problems, labels=torch.from_numpy(compact)[..., None], groups=groups)
            if encoder.takes_duals(batch.role):
                marks = grouped(compact, max(groups), heads.x.dtype, heads.x.device)
                problems = replace(problems, marks=marks)
            integrals = yield from self._integrate(encoder, heads, problems, rule, seen, plain, habit)
        rows = [spread(*parts) for parts in zip(integrals, active, batch.counts, strict=True)]
        return list(zip(rows, output, strict=True))

    def features(
        self, encoder: Encoder, text: Text, tokens: Sequence[int], *, space: str, rule: Rule
    ) -> tuple[Integral, Array]:
        """Contributions of the hidden dimensions of some tokens together, (width, dim), and the model's own output."""
        with encoder.running():
            heads = self._heads(encoder, [text], space)
            _, plain, output, _ = encoder.arrived(heads.pending)
            _, count, width = heads.x.shape
            # All the rest is a group too, so that the total can be measured.
            labels = torch.full((1, count, width), width)
            labels[0, list(tokens)] = torch.arange(width)
            cost = encoder.cost(count, text.role)
            problems = replace(self._problems(encoder, heads), labels=labels, groups=(width + 1,), cost=cost, limit=0.0)
            looked = look(problems, rule)
            integral = finish(self._integrate(encoder, heads, problems, rule, looked.arrays(), plain))[0]
        own = replace(integral, values=integral.values[:width], error=integral.error[:width])
        return own, output[0]

    def _habit(self, encoder: Encoder, role: str | None, space: str, rule: Rule) -> Habit | None:
        """What most texts need at this layer, found on a few; None where that is not worth while.

        With a habit the ends of a path are not looked at: the model's own forward passes are taken for them. So it is
        seen here that these are the same.
        """
        if not isinstance(rule, Adaptive) or not encoder.has_starts(self.reference):
            return None

        def typical() -> Iterator[Array]:
            points = first_points(rule, SAMPLES[1])
            for text in TYPICAL:
                try:
                    heads = self._heads(encoder, [encoder.read(text, role)], space)
                    looked = values(self._problems(encoder, heads), [(0, points)])
                    _, plain, _, starts = encoder.arrived(heads.pending)
                except (InputError, NumericalError):
                    continue  # a model that cannot read this text may read others
                (seen,) = looked.arrays()
                if np.isfinite(seen).all():
                    _check(heads, [seen[[0, -1]].ravel()], [np.concatenate([starts[0], plain[0]])])
                    yield seen

        key = (encoder.layer_index(self.layer, role), self.reference, role, space, encoder.truncate_dim, rule)
        if key not in encoder.habits:
            with progress.unseen():
                encoder.habits[key] = planner.habit(rule, rounding(encoder.dtype), typical())
        return encoder.habits[key]

    def _heads(self, encoder: Encoder, texts: Sequence[Text], space: str) -> Heads:
        """The texts up to this method's layer."""
        role = texts[0].role
        if encoder.adjusted and self.reference != "padding":
            raise ModelError(
                "an adjusted model is zero at its padding reference, which its attributions rest on; "
                f"reference={self.reference!r} is for other models."
            )
        layer = encoder.layer_index(self.layer, role)
        encoder.takes_duals(role)  # The first time this runs a probe, which must not come between head and tail.
        return encoder.heads(texts, layer, self.reference, space)

    def _problems(self, encoder: Encoder, heads: Heads) -> Problems:
        """The paths of texts; which tokens belong together is still to be said."""
        tokens, role = heads.x.shape[1], heads.texts[0].role
        ruled = encoder.takes_duals(role)
        # Rules for tangents hold the scores of a few at a time.
        cost, budget = encoder.cost(tokens, role, scores=not ruled), encoder.budget(tokens, role)
        limit = LIMITS[encoder.matmul] if ruled else 0.0
        return Problems(encoder.tail(heads), heads.x, heads.r, NOWHERE, (), cost, budget, limit=limit)

    def _integrate(
        self,
        encoder: Encoder,
        heads: Heads,
        problems: Problems,
        rule: Rule,
        seen: Sequence[Array],
        embeddings: Array,
        habit: Habit | None = None,
    ) -> Steps[list[Integral]]:
        """Solve the problems, and see that they are about the model's own embeddings, (texts, dim).

        With a habit they were told so, and it was seen before; see `_habit`.
        """
        try:
            integrals = yield from integrating(problems, rule, seen, habit)
        except NotConverged as error:
            text = heads.texts[error.index].text
            raise NotConverged(f"in {text!r:.60} {error}", gap=error.gap, tol=error.tol) from None
        if encoder.adjusted:
            # The model subtracts its reference's embedding, which leaves exactly nothing of it.
            integrals = [
                replace(i, reference=np.zeros_like(i.reference), embedding=i.embedding - i.reference) for i in integrals
            ]
        if habit is None:
            _check(heads, [integral.embedding for integral in integrals], embeddings)
        return integrals


@dataclass(frozen=True)
class _Batch:
    """Texts of one length and role, with the group of every token and each text's number of groups."""

    texts: Sequence[Text]
    labels: Sequence[Sequence[int]]
    counts: Sequence[int]
    space: str

    @property
    def role(self) -> str | None:
        return self.texts[0].role

    def part(self, rows: Sequence[int]) -> _Batch:
        """Some of the texts."""
        texts, labels, counts = ([own[i] for i in rows] for own in (self.texts, self.labels, self.counts))
        return replace(self, texts=texts, labels=labels, counts=counts)

    def is_launched(self, encoder: Encoder, table: Table) -> bool:
        """Whether a device does all of it with this table in one launch."""
        size = len(self.texts) * len(table) * (max(self.counts) + 1) * len(self.texts[0].tokens)
        # In this order: what a model hands on besides states is known when it has run.
        return encoder.takes_duals(self.role) and encoder.launched(size, self.role)


@functools.lru_cache(maxsize=64)
def _asked(table: Table, texts: int) -> Tensor:
    """For every node of so many texts its text, its α and its weights, as `paths.at_once` takes them."""
    rows, nodes = np.meshgrid(np.arange(texts), np.arange(len(table)), indexing="ij")
    doubt = table.weights - table.check
    given = np.stack([rows, table.nodes[nodes], table.weights[nodes], doubt[nodes]])
    with torch.inference_mode(False):
        return torch.from_numpy(given.reshape(4, -1))


NOWHERE = torch.zeros(0)
"""Labels of no groups."""


def _check(heads: Heads, found: Iterable[Array], expected: Iterable[Array]) -> None:
    """See that the tail's embeddings, (dim,) each, are the model's own."""
    for own, plain in zip(found, expected, strict=True):
        miss = length(own - plain)
        if not miss <= 1e-3 * length(plain):
            raise ModelError(
                f"entering this model at layer {heads.layer} does not reproduce its own embedding (off by "
                f"{miss:.1e}), so it would explain another function. Please report the model's family."
            )


def _renumbered(labels: Sequence[int], active: Sequence[int]) -> list[int]:
    """Labels as places among the active ones, -1 for the others."""
    places = {group: place for place, group in enumerate(active)}
    return [places.get(group, -1) for group in labels]
