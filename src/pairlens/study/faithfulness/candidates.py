"""The explanations that the judge compares: pairlens's own methods with their options, and the rivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pairlens.attribution import TREATMENTS, Explanation
from pairlens.errors import InputError, choose, whole
from pairlens.lens import Lens
from pairlens.methods import Method
from pairlens.methods.fade import Fade
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.methods.occlusion import Occlusion
from pairlens.methods.shapley import NEAR, Shapley
from pairlens.study.faithfulness.rivals import RIVALS

METHODS = ("integrated-jacobian", "fade", "output", "occlusion", "shapley", *RIVALS)
REFERENCE_TERMS = ("project", "ignore")
PASSES = (64, 128, 200)


@dataclass(frozen=True)
class Candidate:
    """One way to explain a pair.

    Attributes:
        name: its name in the table.
        family: the method it belongs to, one of `METHODS`.
        method: the `method` argument of `Lens.explain`; None for a rival, whose function is `RIVALS[family]`.
        reference_terms: the `reference_terms` argument of `Lens.explain`; None for a rival.
        tol: the largest gap, for methods that integrate.
    """

    name: str
    family: str
    method: str | Method | None = None
    reference_terms: str | None = None
    tol: float = 1e-3

    def explain(self, lens: Lens, a: str, b: str, measure: str) -> Explanation:
        """The explanation of a pair at token level."""
        if self.rival:
            return RIVALS[self.family](lens, a, b, measure)
        return lens.explain(
            a,
            b,
            method=self.method,
            reference_terms=self.reference_terms,
            measure=measure,
            level="token",
            tol=self.tol,
        )

    @property
    def rival(self) -> bool:
        """Whether it is one of the `RIVALS`, which are there for comparison only."""
        return self.method is None

    def settings(self) -> dict[str, Any]:
        """The candidate's entry in summary.json."""
        if self.rival:
            return {"family": self.family, "method": self.family}
        options = {"reference_terms": self.reference_terms, "tol": self.tol}
        return {"family": self.family, "method": repr(self.method), **options}


def make_candidates(
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
    """The candidates of some methods, with the options given.

    Args:
        lens: the model.
        methods: names from `METHODS`.
        layers: layers of integrated-jacobian; by default 0, the middle and the last but one.
        reference_terms: treatments for integrated-jacobian; the other methods use "project".
        passes: forward passes per text of further shapley candidates, beside the default.
        paths: numbers of random paths of further fade candidates, beside the straight path.
        seed: of methods that sample.
        tol: the largest gap, for methods that integrate.
    """
    for name in methods:
        choose("method", name, METHODS)
    for name in reference_terms:
        choose("reference_terms", name, TREATMENTS)

    def candidate(name: str, method: str | Method, terms: str = "project") -> Candidate:
        return Candidate(name, name.split("/")[0], method, terms, tol)

    families = {
        "integrated-jacobian": [
            candidate(f"integrated-jacobian/{layer}/{terms}", IntegratedJacobian(layer), terms)
            for layer in _check_layers(lens, layers)
            for terms in reference_terms
        ],
        "fade": [
            candidate("fade", Fade()),
            candidate("fade/keep", Fade(positions="keep")),
            *(candidate(f"fade/{count} paths", Fade(paths=whole("paths", count, 2), seed=seed)) for count in paths),
        ],
        "output": [candidate("output", "output")],
        "occlusion": [candidate("occlusion", Occlusion())],
        "shapley": [
            candidate(f"shapley/near {NEAR:g}", Shapley(near=NEAR, seed=seed)),  # the default of a lens
            candidate("shapley", Shapley(seed=seed)),
            *(candidate(f"shapley/{count}", Shapley(passes=whole("passes", count, 1), seed=seed)) for count in passes),
        ],
        **{name: [Candidate(name, name)] for name in RIVALS},
    }
    candidates = [one for name in dict.fromkeys(methods) for one in families[name]]
    if not candidates:
        raise InputError(f"there is nothing to judge: give methods, of {', '.join(METHODS)}.")
    return candidates


def _check_layers(lens: Lens, layers: Sequence[int] | None) -> list[int]:
    """The layers given, or the default ones: 0, the middle and the last but one."""
    last = lens.layers
    if layers is None:
        return sorted({0, last // 2, max(0, last - 1)})
    for layer in layers:
        if not -last - 1 <= whole("a layer", layer, -last - 1) <= last:
            raise InputError(f"layer {layer} does not exist: this model has the layers 0 to {last}.")
    return list(layers)
