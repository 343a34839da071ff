"""A query against an abstract: CPU time, forward passes, and how right the words shown are.

Claims of SciFact against the abstracts that they cite. Every way to explain is compared with converged values of its
own: least squares on many more deletions. "words" deletes all words at once. "as before zoom" does what the default did
then, with linear layers by MKL.

    python benchmarks/passages.py --pairs 20 --converged 6000 --cache FOLDER [--model FOLDER] [--device cuda]

The converged values are kept in the folder, so that a machine with a GPU can compute them once (`--only-converge`).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _results import note
from _scifact import default_data, read_abstracts, read_claims

from pairlens import Banzhaf, Explanation, Lens, linalg
from pairlens.attribution.zoom import strongest_sentences
from pairlens.methods.banzhaf import KEEP
from pairlens.model import FIXED
from pairlens.study.statistics import spearman
from pairlens.text import Span, words

WAYS: dict[str, dict[str, Any]] = {
    "words, 400 passes, as before zoom": {"level": "word"},
    "words, 200 passes": {"level": "word", "method": Banzhaf(passes=200)},
    "zoom": {"level": ("word", "zoom")},
    "zoom, bf16": {"level": ("word", "zoom")},
}
TOP = 10


def pairs_of(lens: Lens, count: int) -> list[tuple[str, str]]:
    """Claims of 7 to 14 words with abstracts of 120 words and more that the model reads whole."""
    abstracts = {row["id"]: row["text"] for row in read_abstracts(default_data())}
    found: dict[str, str] = {}
    for claim, cited in read_claims(default_data()).items():
        text = next((abstracts[one] for one in sorted(cited) if one in abstracts), "")
        fits = 7 <= len(claim.split()) <= 14 and len(text.split()) >= 120 and text not in found.values()
        if fits and not lens.encoder.read(text).truncated:
            found[claim] = text
        if len(found) == count:
            break
    return list(found.items())


def least_squares(lens: Lens, text: str, spans: list[Span], draws: int) -> np.ndarray:
    """The vectors of some words of a text by least squares on many deletions of them, (words, dim)."""
    read = lens.encoder.read(text)
    labels = [
        next((i for i, (start, end) in enumerate(spans) if unit.kind == "text" and start <= unit.start < end), FIXED)
        for unit in read.units
    ]
    deletions = lens.encoder.deletions([read], [labels], lens.encoder.space(None, "unit"))
    players = deletions.players[0]
    kept = np.random.default_rng(0).random((draws, len(players))) < KEEP
    embeddings = deletions.embeddings([np.concatenate([np.ones_like(kept[:1]), kept])])[0]
    vectors = np.zeros((len(spans), embeddings.shape[1]))
    vectors[players] = np.linalg.lstsq((~kept).astype(float), embeddings[0] - embeddings[1:], rcond=None)[0]
    return vectors


def converged(lens: Lens, claim: str, text: str, draws: int, file: Path) -> dict[str, np.ndarray]:
    """Converged vectors of the words of a text: deleted anywhere ("words"), and inside the opened sentences ("zoom").

    "zoom" is not a number for the words of sentences that are not opened.
    """
    if not file.exists():
        spans = words(text)
        anywhere = least_squares(lens, text, spans, draws)
        inside = np.full_like(anywhere, np.nan)
        for sentence in strongest_sentences(lens.explain(claim, text, level=("word", "sentence")), "b"):
            places = [i for i, span in enumerate(spans) if sentence.start <= span[0] < sentence.end]
            inside[places] = least_squares(lens, text, [spans[i] for i in places], draws)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, words=anywhere.astype(np.float32), zoom=inside.astype(np.float32))
    return dict(np.load(file))


def agreement(e: Explanation, query: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Precision of the ten strongest pairs of words, and rank correlation, for the words that are shown."""
    spans = words(e.text_b)
    shown = {(unit.start, unit.end): i for i, unit in enumerate(e.units_b) if unit.kind == "text"}
    places = [(i, shown[span]) for i, span in enumerate(spans) if span in shown and np.isfinite(truth[i]).all()]
    if not places:  # another sentence was opened than in the converged run
        return {"precision": np.nan, "rank": np.nan, "words": 0}
    rows = [i for i, unit in enumerate(e.units_a) if unit.kind == "text"]
    mine = e.matrix[np.ix_(rows, [column for _, column in places])].ravel()
    true = (query[rows] @ truth[[i for i, _ in places]].T).ravel()
    top = [set(np.argsort(-np.abs(entries))[:TOP]) for entries in (mine, true)]
    return {"precision": len(top[0] & top[1]) / TOP, "rank": spearman(mine, true) or 0.0, "words": len(places)}


def main() -> None:
    """Print one line per way, with means over the pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--converged", type=int, default=6000, help="deletions of a text for converged values")
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the converged values")
    parser.add_argument("--model", help="a folder; by default the bundled model")
    parser.add_argument("--device")
    parser.add_argument("--only-converge", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lens, rounded = Lens(options.model, options.device), Lens(options.model, options.device, precision="bf16")
    name = Path(options.model or "MiniLM").name
    onednn = linalg.ONEDNN
    measured: dict[str, list[dict[str, float]]] = {}
    for i, (claim, text) in enumerate(pairs_of(lens, options.pairs)):
        truth = converged(lens, claim, text, options.converged, options.cache / f"{name}-{i}.npz")
        if options.only_converge:
            continue
        query = next(lens.decompose([claim], progress=False)).values
        for way, settings in WAYS.items():
            start, clock = time.process_time(), time.perf_counter()
            linalg.ONEDNN = None if "before" in way else onednn
            e = (rounded if "bf16" in way else lens).explain(claim, text, **settings)
            times = {"cpu": time.process_time() - start, "seconds": time.perf_counter() - clock}
            passes = float(e.settings["nodes"][1])
            found = agreement(e, query, truth[way.split(",")[0]])
            measured.setdefault(way, []).append({**times, "passes": passes, **found})
            print(i, way, {key: round(value, 3) for key, value in measured[way][-1].items()}, flush=True)
    for way, rows in measured.items():
        means = {key: float(np.nanmean([row[key] for row in rows])) for key in rows[0]}
        note("passages", f"{name}, {way}", {"pairs": len(rows), **means})


if __name__ == "__main__":
    main()
