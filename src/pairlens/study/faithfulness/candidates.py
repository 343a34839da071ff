"""The explanations that the judge compares: pairlens's own methods with their options, other values, and the rivals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from pairlens.attribution import TREATMENTS, Contributions, Explanation, space_for
from pairlens.errors import InputError, choose, whole
from pairlens.lens import Lens
from pairlens.methods import Method
from pairlens.methods.banzhaf import Banzhaf
from pairlens.methods.fade import Fade
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.methods.occlusion import Occlusion
from pairlens.methods.shapley import Shapley
from pairlens.study.faithfulness.other_values import FaithShap, KrigedLinear, LeastSquares, Mixture, ShapleyTaylor
from pairlens.study.faithfulness.rivals import RIVALS, explain_by_rival

OTHERS = ("least-squares", "mixture", "kriging", "faith-shap", "shapley-taylor")
"""Other values of the literature, which a lens does not offer."""
METHODS = ("banzhaf", "shapley", "occlusion", "integrated-jacobian", "fade", "output", *OTHERS, *RIVALS)
REFERENCE_TERMS = ("keep", "project", "ignore")
PASSES = {"banzhaf": (32, 64), "shapley": (64,)}
"""Forward passes per text of further candidates, beside the default budgets."""


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

    def decompose(self, lens: Lens, a: str, b: str, measure: str, level: str) -> list[Contributions]:
        """The contributions of both texts; none for a rival."""
        if self.rival:
            return []
        deletes = isinstance(self.method, Method) and self.method.deletes
        options: dict[str, Any] = {"method": self.method, "reference_terms": self.reference_terms}
        options |= {} if deletes else {"tol": self.tol}
        return list(lens.decompose([a, b], measure=measure, level=level, progress=False, **options))

    def compare(
        self, lens: Lens, a: str, b: str, measure: str, level: str, contributions: Sequence[Contributions]
    ) -> Explanation:
        """The explanation of a pair from what `decompose` returned."""
        if self.rival:
            return explain_by_rival(self.family, lens, a, b, measure, level)
        return lens.compare(*contributions, reference_terms=self.reference_terms, measure=measure)

    def decomposition_key(self, measure: str) -> Hashable:
        """Equal for candidates with the same contributions, which differ in their reference terms alone."""
        if self.reference_terms is None:
            return self.name
        return self.method, self.tol, space_for(self.reference_terms, measure)

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
    passes: Sequence[int] | None = None,
    paths: Sequence[int] = (),
    seed: int = 0,
    tol: float = 1e-3,
) -> list[Candidate]:
    """The candidates of some methods, with the options given.

    Args:
        lens: the model.
        methods: names from `METHODS`.
        layers: layers of integrated-jacobian; by default 0, the middle and the last but one.
        reference_terms: treatments for the methods that integrate. Those that delete use "keep", as a lens does, and
            shapley "project" too.
        passes: forward passes per text of further banzhaf and shapley candidates, by default those of `PASSES`.
        paths: numbers of random paths of further fade candidates, beside the straight path.
        seed: of methods that sample.
        tol: the largest gap, for methods that integrate.
    """
    for name in methods:
        choose("method", name, METHODS)
    for name in reference_terms:
        choose("reference_terms", name, TREATMENTS)
    budgets = PASSES if passes is None else dict.fromkeys(PASSES, tuple(whole("passes", n, 4) for n in passes))
    fades = {"fade": Fade()} | {f"fade/{n} paths": Fade(paths=whole("paths", n, 2), seed=seed) for n in paths}
    jacobians = {f"integrated-jacobian/{n}": IntegratedJacobian(n) for n in _check_layers(lens, layers)}
    shapleys = {f"shapley/{n}": Shapley(passes=n, seed=seed) for n in budgets["shapley"]}

    def with_terms(named: dict[str, Any], terms: Sequence[str]) -> list[Candidate]:
        return [
            Candidate(f"{name}/{term}", name.split("/")[0], method, term, tol)
            for name, method in named.items()
            for term in terms
        ]

    families = {
        "banzhaf": _banzhaf(budgets["banzhaf"], seed, tol),
        "shapley": with_terms({"shapley": Shapley(seed=seed), **shapleys}, ("keep", "project")),
        "occlusion": [Candidate("occlusion", "occlusion", Occlusion(), "keep", tol)],
        "integrated-jacobian": with_terms(jacobians, reference_terms),
        # Fade's reference is the empty text, as that of methods that delete; "ignore" would be a third of all the time.
        "fade": with_terms(fades, [terms for terms in reference_terms if terms != "ignore"]),
        "output": with_terms({"output": IntegratedJacobian(-1)}, reference_terms),
        **{name: [Candidate(*entry, "keep", tol) for entry in _others(name, seed)] for name in OTHERS},
        **{name: [Candidate(name, name)] for name in RIVALS},
    }
    candidates = [one for name in dict.fromkeys(methods) for one in families[name]]
    if not candidates:
        raise InputError(f"there is nothing to judge: give methods, of {', '.join(METHODS)}.")
    return candidates


def _banzhaf(passes: Sequence[int], seed: int, tol: float) -> list[Candidate]:
    """The default of a lens, other budgets, and compounds."""
    named = {
        "banzhaf": Banzhaf(seed=seed),
        **{f"banzhaf/{count}": Banzhaf(passes=count, seed=seed) for count in passes},
        "banzhaf/compounds": Banzhaf(compounds=16, passes=100, seed=seed),
    }
    return [Candidate(name, "banzhaf", method, "keep", tol) for name, method in named.items()]


def _others(name: str, seed: int) -> list[tuple[str, str, Method]]:
    """The candidates of one of `OTHERS`: name, family and method."""
    methods: dict[str, dict[str, Method]] = {
        "least-squares": {
            "least-squares/64": LeastSquares(passes=64, seed=seed),
            "least-squares/64/p 0.75": LeastSquares(passes=64, keep=0.75, seed=seed),
        },
        "mixture": {"mixture/64": Mixture(passes=64, seed=seed)},
        "kriging": {"kriging/64": KrigedLinear(passes=64, seed=seed)},
        "faith-shap": {"faith-shap": FaithShap(seed=seed)},
        "shapley-taylor": {"shapley-taylor": ShapleyTaylor(seed=seed)},
    }
    return [(candidate, name, method) for candidate, method in methods[name].items()]


def _check_layers(lens: Lens, layers: Sequence[int] | None) -> list[int]:
    """The layers given, or the default ones: 0, the middle and the last but one."""
    last = lens.layers
    if layers is None:
        return sorted({0, last // 2, max(0, last - 1)})
    for layer in layers:
        if not -last - 1 <= whole("a layer", layer, -last - 1) <= last:
            raise InputError(f"layer {layer} does not exist: this model has the layers 0 to {last}.")
    return list(layers)
