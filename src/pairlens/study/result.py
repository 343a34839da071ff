"""What a study gives: a table, a picture, a summary, and the files of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens.errors import InputError, MissingExtra
from pairlens.study import files
from pairlens.study.catalogue import About

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


class Lacking(InputError):
    """A study was not given something that it cannot do without; the message says what."""


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a study.

    Attributes:
        about: which study.
        table: the numbers of the picture, one row each.
        raw: the values behind them, pair by pair.
        figures: the numbers that matter, by name.
        sentences: what they say.
        settings: what they were made of: model, data, pairs, views.
        skipped: why there is nothing of all this, if there is not.
    """

    about: About
    table: list[Row] = field(default_factory=list)
    raw: list[Row] = field(default_factory=list)
    figures: Mapping[str, Any] = field(default_factory=dict)
    sentences: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[[], Figure] | None = None
    skipped: str = ""

    @property
    def name(self) -> str:
        """The study's name."""
        return self.about.name

    @cached_property
    def summary(self) -> Row:
        """Everything but the table, ready for JSON."""
        about = {"study": self.about.name, "title": self.about.title}
        papers = {"title": self.about.paper, "where": self.about.where, "says": self.about.says}
        if self.skipped:
            return {**about, "skipped": self.skipped, "paper": papers, "settings": dict(self.settings)}
        return {
            **about,
            "sentences": list(self.sentences),
            "figures": dict(self.figures),
            "paper": papers,
            "settings": dict(self.settings),
            "versions": files.versions(),
        }

    def plot(self) -> Figure:
        """The picture."""
        if self.draw is None:
            raise InputError(f"the study {self.name} has no picture: {self.skipped}")
        return self.draw()

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra("pandas", "study") from error
        return pd.DataFrame(self.table)

    def save(self, folder: Path) -> list[Path]:
        """Write summary.json, and unless it was skipped table.csv, pairs.parquet, NAME.png and NAME.svg."""
        if self.skipped:
            for old in ("table.csv", "pairs.parquet", f"{self.name}.png", f"{self.name}.svg"):
                (folder / old).unlink(missing_ok=True)  # of a run that had what this one lacks
            return [files.write_summary(folder, self.summary)]
        return [
            files.write_table(folder, self.table),
            files.write_raw(folder, "pairs", self.raw),
            *files.write_picture(folder, self.name, self.plot()),
            files.write_summary(folder, self.summary),  # last: where it is, all the rest is
        ]


def percent(value: float) -> str:
    """A share in per cent, for a sentence.

    Example:
        >>> percent(0.384).split(), percent(-0.5)[0], percent(-0.001)[0]
        (['38', '%'], '−', '0')
    """
    return f"{round(100 * value)}\N{NO-BREAK SPACE}%".replace("-", "−")


def small(value: float) -> str:
    """A number that may be very small, for a sentence.

    Example:
        >>> small(0.0714), small(0.00018), small(0.0)
        ('0.071', '1.8·10⁻⁴', '0')
    """
    if value == 0 or abs(value) >= 0.01:
        return f"{value:.2g}".replace("-", "−")
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}·10{str(int(power)).translate(_RAISED)}".replace("-", "−")


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def signed(value: float, digits: int = 3) -> str:
    """A contribution with its sign, for a sentence.

    Example:
        >>> signed(0.1), signed(-0.0312)
        ('+0.100', '−0.031')
    """
    return f"{value:+.{digits}f}".replace("-", "−")
