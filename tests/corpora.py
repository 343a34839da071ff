"""Small corpora, indexes of them, and what indexes hold: for the tests of the corpus."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

import zoo
from pairlens.corpus import Index
from pairlens.corpus import ingest as building
from pairlens.corpus.layout import Layout
from pairlens.io.tables import InputTable

WORDS = [word for word in " ".join(zoo.CORPUS).split() if word.isascii()]


def texts(count: int, seed: int = 0, longest: int = 9) -> list[str]:
    """Texts of one to three sentences, the same in every process."""
    rng = random.Random(seed)

    def sentence() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(2, longest))).rstrip(".?!,;").capitalize() + "."

    return [" ".join(sentence() for _ in range(rng.randint(1, 3))) for _ in range(count)]


def write_jsonl(path: Path, count: int = 60, *, bad: bool = True, seed: int = 0) -> Path:
    """A file of texts, some of them unfit: broken, empty, named twice; and some too long for the tiny model."""
    lines = []
    for i, text in enumerate(texts(count, seed)):
        record: dict[str, Any] = {"id": f"t{i}", "text": text, "year": 1990 + i % 30}
        if bad and i % 20 == 3:
            lines.append('{"id": "broken')
            continue
        if bad and i % 20 == 5:
            record["text"] = "  "
        if bad and i % 20 == 7:
            record["text"] = "coffee " * 200
        if bad and i % 20 == 9:
            record["id"] = f"t{i - 9}"
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def build(path: Path, data: Path, lens: Any = None, *, cluster: Any = None, chunk: int = 8, **options: Any) -> Any:
    """Index a file as `pairlens index` does: make the index or open it, and go on."""
    table = InputTable(str(data))
    layout = Layout.of(table, None, "id" if "id" in table.columns else None, None)
    made = (path / "texts.lance").is_dir()
    index = Index.open(path, lens) if made else Index.create(path, lens, metadata=layout.metadata, **options)
    run = building.IngestRun(index, table, layout, chunk=chunk)
    return index, run(cluster=cluster), run


def build_elsewhere(path: str, data: str, model: str, committed: int, limit: int | None = None) -> None:
    """The same in a process of its own, which may be killed; `limit`: bytes that a file may have, as on a full disk."""
    import resource
    import sys

    import torch

    from pairlens import Lens
    from pairlens.errors import PairlensError

    torch.set_num_threads(1)
    building.COMMITTED = committed
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        build(Path(path), Path(data), Lens(model))
    except PairlensError as error:
        Path(f"{path}.error").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
        sys.exit(3)


def rows(index: Index) -> list[dict[str, Any]]:
    """Everything that an index holds, by name, bit by bit."""
    table = index.store._table.to_arrow()
    found = []
    for row in table.to_pylist():
        row = {name: np.asarray(value).tobytes() if _numeric(value) else value for name, value in row.items()}
        found.append(row)
    return sorted(found, key=lambda row: row["id"])


def _numeric(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list | float)


TEXTS = texts(40)
QUERY = "Is the coffee good?"


def record(i: int, text: str | None = None) -> dict[str, object]:
    """Return a record of the i-th text."""
    return {"id": f"t{i}", "text": text or TEXTS[i], "year": i}
