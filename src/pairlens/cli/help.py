"""Help texts: flags without a type, short types, paragraphs that are wrapped once, examples on their own lines."""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperCommand, TyperGroup

EXAMPLES = "Examples:"
"""How the last paragraph of a help text begins; its other lines are commands that run as they stand."""
TYPES = {
    "<int>": "N",
    "<int range>": "N",
    "<float>": "X",
    "<float range>": "X",
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<path>": "PATH",
}
"""Typer's names of the types of values, and shorter ones, which leave room for the descriptions."""


class Command(TyperCommand):
    """A command whose docstring is its help."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.help = unwrapped(self.help or "")

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments."""
        return with_short_types(super().get_params(ctx), ctx)


class Group(TyperGroup):
    """A command with sub-commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options."""
        return with_short_types(super().get_params(ctx), ctx)


def unwrapped(text: str) -> str:
    """A docstring with one line per paragraph, which the terminal wraps, and the lines of its examples as they are."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(p if p.startswith(EXAMPLES) else " ".join(p.split()) for p in paragraphs)


def with_short_types(params: list[Any], ctx: Any) -> list[Any]:
    """The options with short names for their values; flags have none, as `--json <bool>` asks for a value."""
    for param in params:
        if param.param_type_name == "option" and param.metavar is None:
            param.metavar = "" if param.is_flag else TYPES.get(param.display_type(ctx))
    return params


def examples(*lines: str) -> str:
    """The paragraph of examples of a help text that is put together from parts."""
    return "\n  ".join((EXAMPLES, *lines))
