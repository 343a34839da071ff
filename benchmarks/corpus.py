"""A corpus of scientific abstracts (SciFact) with all-MiniLM-L6-v2: what indexing, searching and explaining cost.

    python benchmarks/corpus.py DATA --all --method output --index FOLDER

DATA is the folder with corpus_train.csv and claims_validation.csv (allenai/scifact on the hub). Without --all, 200
abstracts. An index that is there is gone on with, so that a long run can be interrupted. With --write the figures
are written to results/corpus.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _scifact import default_data, read_abstracts, read_claims, write_down
from sentence_transformers import util

from pairlens import Lens
from pairlens.corpus import Index
from pairlens.corpus.ingest import IngestRun
from pairlens.corpus.layout import Layout
from pairlens.corpus.pairs import PairRequests, explain_pairs
from pairlens.corpus.workload import Pace
from pairlens.io.tables import InputTable
from pairlens.text import sentences

K = 10
Abstracts = list[dict[str, str]]
Claims = dict[str, set[str]]
Figures = dict[str, Any]


class Clock:
    """Seconds of the wall and of all processors since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def per(self, count: int) -> Figures:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"seconds": wall / count, "cpu_seconds": cpu / count}


def measure_building(lens: Lens, abstracts: Abstracts, folder: Path, options: Figures) -> tuple[Index, Figures]:
    """The index, and what a text of it took; of an index that was there already, nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "abstracts.jsonl"
    data.write_text("".join(json.dumps(abstract) + "\n" for abstract in abstracts), encoding="utf-8")
    table = InputTable(str(data))
    path = folder / "index"
    new = not (path / "texts.lance").is_dir()
    index = Index.create(path, lens, **options) if new else Index.open(path, lens)
    seen: dict[str, int] = {}
    clock = Clock()
    report = IngestRun(index, table, Layout.of(table, "text", "id", None))(progress=_last_rows(seen))
    fresh = seen["last"] - seen["first"] if seen else 0
    if not fresh:
        return index, {}
    counts = {"texts": report.added, "truncated": report.truncated, "rejected": report.rejected, "measured_on": fresh}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return index, {"building": {"method": repr(index.settings.method), **counts, **clock.per(fresh), "peak_mb": peak}}


def _last_rows(seen: dict[str, int]) -> Callable[[Pace], None]:
    """A function that notes the rows that were finished at first and at last."""

    def note(pace: Pace) -> None:
        seen.setdefault("first", pace.rows)
        seen["last"] = pace.rows

    return note


def ndcg(ranked: list[str], relevant: set[str]) -> float:
    gain = sum(1 / np.log2(place + 2) for place, name in enumerate(ranked[:K]) if name in relevant)
    return gain / sum(1 / np.log2(place + 2) for place in range(min(K, len(relevant))))


def measure_ranking(lens: Lens, index: Index, abstracts: Abstracts, claims: Claims) -> Figures:
    """Against sentence-transformers' own search over its own embeddings."""
    model: Any = vars(lens.encoder)["_model"]
    names = [abstract["id"] for abstract in abstracts]
    corpus = model.encode([abstract["text"] for abstract in abstracts], convert_to_tensor=True, batch_size=16)
    found = util.semantic_search(model.encode(list(claims), convert_to_tensor=True), corpus, top_k=K)
    theirs = [[names[int(hit["corpus_id"])] for hit in hits] for hits in found]
    mine, exact = _search(index, claims, approximate=False)
    index.index_vectors()
    near, quick = _search(index, claims, approximate=True)
    known = [relevant & set(names) for relevant in claims.values()]
    ours, other = (
        statistics.mean(ndcg(own, relevant) for own, relevant in zip(ranked, known, strict=True) if relevant)
        for ranked in (mine, theirs)
    )
    return {
        "texts": len(names),
        "claims": len(claims),
        "claims_with_a_cited_text": sum(map(bool, known)),
        "ndcg_at_10": ours,
        "ndcg_at_10_semantic_search": other,
        "same_rankings": sum(a == b for a, b in zip(mine, theirs, strict=True)),
        "median_ms": exact,
        "approximate_median_ms": quick,
        "approximate_recall_at_10": statistics.mean(len({*a} & {*b}) / K for a, b in zip(mine, near, strict=True)),
    }


def _search(index: Index, claims: Claims, *, approximate: bool) -> tuple[list[list[str]], float]:
    """The names of the hits, and milliseconds a search at the median; queries are embedded beforehand."""
    for claim in claims:
        _ = index._query(claim, None, None).embedding
    seconds, found = [], []
    for claim in claims:
        start = time.perf_counter()
        hits = index.search(claim, K, approximate=approximate)
        seconds.append(time.perf_counter() - start)
        found.append([hit.id for hit in hits])
    return found, 1e3 * statistics.median(seconds)


def measure_explanations(lens: Lens, index: Index, claims: Claims, queries: int, hits: int) -> Figures:
    """Explanations from the store against fresh ones, and what they take once the query is taken apart."""
    settings = index.settings
    made, fetched, entries, numbers = [], [], [], []
    for claim in list(claims)[:queries]:
        found = index.search(claim, hits, method=settings.method)
        _ = found[0].query.contributions
        for hit in found:
            start = time.perf_counter()
            stored = hit.explanation
            made.append(time.perf_counter() - start)
            start = time.perf_counter()
            index.explain(claim, hit.id, method=settings.method)
            fetched.append(time.perf_counter() - start)
            fresh = lens.explain(
                claim,
                hit.text,
                method=settings.method,
                rule=settings.rule,
                level=("word", settings.level),
                reference_terms=settings.reference_terms,
                measure=settings.measure,
                roles=("query", "document"),
            )
            entries.append(np.abs(stored.matrix - fresh.matrix).max())
            numbers.append(max(abs(stored.score - fresh.score), abs(stored.base - fresh.base)))
    return {
        "compared": len(entries),
        "largest_difference_of_an_entry": float(max(entries)),
        "largest_difference_of_score_or_base": float(max(numbers)),
        "hit_median_ms": 1e3 * statistics.median(made),
        "hit_95_percent_ms": 1e3 * float(np.quantile(made, 0.95)),
        "by_id_median_ms": 1e3 * statistics.median(fetched),
    }


