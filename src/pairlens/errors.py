"""The errors and warnings of pairlens, under one root class, and two checks of what a user passes in."""

from __future__ import annotations

import difflib
import operator
import sys
import warnings
from collections.abc import Iterable


class PairlensError(Exception):
    """Root of all errors raised by pairlens."""


class InputError(PairlensError, ValueError):
    """A text, a level, an option or a file that cannot be used; says what came, what was expected, what to do."""


class ModelError(PairlensError):
    """A model that cannot be explained, or not in the way asked for."""


class NotConverged(PairlensError):
    """The integral did not reach the tolerance. `gap` is the gap it reached, `index` its problem in the batch."""

    def __init__(self, message: str, *, gap: float, tol: float, index: int = 0) -> None:
        super().__init__(message)
        self.gap = gap
        self.tol = tol
        self.index = index


class NumericalError(PairlensError):
    """A NaN or an infinity where a number was expected."""


class StoreError(PairlensError):
    """An index on disk that cannot be read or written; what it held before is still there."""


class MissingExtra(PairlensError, ImportError):
    """An optional dependency is not installed; the message is the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed and this needs it. Install it with: pip install 'pairlens[{extra}]'"
        )


class PairlensWarning(UserWarning):
    """Root of all warnings of pairlens."""


class TruncationWarning(PairlensWarning):
    """A text was longer than the model takes; only its beginning is explained."""


class UnknownTokensWarning(PairlensWarning):
    """The tokenizer knows no word of a text, so the model cannot tell it from other such texts."""


class ReferenceWarning(PairlensWarning):
    """The references carry so much of the score that the matrix says little about it."""


class FontWarning(PairlensWarning):
    """A plot has characters that no installed font has."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn with the user's line that called pairlens as the place, however deep the caller of this function is."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def whole(name: str, given: object, low: int, high: int | None = None) -> int:
    """Return `given` as an int if it is a whole number in range (NumPy's count too), else raise.

    Example:
        >>> whole("k", 3, 1)
        3
        >>> whole("k", 0, 1)
        Traceback (most recent call last):
            ...
        pairlens.errors.InputError: k must be a whole number of at least 1, not 0.
    """
    try:
        number = None if isinstance(given, bool) else operator.index(given)  # pyright: ignore[reportArgumentType]
    except TypeError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} must be a whole number {bounds}, not {given!r}.")
    return number


def choose(kind: str, given: object, valid: Iterable[str]) -> str:
    """Return `given` if it is one of `valid`, else raise and name the nearest valid one.

    Example:
        >>> choose("measure", "dot", ("cosine", "dot"))
        'dot'
        >>> choose("measure", "cosinus", ("cosine", "dot"))
        Traceback (most recent call last):
            ...
        pairlens.errors.InputError: unknown measure 'cosinus'. Did you mean 'cosine'? Valid: cosine, dot.
    """
    names = tuple(valid)
    if isinstance(given, str) and given in names:
        return given
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InputError(f"unknown {kind} {given!r}.{hint} Valid: {', '.join(names) or 'none'}.")
