"""A user's options, checked, with defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from pairlens.attribution.similarity import MEASURES, TREATMENTS, space_for
from pairlens.errors import InputError, ModelError, choose
from pairlens.methods import Method, check_method, choose_method
from pairlens.quadrature import Adaptive, Rule, check_rule
from pairlens.text import Level, both_levels


class ExplainOptions(TypedDict, total=False):
    """The options that `Lens.explain`, `explain_many`, `decompose` and others share; `Lens.explain` describes them."""

    method: str | Method | None
    layer: int | None
    reference: str | None
    reference_terms: str | None
    measure: str | None
    level: Level | tuple[Level, Level] | None
    rule: Rule | None
    tol: float | None
    prompt: str | tuple[str | None, str | None] | None
    prompt_name: str | tuple[str | None, str | None] | None


@dataclass(frozen=True)
class Options:
    """How texts are decomposed and compared.

    Attributes:
        method: the method; None for the default, which may depend on a text's role.
        rule: the quadrature rule, for methods that integrate.
        reference_terms: "project", "shift", "keep" or "ignore".
        measure: "cosine" or "dot".
        levels: the levels of the first and the second text; None for words or, in long texts, "zoom".
        prompts: the prompts of the first and the second text; None for those of their roles.
    """

    method: Method | None
    rule: Rule
    reference_terms: str
    measure: str
    levels: tuple[Level | None, Level | None]
    prompts: tuple[str | None, str | None] = (None, None)

    @classmethod
    def resolve(
        cls,
        encoder: Any,
        *,
        method: str | Method | None = None,
        layer: int | None = None,
        reference: str | None = None,
        reference_terms: str | None = None,
        measure: str | None = None,
        level: Level | tuple[Level, Level] | None = None,
        rule: Rule | None = None,
        tol: float | None = None,
        prompt: str | tuple[str | None, str | None] | None = None,
        prompt_name: str | tuple[str | None, str | None] | None = None,
    ) -> Options:
        """The options that a user gave, as this model understands them; see `Lens.explain`."""
        if method is None and (layer, reference, rule) != (None, None, None):
            method = "integrated-jacobian"
        chosen = None if method is None else choose_method(method, layer, reference)
        checked = check_rule(rule, tol)
        check_method(chosen, encoder, rule, tol)
        deletes = not encoder.adjusted if chosen is None else chosen.deletes
        treatment, measure = resolve_treatment(encoder, reference_terms, measure, deletes=deletes)
        if rule is None and encoder.adjusted:
            # The matrix is to make up the score itself, so both texts' gaps together, 2 t + t², must be within tol.
            tol = Adaptive().tol if tol is None else tol
            checked = Adaptive(tol / (2 + tol))
        levels = (None, None) if level is None else both_levels(_level(encoder, level))
        return cls(chosen, checked, treatment, measure, levels, _both_prompts(encoder, prompt, prompt_name))

    @property
    def space(self) -> str:
        """The embedding that is decomposed, "unit", "output" or "raw"."""
        return space_for(self.reference_terms, self.measure)

    @property
    def treatment(self) -> dict[str, str]:
        """The keyword arguments of `similarity.explain`."""
        return {"reference_terms": self.reference_terms, "measure": self.measure}


def resolve_treatment(
    encoder: Any, reference_terms: str | None, measure: str | None, *, deletes: bool
) -> tuple[str, str]:
    """The treatment of the references and the measure, checked, with defaults for the method and the model.

    Args:
        encoder: the model.
        reference_terms: as the user gave it.
        measure: likewise.
        deletes: whether the method deletes units; the references of such a method mean something by themselves.
    """
    default = "keep" if deletes else "shift" if encoder.adjusted else "project"
    treatment = choose("reference_terms", default if reference_terms is None else reference_terms, TREATMENTS)
    if measure is None and encoder.measure not in MEASURES:
        raise ModelError(
            f"the model compares by {encoder.measure} distance, which is no sum over token pairs. Ask for "
            "measure='cosine' or measure='dot' to explain those instead."
        )
    return treatment, choose("measure", encoder.measure if measure is None else measure, MEASURES)


def _both_prompts(encoder: Any, prompt: Any, name: Any) -> tuple[str | None, str | None]:
    """The prompts of the first and the second text, from prompts or names of prompts that a user gave."""
    if prompt is not None and name is not None:
        raise InputError("prompt and prompt_name say the same thing twice: give one of them.")
    given = name if prompt is None else prompt
    both = given if isinstance(given, tuple | list) else (given, given)
    if len(both) != 2 or not all(one is None or isinstance(one, str) for one in both):
        raise InputError(f"a prompt is a text, or a pair of texts, one for each side, not {given!r:.60}.")
    if name is not None:
        prompts = encoder.prompts
        both = [None if one is None else prompts[choose("prompt_name", one, prompts)] for one in both]
    return both[0], both[1]


def _level(encoder: Any, level: Any) -> Any:
    """The level asked for, checked."""
    if encoder.finest_level == "word" and "token" in both_levels(level):
        raise InputError(f"{encoder.name} is a black box, whose tokens are unknown: level is 'word' or 'sentence'.")
    return level