def measure_size(lens: Lens, index: Index, abstracts: Abstracts, claims: Claims, count: int) -> Figures:
    """The same texts in half and in single precision."""
    some = abstracts[:: max(1, len(abstracts) // count)][:count]
    queries = list(lens.decompose(list(claims)[:20], progress=False, **index.settings.query_options()))
    matrices, sizes = {}, {}
    how = {name: getattr(index.settings, name) for name in ("method", "rule", "level")}
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("float16", "float32"):
            own = Index.create(Path(folder) / precision, lens, precision=precision, **how)
            own.add(some)
            sizes[precision] = own.store.bytes / len(own)
            stored = own.contributions([text["id"] for text in some])
            matrices[precision] = [lens.compare(query, c).matrix for query in queries for c in stored]
    return {
        "bytes_a_text_float16": sizes["float16"],
        "bytes_a_text_float32": sizes["float32"],
        "bytes_a_text_itself": statistics.mean(len(text["text"].encode()) for text in some),
        "matrices": len(matrices["float16"]),
        "largest_change_of_an_entry": float(max(np.abs(a - b).max() for a, b in zip(*matrices.values(), strict=True))),
        "bytes_a_text_whole_index": index.store.bytes / len(index),
    }


def measure_lengths(lens: Lens, abstracts: Abstracts, count: int) -> list[Figures]:
    """What texts of some lengths take by default: the capacity model of docs/cluster.md."""
    found = []
    for length in (1, 3, None):
        texts = [_beginning(abstract["text"], length) for abstract in abstracts[:: len(abstracts) // count][:count]]
        with tempfile.TemporaryDirectory() as folder:
            index = Index.create(Path(folder), lens)
            clock = Clock()
            index.add(({"id": str(n), "text": text} for n, text in enumerate(texts)))
            took = clock.per(len(texts))
            parts = index.contributions([str(n) for n in range(len(texts))])
            size = index.store.bytes / len(index)
        units = statistics.mean(sum(unit.kind == "text" for unit in c.units) for c in parts)
        tokens = statistics.mean(len(c.tokens) for c in parts)
        found.append({"sentences": units, "tokens": tokens, **took, "bytes_a_text": size})
    return found


def _beginning(text: str, count: int | None) -> str:
    if count is None:
        return text
    return text[: sentences(text)[:count][-1][1]]


def measure_pairs(index: Index, abstracts: Abstracts, folder: Path, count: int) -> Figures:
    """Many pairs of texts of the index."""
    names = [row["id"] for row in abstracts]
    path = folder / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id_a", "id_b"])
        drawn = np.random.default_rng(0).integers(0, len(names), (count, 2))
        writer.writerows([names[i], names[j]] for i, j in drawn)
    clock = Clock()
    outcome = explain_pairs(index, PairRequests.of(InputTable(str(path))), folder / "pairs", restart=True)
    took = clock.per(outcome.explained)
    size = sum(part.stat().st_size for part in (folder / "pairs").glob("*.parquet")) / outcome.explained
    return {"pairs": outcome.explained, **took, "bytes_a_pair": size}


def main() -> None:
    """Print all figures, and write them down where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=default_data())
    parser.add_argument("--all", action="store_true", help="all 5,183 abstracts; with --method output, half an hour")
    parser.add_argument("--index", type=Path, help="where to keep the index")
    parser.add_argument("--method", help="of the index, instead of Shapley values: output, occlusion")
    parser.add_argument("--layer", type=int, help="integrated Jacobians of this layer instead")
    parser.add_argument("--device", help="where to compute: cpu, cuda")
    parser.add_argument("--write", action="store_true", help="write the figures to results/corpus.json")
    options = parser.parse_args()
    if not (options.data / "corpus_train.csv").is_file():
        print(f"no SciFact in {options.data}: give its folder")
        return
    warnings.simplefilter("ignore")
    abstracts, claims = read_abstracts(options.data), read_claims(options.data)
    cited = set().union(*claims.values())
    if not options.all:
        abstracts = sorted(abstracts, key=lambda abstract: abstract["id"] not in cited)[:200]
    lens = Lens(device=options.device)
    chosen = {name: getattr(options, name) for name in ("method", "layer") if getattr(options, name) is not None}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.index or Path(scratch)
        index, figures = measure_building(lens, abstracts, folder, chosen)
        figures["search"] = measure_ranking(lens, index, abstracts, claims)
        figures["explanations"] = measure_explanations(lens, index, claims, *((100, 3) if options.all else (10, 2)))
        figures["size"] = measure_size(lens, index, abstracts, claims, 64 if options.all else 16)
        figures["pairs"] = measure_pairs(index, abstracts, folder, 100_000 if options.all else 10_000)
    figures["lengths"] = measure_lengths(lens, abstracts, 32 if options.all else 4)
    print(json.dumps(figures, indent=2))
    if options.write:
        write_down("corpus", figures)


if __name__ == "__main__":
    main()
