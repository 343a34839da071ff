"""How findings are written down: types, and numbers in words."""

from __future__ import annotations

from typing import Any

from pairlens.study.result import percent

Figures = dict[str, Any]
Rows = list[tuple[str, str, str]]
"""What is measured, the papers' figure, ours."""
Page = tuple[Rows, str, str]
"""The table, a sentence on where the two agree, and one on where they do not."""


def share(value: float | None) -> str:
    """A share in per cent."""
    return "—" if value is None else percent(value)


def spread(own: Figures, name: str = "") -> str:
    """A mean and a standard deviation in per cent."""
    mean, sd = (own[f"{name}_{what}"] if name else own[what] for what in ("mean", "sd"))
    return f"{100 * mean:.0f} ± {100 * sd:.0f} %".replace("-", "−")


def compared(ours: float, theirs: float, slack: float, more: str = "more", less: str = "less") -> str:
    """How our figure compares with theirs."""
    return "about as many" if abs(ours - theirs) <= slack else more if ours > theirs else less
