"""Types of the results page, and numbers written for it."""

from __future__ import annotations

from typing import Any

from pairlens.study.result import percent

Figures = dict[str, Any]
Rows = list[tuple[str, str, str]]
"""The measure, the papers' figure, our figure."""
Page = tuple[Rows, str, str]
"""The table, a sentence on agreements, and one on differences."""


def share(value: float | None) -> str:
    """A share in per cent."""
    return "—" if value is None else percent(value)


def spread(figures: Figures, name: str = "") -> str:
    """A mean and a standard deviation in per cent."""
    mean, sd = (figures[f"{name}_{what}"] if name else figures[what] for what in ("mean", "sd"))
    return f"{100 * mean:.0f} ± {100 * sd:.0f} %".replace("-", "−")


def compared(ours: float, theirs: float, slack: float, more: str = "more", less: str = "less") -> str:
    """A word that compares our figure with theirs."""
    return "about as many" if abs(ours - theirs) <= slack else more if ours > theirs else less
