"""The result of a study: a table, a picture, sentences, their files, and numbers written for a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens.errors import InputError
from pairlens.io import require, versions
from pairlens.study import files
from pairlens.study.catalogue import StudyInfo
from pairlens.study.statistics import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Lacking(InputError):
    """A study lacks an input that it needs; the message says which."""


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a study.

    Attributes:
        about: the study.
        settings: model, data, pairs and views.
        table: the numbers of the picture, one row each.
        raw: the values behind the table, pair by pair.
        figures: the most important numbers, by name.
        sentences: the most important numbers in words.
        draw: makes the picture from the settings.
        skipped: the reason why the study has no table, if it has none.
    """

    about: StudyInfo
    settings: Mapping[str, Any]
    table: list[Record] = field(default_factory=list)
    raw: list[Record] = field(default_factory=list)
    figures: Mapping[str, Any] = field(default_factory=dict)
    sentences: Sequence[str] = ()
    draw: Callable[[Mapping[str, Any]], Figure] | None = None
    skipped: str = ""

    @property
    def name(self) -> str:
        """The study's name."""
        return self.about.name

    @cached_property
    def summary(self) -> Record:
        """Everything except the table and the raw values, ready for JSON."""
        about = self.about
        content = {"sentences": list(self.sentences), "figures": dict(self.figures)}
        return {
            "study": self.name,
            "title": about.title,
            **({"skipped": self.skipped} if self.skipped else content),
            "paper": {"title": about.paper, "where": about.where, "says": about.says},
            "settings": dict(self.settings),
            **({} if self.skipped else {"versions": versions()}),
        }

    def plot(self) -> Figure:
        """The picture."""
        if self.draw is None:
            raise InputError(f"the study {self.name} has no picture: {self.skipped}")
        return self.draw(self.settings)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return require("pandas", "study").DataFrame(self.table)

    def save(self, folder: Path) -> list[Path]:
        """Write summary.json and, unless the study was skipped, table.csv, pairs.parquet, NAME.png and NAME.svg."""
        if self.skipped:
            for old in ("table.csv", "pairs.parquet", f"{self.name}.png", f"{self.name}.svg"):
                (folder / old).unlink(missing_ok=True)  # of an earlier run that had the missing input
            return [files.write_summary(folder, self.summary)]
        return [
            files.write_table(folder, self.table),
            files.write_raw(folder, "pairs", self.raw),
            *files.write_picture(folder, self.name, self.plot()),
            files.write_summary(folder, self.summary),  # last: a folder with a summary is complete
        ]


def short_name(model: str) -> str:
    """A model's name without its owner or folders.

    Example:
        >>> short_name("sentence-transformers/all-MiniLM-L6-v2")
        'all-MiniLM-L6-v2'
    """
    return model.rstrip("/").rsplit("/", 1)[-1]


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
