"""pairlens: why are these two texts this similar?

from pairlens import Lens
lens = Lens()
lens.explain("The coffee here is not good.", "This coffee is bad.")
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairlens.adjusted.training import adjust
    from pairlens.attribution.contrast import Contrast
    from pairlens.attribution.contributions import Contributions
    from pairlens.attribution.explanation import Explanation
    from pairlens.attribution.forecast import Forecast
    from pairlens.errors import (
        InputError,
        MissingExtra,
        ModelError,
        NotConverged,
        NumericalError,
        PairlensError,
        ReferenceWarning,
        TruncationWarning,
        UnknownTokensWarning,
    )
    from pairlens.functional import decompose
    from pairlens.lens import Lens
    from pairlens.methods.banzhaf import Banzhaf
    from pairlens.methods.fade import Fade
    from pairlens.methods.integrated_jacobian import IntegratedJacobian
    from pairlens.methods.occlusion import Occlusion
    from pairlens.methods.shapley import Shapley
    from pairlens.quadrature.rules import Adaptive, GaussLegendre, Riemann
    from pairlens.text.units import Unit

__version__ = "0.1.0"

# OpenMP threads that spin while they wait make a pair take 30 seconds instead of 2 when another process uses the cores;
# threads that sleep at once are a fifth slower on idle cores. So they spin for a moment, then sleep. OpenMP reads this
# once, when torch is loaded.
if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

_HOMES = {
    "pairlens.adjusted.training": ("adjust",),
    "pairlens.attribution.contributions": ("Contributions",),
    "pairlens.errors": (
        "InputError",
        "MissingExtra",
        "ModelError",
        "NotConverged",
        "NumericalError",
        "PairlensError",
        "ReferenceWarning",
        "TruncationWarning",
        "UnknownTokensWarning",
    ),
    "pairlens.attribution.contrast": ("Contrast",),
    "pairlens.attribution.explanation": ("Explanation",),
    "pairlens.attribution.forecast": ("Forecast",),
    "pairlens.functional": ("decompose",),
    "pairlens.lens": ("Lens",),
    "pairlens.methods.banzhaf": ("Banzhaf",),
    "pairlens.methods.fade": ("Fade",),
    "pairlens.methods.integrated_jacobian": ("IntegratedJacobian",),
    "pairlens.methods.occlusion": ("Occlusion",),
    "pairlens.methods.shapley": ("Shapley",),
    "pairlens.quadrature.rules": ("Adaptive", "GaussLegendre", "Riemann"),
    "pairlens.text.units": ("Unit",),
}

__all__ = [
    "Adaptive",
    "Banzhaf",
    "Contrast",
    "Contributions",
    "Explanation",
    "Fade",
    "Forecast",
    "GaussLegendre",
    "InputError",
    "IntegratedJacobian",
    "Lens",
    "MissingExtra",
    "ModelError",
    "NotConverged",
    "NumericalError",
    "Occlusion",
    "PairlensError",
    "ReferenceWarning",
    "Riemann",
    "Shapley",
    "TruncationWarning",
    "Unit",
    "UnknownTokensWarning",
    "__version__",
    "adjust",
    "decompose",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `pairlens --help` does not wait for torch."""
    for home, names in _HOMES.items():
        if name in names:
            _import_tqdm()
            value = getattr(importlib.import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'pairlens' has no attribute {name!r}")


def _import_tqdm() -> None:
    """Import tqdm without its warning about notebooks that lack ipywidgets: bars are lines of text there."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        importlib.import_module("tqdm.auto")


def __dir__() -> list[str]:
    return __all__
