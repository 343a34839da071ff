"""Ways to explain the pairs of a study: a method, perhaps a layer, and what becomes of the reference's share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pairlens.attribution.treatments import space_for
from pairlens.lens import Lens

SIBLINGS = {"raw": ("ignore", "shift")}
"""Treatments that take the same embedding apart, so that one decomposition serves them all."""


@dataclass(frozen=True)
class View:
    """One way to explain pairs.

    Attributes:
        method: as `Lens.explain` has it.
        layer: of integrated-jacobian; None for the other methods.
        reference_terms: "project", "shift", "keep" or "ignore".

    Example:
        >>> View("integrated-jacobian", 5, "ignore").label
        'layer 5, ignore'
    """

    method: str
    layer: int | None
    reference_terms: str

    @property
    def name(self) -> str:
        """What it is called without the reference terms."""
        return self.method if self.layer is None else f"layer {self.layer}"

    @property
    def label(self) -> str:
        """What it is called in tables and pictures."""
        return f"{self.name}, {self.reference_terms}"

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of `Lens.explain`."""
        return {"method": self.method, "layer": self.layer, "reference_terms": self.reference_terms}

    def siblings(self, measure: str) -> list[View]:
        """The views whose explanations the same decomposition gives, this one among them."""
        terms = SIBLINGS.get(space_for(self.reference_terms, measure), (self.reference_terms,))
        return [View(self.method, self.layer, own) for own in terms]


@dataclass(frozen=True)
class Choice:
    """What a user asked for; None leaves it to the study.

    Attributes:
        method: "shapley", "fade", "integrated-jacobian", "occlusion" or "output".
        layers: of integrated-jacobian; negative ones count from the end.
        reference_terms: "project", "shift", "keep" or "ignore".
    """

    method: str | None = None
    layers: tuple[int, ...] | None = None
    reference_terms: str | None = None

    def standard(self, lens: Lens) -> list[View]:
        """The views of a study about what a model looks at: the library's default, then the papers' settings.

        What the user asked for replaces both.
        """
        if self == Choice():
            papers = View("integrated-jacobian", papers_layer(lens), self.terms(lens)[-1])
            return [papers] if static(lens) else [View("shapley", None, self.terms(lens)[0]), papers]
        method = self.method or ("shapley" if self.layers is None and not static(lens) else "integrated-jacobian")
        layers = _layers(lens, self.layers) if self.layers else [0 if method == "integrated-jacobian" else None]
        return [View(method, layer, self.terms(lens)[0]) for layer in layers]

    def sweep(self, lens: Lens) -> list[View]:
        """Integrated Jacobians at every layer, with every treatment in question."""
        layers = range(lens.layers + 1) if self.layers is None else _layers(lens, self.layers)
        return [View("integrated-jacobian", layer, terms) for terms in self.terms(lens) for layer in layers]

    def terms(self, lens: Lens) -> list[str]:
        """The treatments in question: the default and the papers' approximation, which for an adjusted model is it."""
        if self.reference_terms is not None:
            return [self.reference_terms]
        return ["shift"] if lens.adjusted else ["project", "ignore"]


def papers_layer(lens: Lens) -> int:
    """The layer of the papers' figures, 9 of 12, or what comes closest to it.

    Example:
        >>> from pairlens import Lens
        >>> papers_layer(Lens())
        5
    """
    return int(0.75 * lens.layers + 0.5)


def _layers(lens: Lens, layers: Iterable[int]) -> list[int]:
    encoder: Any = lens.encoder
    return sorted({encoder.layer_index(layer) for layer in layers})


def static(lens: Lens) -> bool:
    """Whether the model has no layers: its tokens' vectors are its explanation."""
    return lens.layers == 0
