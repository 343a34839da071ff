"""What is judged: pairlens's own methods with their settings, and the rivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pairlens.attribution.explanation import Explanation
from pairlens.attribution.treatments import TREATMENTS
from pairlens.errors import InputError, choose, whole
from pairlens.lens import Lens
from pairlens.methods.fade import Fade
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.methods.occlusion import Occlusion
from pairlens.methods.shapley import NEAR, Shapley
from pairlens.study.faithfulness.rivals import RIVALS

OWN = ("integrated-jacobian", "fade", "output", "occlusion", "shapley")
METHODS = (*OWN, *RIVALS)
REFERENCE_TERMS = ("project", "ignore")
PASSES = (64, 128, 200)


@dataclass(frozen=True)
class Candidate:
    """One way to explain a pair.

    Attributes:
        name: what the table calls it.
        family: the method it belongs to: one of `METHODS`.
        method: what `Lens.explain` takes as its method; None for a rival, which goes by its family.
        reference_terms: what becomes of the reference's share; None for a rival.
        tol: the largest gap of a method that integrates.
    """

    name: str
    family: str
    method: Any = None
    reference_terms: str | None = None
    tol: float = 1e-3

    def explain(self, lens: Lens, a: str, b: str, measure: str) -> Explanation:
        """The explanation of a pair, by tokens."""
        if self.rival:
            return RIVALS[self.family](lens, a, b, measure)
        options: dict[str, Any] = {"reference_terms": self.reference_terms, "measure": measure, "tol": self.tol}
        return lens.explain(a, b, method=self.method, level="token", **options)

    @property
    def rival(self) -> bool:
        """Whether it is there for comparison only."""
        return self.method is None

    def settings(self) -> dict[str, Any]:
        """What it is, for the record."""
        return {"family": self.family, "method": repr(self.method) if self.method else self.family} | (
            {"reference_terms": self.reference_terms, "tol": self.tol} if self.reference_terms else {}
        )


def line_up(
    lens: Lens,
    *,
    methods: Sequence[str] = METHODS,
    layers: Sequence[int] | None = None,
    reference_terms: Sequence[str] = REFERENCE_TERMS,
    passes: Sequence[int] = PASSES,
    paths: Sequence[int] = (),
    seed: int = 0,
    tol: float = 1e-3,
) -> list[Candidate]:
    """The candidates asked for.

    Args:
        lens: the model.
        methods: names from `METHODS`.
        layers: of integrated-jacobian; by default the first, the middle and the last but one.
        reference_terms: of integrated-jacobian; the other methods have "project".
        passes: forward passes a text, of shapley beside its default.
        paths: random paths that are averaged, of fade beside the one straight path.
        seed: of what samples.
        tol: the largest gap of methods that integrate.
    """
    for name in methods:
        choose("method", name, METHODS)
    for name in reference_terms:
        choose("reference_terms", name, TREATMENTS)
    last = lens.layers
    places = sorted({0, last // 2, max(0, last - 1)}) if layers is None else list(layers)
    for place in places:
        if not -last - 1 <= whole("a layer", place, -last - 1) <= last:
            raise InputError(f"layer {place} does not exist: this model has the layers 0 to {last}.")
    made: dict[str, list[Candidate]] = {
        "integrated-jacobian": [
            Candidate(f"integrated-jacobian/{layer}/{terms}", "integrated-jacobian", IntegratedJacobian(layer), terms)
            for layer in places
            for terms in reference_terms
        ],
        "fade": [
            Candidate("fade", "fade", Fade(), "project"),
            Candidate("fade/keep", "fade", Fade(positions="keep"), "project"),
            *(
                Candidate(f"fade/{count} paths", "fade", Fade(paths=whole("paths", count, 2), seed=seed), "project")
                for count in paths
            ),
        ],
        "output": [Candidate("output", "output", "output", "project")],
        "occlusion": [Candidate("occlusion", "occlusion", Occlusion(), "project")],
        "shapley": [
            Candidate(f"shapley/near {NEAR:g}", "shapley", Shapley(near=NEAR, seed=seed), "project"),  # the default
            Candidate("shapley", "shapley", Shapley(seed=seed), "project"),
            *(
                Candidate(
                    f"shapley/{spent}", "shapley", Shapley(passes=whole("passes", spent, 1), seed=seed), "project"
                )
                for spent in passes
            ),
        ],
        **{name: [Candidate(name, name)] for name in RIVALS},
    }
    chosen = [replace(candidate, tol=tol) for name in dict.fromkeys(methods) for candidate in made[name]]
    if not chosen:
        raise InputError(f"there is nothing to judge: give methods, of {', '.join(METHODS)}.")
    return chosen
