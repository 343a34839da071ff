"""Analyses of whole data sets: `pairlens study NAME` runs one and writes to OUT/NAME/, `pairlens study all` the twelve.

The twelve of the papers are a module each, with a function `study` that makes a `Result` of `Materials`; see `run`.
`faithfulness` and `adjustment` are packages of their own.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from pairlens.errors import choose
from pairlens.study.catalogue import CATALOGUE

if TYPE_CHECKING:
    from pairlens.study.materials import Materials
    from pairlens.study.result import Result


def run(name: str, materials: Materials) -> Result:
    """Run a study; one that lacks something gives a result that says what.

    Example:
        >>> from pairlens import Lens
        >>> from pairlens.study.materials import Materials
        >>> pairs = [("A cat sleeps.", "A dog sleeps."), ("It rains.", "It snows.")]
        >>> result = run("failures", Materials(Lens(), pairs, progress=False))
        >>> result.summary["skipped"]
        'the data have no scores by people. ...'
    """
    from pairlens.study.result import Lacking

    module = _module(name)
    try:
        return module.study(materials)
    except Lacking as error:
        return failed(name, materials, str(error))


def failed(name: str, materials: Materials, reason: str) -> Result:
    """The result of a study that came to nothing, and why."""
    from pairlens.study.result import Result

    return Result(CATALOGUE[name], settings=materials.describe([], 0), skipped=reason)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"pairlens.study.papers.{choose('study', name, CATALOGUE).replace('-', '_')}")
