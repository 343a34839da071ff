"""Search: the hits of a query, each with its explanation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pairlens.attribution import similarity
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation, Pair
from pairlens.attribution.zoom import strongest_sentences
from pairlens.corpus.records import from_table, vectors_of
from pairlens.corpus.settings import IndexSettings
from pairlens.corpus.store import Store
from pairlens.io import find_columns
from pairlens.lens import Lens
from pairlens.shapes import Array
from pairlens.text import Unit

REMEMBERED = 64
"""Queries that are cached."""
SPARE = 16
"""Rows that are fetched beyond k, to see whether some tie with the k-th."""
TIED = 1e-5
"""Scores closer than this may be in the wrong order in LanceDB's single precision."""


class Query:
    """A query: its embedding, and its contributions, which are computed only when an explanation is asked for.

    Args:
        text: the query.
        lens: the model.
        options: how to decompose it, as for `Lens.decompose`.
    """

    def __init__(self, text: str, lens: Lens, options: Mapping[str, Any]) -> None:
        self.text = text
        self.lens = lens
        self._options = dict(options)

    @cached_property
    def embedding(self) -> Array:
        """The model's own output, (dim,): one forward pass."""
        encoder = self.lens.encoder
        return encoder.outputs([encoder.read(self.text, self._options["role"])])[0]

    @cached_property
    def contributions(self) -> Contributions:
        """The query's contributions."""
        return next(self.lens.decompose([self.text], progress=False, **self._options))


class Queries:
    """A cache of recent queries with their embeddings and contributions. Threads may share it."""

    def __init__(self) -> None:
        self._recent: dict[tuple[Any, ...], Query] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...], make: Callable[[], Query]) -> Query:
        """The cached query of a key, or a new one from `make`."""
        with self._lock:
            query = self._recent[key] = self._recent.pop(key, None) or make()  # the key moves to the end
            if len(self._recent) > REMEMBERED:
                del self._recent[next(iter(self._recent))]
            return query


@dataclass(frozen=True, eq=False)
class Hit:
    """A hit of a search.

    Attributes:
        rank: the place among the hits, from 1.
        id: the text's id.
        score: the model's own similarity of query and text.
        text: the text.
        parent: of a passage, the id of the text that it is a part of; else "".
        metadata: its other columns.
        query: the query.
        contributions: what the text's units contribute to its embedding.
        settings: those of the index.
        zoom: whether its explanation has the words of the sentences that matter most.
    """

    rank: int
    id: str
    score: float
    text: str
    parent: str
    metadata: Mapping[str, Any]
    query: Query
    contributions: Contributions
    settings: IndexSettings
    zoom: bool

    @cached_property
    def explanation(self) -> Explanation:
        """Why the text is as near to the query as it is.

        The units that the index holds explain that with one small matrix product. The words of the sentences that
        matter most are computed when the explanation is asked for, with forward passes.
        """
        return zoom_in(self._stored, self.query, self.contributions, self.settings) if self.zoom else self._stored

    @property
    def title(self) -> str:
        """The text's title, if a column of metadata is called title, headline or name; else ""."""
        column = next(iter(find_columns(self.metadata, (("title",), ("headline",), ("name",)))), "")
        return str(self.metadata.get(column) or "")

    @property
    def passage(self) -> tuple[Unit, float]:
        """The sentence that brings the text nearest to the query, and how much it contributes."""
        e = self._stored if self.settings.level == "sentence" else self._by_sentence
        texts = [i for i, unit in enumerate(e.units_b) if unit.kind == "text"]
        effects = e.column + e.effects_b
        best = max(texts, key=lambda i: effects[i])
        return e.units_b[best], float(effects[best])

    def top(self, k: int = 5) -> list[Pair]:
        """The strongest pairs of query and text, special tokens left out."""
        return self.explanation.top(k)

    @cached_property
    def _stored(self) -> Explanation:
        return explain(self.query.contributions, self.contributions, self.settings)

    @cached_property
    def _by_sentence(self) -> Explanation:
        return explain(self.query.contributions, self.contributions.at("sentence"), self.settings)

    def __repr__(self) -> str:
        unit, value = self.passage
        return f"Hit({self.rank}, {self.id!r}, {self.score:.4f}, {unit.text!r:.60} {value:+.3f})"


def explain(a: Contributions, b: Contributions, settings: IndexSettings, *, many: bool = False) -> Explanation:
    """The explanation of two texts as an index's settings have it; `many` as for `similarity.explain`."""
    return similarity.explain(a, b, reference_terms=settings.reference_terms, measure=settings.measure, many=many)


def zoom_in(e: Explanation, query: Query, c: Contributions, settings: IndexSettings) -> Explanation:
    """An explanation with the words of the sentences of the text that matter most for its score.

    Args:
        e: the explanation by sentences; an index that holds something else cannot be refined, and gives this.
        query: the query.
        c: the contributions of the text's sentences.
        settings: those of the index.
    """
    if not settings.has_words_inside:
        return e
    sentences = strongest_sentences(e, "b")
    options: dict[str, Any] = {**settings.options(), "method": settings.method.with_passes(None)}
    (opened,) = query.lens.open_sentences([c], [sentences], **options)
    return explain(query.contributions, opened, settings)


def find(
    store: Store,
    query: Query,
    settings: IndexSettings,
    common: Mapping[str, Any],
    k: int,
    where: str | None,
    *,
    approximate: bool,
    zoom: bool,
) -> list[Hit]:
    """The k texts nearest to a query, nearest first; equally near texts are ordered by id.

    LanceDB finds candidates in single precision; they are scored again in double, and more of them are asked for as
    long as the k-th may tie with one that was left out.
    """
    asked = k + SPARE
    while True:
        table = store.nearest(query.embedding, asked, settings.measure, where, approximate=approximate)
        scores = _score(query.embedding, vectors_of(table.column("embedding")), settings.measure)
        ids = table.column("id").to_pylist()
        order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))
        exhausted = len(ids) < asked or approximate
        if exhausted or scores[order[-1]] < scores[order[k - 1]] - TIED:
            break
        asked *= 2
    chosen = table.take(np.array(order[:k], dtype=np.int64))
    shown = chosen.select([name for name in ("id", "text", "parent", "metadata") if name in chosen.column_names])
    hits = zip(order, from_table(chosen, common), shown.to_pylist(), strict=False)
    return [
        Hit(
            rank=rank,
            id=row["id"],
            score=float(scores[i]),
            text=row["text"],
            parent=row["parent"],
            metadata=row.get("metadata") or {},
            query=query,
            contributions=c,
            settings=settings,
            zoom=zoom,
        )
        for rank, (i, c, row) in enumerate(hits, 1)
    ]


def _score(query: Array, embeddings: Array, measure: str) -> Array:
    embeddings = embeddings.astype(np.float64)
    products = embeddings @ query
    if measure == "dot":
        return products
    sizes = np.linalg.norm(embeddings, axis=1) * np.linalg.norm(query)
    return np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0)
