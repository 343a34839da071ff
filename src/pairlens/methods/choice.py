"""From the method, layer and reference that a user asks for to a method object."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pairlens.errors import InputError, ModelError, choose
from pairlens.methods.banzhaf import Banzhaf
from pairlens.methods.base import Method
from pairlens.methods.fade import Fade
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.methods.occlusion import Occlusion
from pairlens.methods.shapley import Shapley

METHODS = ("banzhaf", "shapley", "integrated-jacobian", "fade", "occlusion", "output")
WITHOUT_LAYERS = {"banzhaf": Banzhaf, "shapley": Shapley, "fade": Fade, "occlusion": Occlusion}


def choose_method(method: Any, layer: int | None, reference: str | None) -> Method:
    """The method object for a name or an object; `layer` and `reference` belong to integrated-jacobian alone."""
    if isinstance(method, IntegratedJacobian):
        for name, value in (("layer", layer), ("reference", reference)):
            if value is not None:
                raise InputError(
                    f"{name}={value!r} beside a method object says the same thing twice: give it to the object, "
                    f"IntegratedJacobian({name}={value!r})."
                )
        return method
    if not isinstance(method, str | Method):
        raise InputError(f"method is one of {', '.join(METHODS)} or an object of one, not {method!r}.")
    if isinstance(method, Method) or choose("method", method, METHODS) in WITHOUT_LAYERS:
        for name, value in (("layer", layer), ("reference", reference)):
            if value is not None:
                shown = method if isinstance(method, str) else method.name
                raise InputError(f"method {shown!r} has no {name}; {name}={value!r} is for integrated-jacobian.")
        return method if isinstance(method, Method) else WITHOUT_LAYERS[method]()
    if method == "output":
        if layer is not None:
            raise InputError("method='output' is the last layer; leave layer out, or use integrated-jacobian.")
        layer = -1
    return IntegratedJacobian(
        layer=0 if layer is None else layer, reference="padding" if reference is None else reference
    )


def sampled_method(
    method: str | None, *, passes: int | None = None, seed: int | None = None, compounds: int | None = None
) -> str | Method | None:
    """The method for its name and the options of methods that sample; the name as it is where none of them is given.

    Example:
        >>> sampled_method("shapley", passes=64)
        Shapley(seed=0, passes=64, error=None, permutations=None)
        >>> sampled_method("fade")
        'fade'
    """
    given = {name: value for name, value in (("passes", passes), ("seed", seed)) if value is not None}
    if compounds is None and not given:
        return method
    if method in (None, "banzhaf"):
        return Banzhaf(**given, compounds=compounds or 0)
    if method == "shapley" and compounds is None:
        return Shapley(**given)
    names = "'banzhaf'" if compounds is not None else "'banzhaf' and 'shapley'"
    raise InputError(f"passes, seed and compounds are options of methods that sample, here {names}, not of {method!r}.")


def default_method(encoder: Any, role: str | None) -> Method:
    """The method that predicts deletions best (docs/faithfulness.md).

    Static embeddings are their own decomposition. An adjusted model is trained for integrated Jacobians: its padding
    reference has a zero embedding.
    """
    if encoder.adjusted or encoder.is_static(role):
        return IntegratedJacobian()
    return Banzhaf()


def check_method(method: Method | None, encoder: Any, rule: Any, tol: float | None) -> None:
    """Raise where the model cannot be explained by this method, or a rule or tol is given that it would ignore.

    Args:
        method: the method; None for the default.
        encoder: the model.
        rule: a quadrature rule, or None.
        tol: a tolerance, or None.
    """
    if method is None:
        if tol is not None and _deletes_by_default(encoder):
            raise InputError(
                f"tol={tol!r} is for methods that integrate, and the default deletes words: leave tol out, or name the "
                "method, 'fade' or 'integrated-jacobian'."
            )
        return
    if not encoder.has_layers and not method.deletes:
        raise ModelError(
            f"{encoder.name} is a black box, without layers or gradients to look at: method is 'banzhaf', "
            f"'shapley' or 'occlusion', not {method.name!r}."
        )
    if rule is not None and method.deletes:
        raise InputError(f"method={method.name!r} does not integrate, so it takes no rule; leave rule={rule!r} out.")
    if tol is not None and method.deletes:
        raise InputError(f"method={method.name!r} does not integrate, so it takes no tol; leave tol={tol!r} out.")


def _deletes_by_default(encoder: Any) -> bool:
    """Whether the default method deletes units whatever a text's role; a model's routes may have different defaults."""
    for role in (None, "query", "document"):
        with suppress(ModelError):  # no such route
            if not default_method(encoder, role).deletes:
                return False
    return True
