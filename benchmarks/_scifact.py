"""SciFact (allenai/scifact on the hub): its abstracts and claims, and the files for figures about them."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import tokenize
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def default_data() -> Path:
    """The folder with corpus_train.csv and claims_validation.csv."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("PAIRLENS_DATA", beside)) / "scifact"


def read_abstracts(folder: Path) -> list[dict[str, str]]:
    """The abstracts, title first; the file holds their sentences as NumPy prints a list."""
    csv.field_size_limit(2**31 - 1)
    abstracts = []
    with (folder / "corpus_train.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            parts = tokenize.generate_tokens(io.StringIO(row["abstract"]).readline)
            sentences = [ast.literal_eval(part.string) for part in parts if part.type == tokenize.STRING]
            abstracts.append({"id": row["doc_id"], "text": " ".join([row["title"], *sentences])})
    return abstracts


def read_claims(folder: Path) -> dict[str, set[str]]:
    """Claims, each with the abstracts that it cites."""
    claims: dict[str, set[str]] = {}
    with (folder / "claims_validation.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            claims.setdefault(row["claim"], set()).update(re.findall(r"\d+", row["cited_doc_ids"]))
    return claims


def write_down(name: str, figures: dict[str, Any]) -> None:
    """Write figures to results/NAME.json; sections that were not measured this time stay unchanged."""
    path = RESULTS / f"{name}.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps({**before, **figures}, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path.parent.name}/{path.name}")
