"""How a plan talks to the code that drives it: queries and proposed node tables go out, arrays come back."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from pairlens.quadrature.rules import NodeTable
from pairlens.shapes import Array

T = TypeVar("T")


@dataclass(frozen=True)
class Query:
    """A request for e at points of the path, or with `slope` for its derivative along the path; (points, dim)."""

    points: Array
    slope: bool = False


Inquiry = Generator[Query, Array, T]
"""A part of a plan: sends queries, receives their answers, and returns a result."""
Plan = Generator[Query | NodeTable, Array, None]
"""Sends queries and proposes node tables. The answer to a table is the relative gap that it reached, (1,)."""
