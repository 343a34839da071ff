"""The files beside a trained model's weights: a record of its training, and a model card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairlens.errors import InputError
from pairlens.io import versions

RECORD = "adjustment.json"
FORMAT = "pairlens.adjustment"
Record = dict[str, Any]
PAPERS = (
    "[An Attribution Method for Siamese Encoders](https://arxiv.org/abs/2310.05703)",
    "[Approximate Attributions for Off-the-Shelf Siamese Transformers](https://arxiv.org/abs/2402.02883)",
)


def write_model(folder: Path, model: Any, record: Record) -> None:
    """Write a trained model with its record and its model card."""
    model.save_pretrained(str(folder), create_model_card=False)
    whole = {"format": FORMAT, **record, "versions": versions("datasets", "accelerate")}
    (folder / RECORD).write_text(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False), encoding="utf-8")
    (folder / "README.md").write_text(render_card(whole), encoding="utf-8")


def read_record(folder: Path) -> Record | None:
    """Return the record of the training of a folder's model, or None if pairlens has not trained it."""
    path = folder / RECORD
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def render_card(record: Mapping[str, Any]) -> str:
    """Return the model card, README.md, of a trained model."""
    settings = record["settings"]
    adjusted, base, objective = settings["adjusted"], str(settings["base"]), settings["objective"]
    kind = "adjusted" if adjusted else "unadjusted"
    tags = ["sentence-transformers", "sentence-similarity", "feature-extraction", "pairlens", *["adjusted"] * adjusted]
    head = ["---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity"]
    if "/" in base and not base.startswith((".", "/")) and base.count("/") == 1:
        head.append(f"base_model: {base}")
    head += ["tags:", *(f"- {tag}" for tag in tags), "---"]
    name = base.rstrip("/").rsplit("/", 1)[-1]
    sections = [
        head,
        [f"# {name}, {kind}, trained with {_objective(objective)}"],
        _about(objective) if adjusted else _about_twin(),
        ["## Use"],
        ["```python", *_usage(adjusted), "```"],
        ["## Scores"],
        _scores(record),
        ["## Training"],
        _training(record),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _objective(objective: str) -> str:
    return "cosine similarity" if objective == "cosine" else "a dot product"


def _about(objective: str) -> list[str]:
    normalize = " It has no final normalisation: its similarity is the dot product." if objective == "dot" else ""
    return [
        "A sentence encoder whose similarity scores can be attributed to pairs of tokens exactly. It subtracts from",
        "every embedding the embedding of a reference of the same length (the special tokens kept, every other token",
        "replaced by padding), so that the reference's own embedding is zero and attributions sum to the score, with",
        f"nothing left over.{normalize} The method is that of {PAPERS[0]} and {PAPERS[1]}.",
    ]


def _about_twin() -> list[str]:
    return [
        "A sentence encoder that was trained in every respect as an adjusted one, but without the adjustment: the",
        f"other side of the comparison in {PAPERS[0]}.",
    ]


def _usage(adjusted: bool) -> list[str]:
    explain = [
        "from pairlens import Lens  # pip install pairlens",
        "",
        'lens = Lens("THIS FOLDER")',
        'e = lens.explain("The coffee here is not good.", "This coffee is bad.", level="word")',
        "e.score, e.matrix.sum(), e.top(3)  # the matrix sums to the score",
        "",
    ]
    note = "# The adjusting module is pairlens's; sentence-transformers from 6.0 on asks you to say that you trust it."
    trust = ", trust_remote_code=True" if adjusted else ""
    return [
        *(explain if adjusted else []),
        "from sentence_transformers import SentenceTransformer",
        "",
        *([note] if adjusted else []),
        f'model = SentenceTransformer("THIS FOLDER"{trust})',
        'embeddings = model.encode(["The coffee here is not good.", "This coffee is bad."])',
    ]


def _scores(record: Mapping[str, Any]) -> list[str]:
    measured = [(split, record[split]) for split in ("dev", "test") if record[split]]
    if not measured:
        return ["The model was not measured: neither dev nor test pairs were given."]
    data = record["settings"]["data"]
    rows = [
        f"| {split}: {data[split]['name']}, {data[split]['pairs']:,} pairs | {row['cosine']:.4f} | {row['dot']:.4f} |"
        for split, row in measured
    ]
    return [
        "Spearman's correlation with the scores of people, by the cosine and by the dot product of the embeddings",
        "before any normalisation:",
        "",
        "| | cosine | dot |",
        "|---|---|---|",
        *rows,
    ]


def _training(record: Mapping[str, Any]) -> list[str]:
    settings = record["settings"]
    train = settings["data"]["train"]
    chosen = f"the best of {settings['epochs']} on dev" if record["dev"] else "the last"
    rows = {
        "base": settings["base"],
        "data": f"{train['name']}: {train['pairs']:,} pairs, scores divided by {train['max_score']:g} "
        f"(sha256 {train['sha256'][:16]})",
        "objective": f"mean squared error of {_objective(settings['objective'])}",
        "epochs": f"{settings['epochs']}; this is epoch {record['epoch']}, {chosen}",
        "batch size": settings["batch_size"],
        "optimizer": f"AdamW, learning rate {settings['lr']:g}, weight decay {settings['weight_decay']:g}, linear "
        f"warm-up over {settings['warmup']:.0%} of the steps, then linear decay",
        "seed": settings["seed"],
        "precision": f"{settings['precision']}, on {record['device']}",
        "versions": ", ".join(f"{name} {number}" for name, number in record["versions"].items()),
    }
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
