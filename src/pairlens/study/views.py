"""The ways in which a study explains its pairs: method, layer and reference terms.

Studies begin with the library's default: weighted Banzhaf values with reference terms kept, and for adjusted models and
static embeddings integrated Jacobians. Tables, pictures and sentences name the method.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pairlens.attribution.similarity import space_for
from pairlens.lens import Lens
from pairlens.methods import default_method

SIBLINGS = {"raw": ("ignore", "shift")}
"""Reference terms that decompose the same embedding: one decomposition serves them all."""


@dataclass(frozen=True)
class View:
    """One way to explain pairs.

    Attributes:
        method: a method of `Lens.explain`.
        layer: the layer of integrated-jacobian; None for the other methods.
        reference_terms: "project", "shift", "keep" or "ignore".

    Example:
        >>> View("integrated-jacobian", 5, "ignore").label
        'layer 5, ignore'
    """

    method: str
    layer: int | None
    reference_terms: str

    @property
    def label(self) -> str:
        """The name of the view in tables and pictures."""
        name = self.method if self.layer is None else f"layer {self.layer}"
        return f"{name}, {self.reference_terms}"

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of `Lens.explain`."""
        return {"method": self.method, "layer": self.layer, "reference_terms": self.reference_terms}

    def siblings(self, measure: str) -> list[View]:
        """The views that need the same decomposition, this one included."""
        siblings = SIBLINGS.get(space_for(self.reference_terms, measure), (self.reference_terms,))
        return [View(self.method, self.layer, terms) for terms in siblings]


@dataclass(frozen=True)
class Choice:
    """The user's choice of views; None leaves a part of it to the study.

    Attributes:
        method: "banzhaf", "shapley", "fade", "integrated-jacobian", "occlusion" or "output".
        layers: layers of integrated-jacobian; negative ones count from the end.
        reference_terms: "project", "shift", "keep" or "ignore".
    """

    method: str | None = None
    layers: tuple[int, ...] | None = None
    reference_terms: str | None = None

    def standard(self, lens: Lens) -> list[View]:
        """The views of a study at one layer: the library's default, then the papers' settings.

        A choice of the user replaces both.
        """
        if self == Choice():
            papers = View("integrated-jacobian", papers_layer(lens), self.terms(lens)[-1])
            return [papers] if static(lens) else [self._of(lens, self._method(lens)), papers]
        method = self._method(lens)
        return [self._of(lens, method, layer) for layer in (_layers(lens, self.layers) if self.layers else [None])]

    def _method(self, lens: Lens) -> str:
        """The method that the user chose, or the library's default."""
        return self.method or (default_method(lens.encoder, None).name if not self.layers else "integrated-jacobian")

    def _of(self, lens: Lens, method: str, layer: int | None = None) -> View:
        """The view of a method, with the library's default for what the user left open."""
        if method == "integrated-jacobian" and layer is None:
            layer = 0
        chosen = self.reference_terms or lens.resolve(method=method, layer=layer).reference_terms
        return View(method, layer, chosen)

    def sweep(self, lens: Lens) -> list[View]:
        """Integrated Jacobians at every layer, with each of the reference terms in question."""
        return [view for terms in self.terms(lens) for view in self.by_layer(lens, terms)]

    def by_layer(self, lens: Lens, terms: str | None = None) -> list[View]:
        """Integrated Jacobians at every layer, with their default reference terms or others."""
        layers = range(lens.layers + 1) if self.layers is None else _layers(lens, self.layers)
        return [View("integrated-jacobian", layer, terms or self.terms(lens)[0]) for layer in layers]

    def terms(self, lens: Lens) -> list[str]:
        """The reference terms of integrated Jacobians in question: the default and the papers' approximation.

        For adjusted models they are one.
        """
        if self.reference_terms is not None:
            return [self.reference_terms]
        return ["shift"] if lens.adjusted else ["project", "ignore"]


def papers_layer(lens: Lens) -> int:
    """The layer of the papers' figures, 9 of 12, or the nearest in a model with another number of layers.

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
