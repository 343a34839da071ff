"""A corpus of scientific abstracts (SciFact) with all-MiniLM-L6-v2: what indexing, searching and explaining cost.

    python benchmarks/corpus.py DATA --all --index FOLDER

DATA is the folder with corpus_train.csv and claims_validation.csv (allenai/scifact on the hub). Without --all, 200
abstracts. An index that is there is gone on with, so that a long run can be interrupted.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import json
import os
import re
import statistics
import tempfile
import time
import tokenize
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import util

from pairlens import Lens
from pairlens.corpus import Index
from pairlens.corpus.build import Run
from pairlens.corpus.inputs import Input
from pairlens.corpus.layout import Layout
from pairlens.corpus.pairs import Pairs, explain_pairs

K = 10


def default_data() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("PAIRLENS_DATA", beside)) / "scifact"


def read_abstracts(folder: Path) -> list[dict[str, str]]:
    """Title and sentences, which the file holds as NumPy prints a list."""
    csv.field_size_limit(2**31 - 1)
    found = []
    with (folder / "corpus_train.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            parts = tokenize.generate_tokens(io.StringIO(row["abstract"]).readline)
            sentences = [ast.literal_eval(part.string) for part in parts if part.type == tokenize.STRING]
            found.append({"id": row["doc_id"], "text": " ".join([row["title"], *sentences])})
    return found


def read_claims(folder: Path) -> dict[str, set[str]]:
    """Claims, each with the abstracts that it cites."""
    found: dict[str, set[str]] = {}
    with (folder / "claims_validation.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["claim"], set()).update(re.findall(r"\d+", row["cited_doc_ids"]))
    return found


def ndcg(ranked: list[str], relevant: set[str]) -> float:
    gain = sum(1 / np.log2(place + 2) for place, name in enumerate(ranked[:K]) if name in relevant)
    return gain / sum(1 / np.log2(place + 2) for place in range(min(K, len(relevant))))


def measure_building(lens: Lens, abstracts: list[dict[str, str]], folder: Path, options: dict) -> Index:
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "abstracts.jsonl"
    data.write_text("".join(json.dumps(abstract) + "\n" for abstract in abstracts), encoding="utf-8")
    table = Input(str(data))
    layout = Layout.of(table, "text", "id", None)
    path = folder / "index"
    new = not (path / "texts.lance").is_dir()
    index = Index.create(path, lens, **options) if new else Index.open(path, lens)
    run = Run(index, table, layout, truncate=True)
    wall, cpu, seen = time.perf_counter(), time.process_time(), []
    report = run(progress=seen.append)
    wall, cpu, fresh = time.perf_counter() - wall, time.process_time() - cpu, sum(seen[1:])
    print(f"index: {report}; {index.settings.method}")
    if fresh:
        print(
            f"  {wall / fresh:.3f} s and {cpu / fresh:.3f} CPU seconds a text, for the last {fresh} (goal: under 0.5 s)"
        )
    return index


def measure_ranking(lens: Lens, index: Index, abstracts: list[dict[str, str]], claims: dict[str, set[str]]) -> None:
    """Against sentence-transformers' own search over its own embeddings."""
    model: Any = vars(lens._encoder)["_model"]
    names = [abstract["id"] for abstract in abstracts]
    corpus = model.encode([abstract["text"] for abstract in abstracts], convert_to_tensor=True, batch_size=16)
    found = util.semantic_search(model.encode(list(claims), convert_to_tensor=True), corpus, top_k=K)
    theirs = [[names[int(hit["corpus_id"])] for hit in hits] for hits in found]
    seconds, mine = [], []
    for claim in claims:
        start = time.perf_counter()
        hits = index.search(claim, K)
        seconds.append(time.perf_counter() - start)
        mine.append([hit.id for hit in hits])
    there = set(names)
    known = [relevant & there for relevant in claims.values()]
    one, other = (
        statistics.mean(ndcg(own, relevant) for own, relevant in zip(ranked, known, strict=True) if relevant)
        for ranked in (mine, theirs)
    )
    same = sum(a == b for a, b in zip(mine, theirs, strict=True))
    quick = 1e3 * statistics.median(seconds)
    print(f"search: nDCG@10 {one:.6f}, sentence-transformers {other:.6f}, over {sum(map(bool, known))} claims")
    print(
        f"  {same} of {len(claims)} rankings the same; a search takes {quick:.1f} ms (median), the embedding included"
    )


