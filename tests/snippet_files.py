"""Where a reader follows a document: a folder with data, and the packages that the document installs."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from snippets import REPOSITORY, snippets

PAIRS = [
    ("A man plays a guitar.", "Someone plays the guitar.", 4.6),
    ("Two dogs run outside.", "Two dogs are not running.", 1.4),
    ("The film was great.", "The movie was terrible.", 1.6),
    ("The cat sleeps.", "Interest rates rose again.", 0.0),
]
PASSAGES = [
    "The tenant is liable for damage to the flat. Normal wear is excepted.",
    "The landlord pays for repairs of the roof. The tenant reports them within a week.",
    "Rent is due on the third day of each month. A late payment costs five euros.",
    "The contract ends after two years. Either side may end it earlier with three months' notice.",
    "Pets need the landlord's consent. Fish and hamsters do not.",
    "The deposit is three months' rent. It is paid back within six weeks of the end of the lease.",
    "The cellar may be used for bicycles. Engines may not be stored there.",
    "Heating runs from October to April. The temperature is at least twenty degrees.",
    "The carrier is liable for goods that are lost. Its liability ends with delivery.",
    "Insurance covers fire and water. It does not cover glass.",
    "The buyer inspects the goods at once. Defects are reported in writing.",
    "Prices include packing. They do not include freight.",
    "The seller gives a warranty of two years. It covers parts and labour.",
    "Disputes are settled by the court in Hamburg. German law applies.",
    "The members meet once a year. The board invites them by letter.",
    "Sundays are quiet. Musical instruments may be played until eight.",
    "The garden is for everybody. Children may play there.",
]
FIRST = "The parcel came late. The box was wet, and two cups were broken."
SECOND = "My order arrived damaged. I would like my money back."
HIDE = """import sys
from importlib.machinery import PathFinder

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {modules!r} else super().find_spec(name, path, target)

    @staticmethod
    def find_distributions(*context):
        found = PathFinder.find_distributions(*context)
        return [one for one in found if one.name.lower().replace("_", "-") not in {distributions!r}]

sys.meta_path = [Installed if finder is PathFinder else finder for finder in sys.meta_path]
"""


@contextmanager
def desk(document: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty desk for one document: a folder with data, and the variables that commands need to run in it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, site = Path(scratch, "reader"), Path(scratch, "site")
        folder.mkdir()
        site.mkdir()
        write_data(folder)
        distributions, modules = not_installed(extras(document))
        hide = HIDE.format(distributions=distributions, modules=modules)
        (site / "sitecustomize.py").write_text(hide, encoding="utf-8")
        exec(hide, {})  # this process runs the Python
        os.chdir(folder)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        # The commands run the code of this folder, whichever one the environment has installed.
        source = str(REPOSITORY / "src")
        sys.path.insert(0, source)
        found = f"{site}{os.pathsep}{source}"
        yield folder, {**os.environ, "PATH": path, "PYTHONPATH": found, "HF_HUB_OFFLINE": "1", "COLUMNS": "80"}


def write_data(folder: Path) -> None:
    """Write the tables and texts that documents take for granted as the reader's own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("pairs", "train", "dev", "test", "stsb-en-dev"):
        _write_csv(folder / f"{name}.csv", ["sentence1", "sentence2", "score"], PAIRS)
    rows = [{"query": a, "passage": b} for a, b, _ in PAIRS]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    contracts = [(f"contract-{n}", f"Clause {n}", 2000 + n, text) for n, text in enumerate(PASSAGES, 1)]
    columns = ["id", "title", "year", "passage"]
    _write_csv(folder / "passages.csv", columns, contracts)
    records = [dict(zip(columns, contract, strict=True)) for contract in contracts]
    (folder / "passages.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist([*records[:2], {**records[2], "id": "contract-18"}]), folder / "more.parquet")
    named = [(f"contract-{n}", f"contract-{n + 1}") for n in range(1, 5)]
    _write_csv(folder / "id-pairs.csv", ["id_a", "id_b"], named)
    (folder / "contract.txt").write_text(" ".join(PASSAGES[:3]), encoding="utf-8")
    (folder / "first.txt").write_text(FIRST, encoding="utf-8")
    (folder / "second.txt").write_text(SECOND, encoding="utf-8")


def _write_csv(path: Path, columns: list[str], rows: list[tuple]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def extras(document: Path) -> set[str]:
    """The extras that a reader has installed: those of README's first line, and those that the document names."""
    text = document.read_text(encoding="utf-8")
    first = [part.source for part in snippets(REPOSITORY / "README.md") if part.source.startswith("pip")][:1]
    found = re.findall(r"(?:pairlens|\.)\[([\w,]+)\]", " ".join([*first, text]))
    return {extra for names in found for extra in names.split(",")}


def not_installed(chosen: set[str]) -> tuple[set[str], set[str]]:
    """What pairlens with some extras does not bring along: distributions and the modules in them."""
    there = requirements(f"pairlens[{','.join(sorted(chosen))}]")
    rest = requirements("pairlens[all,dev]") - there
    homes = metadata.packages_distributions()
    return rest, {name for name, brought in homes.items() if {_canonical(dist) for dist in brought} <= rest}


def requirements(text: str) -> set[str]:
    """The names of a distribution and of all that it requires, with the extras it is asked for."""
    found: set[tuple[str, frozenset[str]]] = set()
    queue = [Requirement(text)]
    while queue:
        wanted = queue.pop()
        key = _canonical(wanted.name), frozenset(wanted.extras)
        if key in found:
            continue
        found.add(key)
        try:
            further = map(Requirement, metadata.requires(wanted.name) or [])
        except metadata.PackageNotFoundError:
            continue
        asked = [{"extra": extra} for extra in ("", *wanted.extras)]
        queue += [one for one in further if one.marker is None or any(map(one.marker.evaluate, asked))]
    return {name for name, _ in found}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