def measure_explanations(lens: Lens, index: Index, claims: dict[str, set[str]], count: int) -> None:
    """Explanations from the store against fresh ones, and what they take."""
    settings = index.settings
    seconds, fetched, worst, errors = [], [], 0.0, 0.0
    for claim in list(claims)[:count]:
        hits = index.search(claim, 3, method=settings.method)
        _ = hits[0].query.contributions
        for hit in hits:
            start = time.perf_counter()
            _ = hit.explanation
            seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            index.explain(claim, hit.id, method=settings.method)
            fetched.append(time.perf_counter() - start)
        stored = hits[-1].explanation
        fresh = lens.explain(
            claim,
            hits[-1].text,
            method=settings.method,
            rule=settings.rule,
            level=("word", settings.level),
            reference_terms=settings.reference_terms,
            measure=settings.measure,
            roles=("query", "document"),
        )
        worst = max(worst, np.abs(stored.matrix - fresh.matrix).max())
        errors = max(errors, abs(stored.score - fresh.score), abs(stored.base - fresh.base))
    print(f"explanations: {count} compared with fresh ones, entries within {worst:.1e}, score and base {errors:.1e}")
    for what, times in (("of a hit", seconds), ("read from disk by name first", fetched)):
        quick, slow = 1e3 * statistics.median(times), 1e3 * np.quantile(times, 0.95)
        print(f"  {what}: median {quick:.2f} ms, 95% {slow:.2f} ms, of {len(times)} (goal: under 5)")


def measure_size(lens: Lens, index: Index, abstracts: list[dict[str, str]], claims: dict[str, set[str]]) -> None:
    """The same texts in half and in single precision."""
    some = abstracts[:: max(1, len(abstracts) // 32)][:32]
    queries = list(lens.decompose(list(claims)[:20], progress=False, **index.settings.query_options()))
    matrices, sizes = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("float16", "float32"):
            options: dict[str, Any] = {
                "method": index.settings.method,
                "rule": index.settings.rule,
                "level": index.settings.level,
            }
            own = Index.create(Path(folder) / precision, lens, precision=precision, **options)
            own.add(some, truncate=True)
            sizes[precision] = own._store.bytes / len(own)
            stored = own.contributions([text["id"] for text in some])
            matrices[precision] = [lens.compare(query, c).matrix for query in queries for c in stored]
    change = max(np.abs(a - b).max() for a, b in zip(*matrices.values(), strict=True))
    text = statistics.mean(len(text["text"].encode()) for text in some)
    print(f"size: {sizes['float16']:.0f} bytes a text in float16, {sizes['float32']:.0f} in float32 (texts {text:.0f})")
    print(f"  the largest change of any entry of {len(matrices['float16'])} matrices: {change:.1e}")
    print(f"  the whole index: {index._store.bytes / len(index):.0f} bytes a text")


def measure_pairs(index: Index, abstracts: list[dict[str, str]], folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    names = [row["id"] for row in abstracts]
    path = folder / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id_a", "id_b"])
        writer.writerows([names[i], names[j]] for i, j in rng.integers(0, len(names), (count, 2)))
    start, cpu = time.perf_counter(), time.process_time()
    outcome = explain_pairs(index, Pairs.of(Input(str(path))), folder / "pairs", restart=True)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    size = sum(part.stat().st_size for part in (folder / "pairs").glob("*.parquet")) / outcome.explained
    rates = f"{outcome.explained / wall:,.0f} a second, {outcome.explained / cpu:,.0f} a CPU second"
    print(f"pairs: {rates}, {size:.0f} bytes each")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=default_data())
    parser.add_argument("--all", action="store_true", help="all 5,183 abstracts, which takes an hour or more")
    parser.add_argument("--index", type=Path, help="where to keep the index")
    parser.add_argument("--layer", type=int, help="integrated Jacobians of this layer instead of Shapley values")
    parser.add_argument("--device", help="where to compute: cpu, cuda")
    parser.add_argument("--pairs", type=int, default=100_000)
    options = parser.parse_args()
    if not (options.data / "corpus_train.csv").is_file():
        print(f"no SciFact in {options.data}: give its folder")
        return
    warnings.simplefilter("ignore")
    abstracts, claims = read_abstracts(options.data), read_claims(options.data)
    if not options.all:
        cited = set().union(*claims.values())
        abstracts = sorted(abstracts, key=lambda abstract: abstract["id"] not in cited)[:200]
    lens = Lens(device=options.device)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.index or Path(scratch)
        chosen = {} if options.layer is None else {"layer": options.layer}
        index = measure_building(lens, abstracts, folder, chosen)
        measure_ranking(lens, index, abstracts, claims)
        measure_explanations(lens, index, claims, 20)
        measure_size(lens, index, abstracts, claims)
        measure_pairs(index, abstracts, folder, options.pairs)


if __name__ == "__main__":
    main()
