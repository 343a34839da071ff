"""What all studies share: the model, the pairs, and their explanations, each of which is made once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import pairlens
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError, NotConverged, NumericalError, ReferenceWarning, TruncationWarning, choose, whole
from pairlens.io.tables import Row
from pairlens.lens import OTHERS, Lens
from pairlens.shapes import Array
from pairlens.study.archive import Archive, pack, unpack
from pairlens.study.statistics import score
from pairlens.study.views import Choice, View

if TYPE_CHECKING:
    from pairlens.study.language.annotations import Annotations
    from pairlens.study.language.wordnet import WordNet

CHUNK = 32
"""Pairs that are kept in one piece."""
SWEEP = 40
"""Pairs that are explained at every layer, unless something else is asked for."""
OF_A_TEXT = (InputError, NotConverged, NumericalError)
Explained = list[tuple[Row, Explanation]]


@dataclass
class Materials:
    """What studies are made of.

    Attributes:
        lens: the model.
        pairs: the pairs of texts, with or without a score: `(a, b)`, `(a, b, score)`, or rows of a table.
        choice: how to explain, where that is not left to the study.
        sweep: how many of the pairs, the first ones, are explained at every layer, which is costly; None to leave it to
            the study.
        measure: "cosine" or "dot"; the model's own by default.
        tol: the largest relative gap of a text, for methods that integrate.
        seed: of everything that is drawn.
        words: whether a word's contribution is the "sum" of its tokens', or the "mean" as the first paper has it.
        points: the largest number of points in the study of convergence.
        pair: the number of the pair that is shown where a study shows one; None to let it choose.
        annotations: parts of speech, lemmas and dependencies, for studies that need them.
        wordnet: synonyms and antonyms, likewise.
        adjectives: pairs of adjectives with their relation, beside those that pairlens brings.
        others: further models, for the study that compares them.
        adjusted: a model with exact attributions. `twin`: the same model, trained alike, without them.
        archive: where explanations are kept; in memory by default.
        together: how many pairs are explained at a time: a GPU wants many, and a run that is cut off loses as many.
        data: the name of the data.
        progress: show progress bars.

    Example:
        >>> from pairlens import Lens
        >>> materials = Materials(Lens(), [("A cat sleeps.", "A dog sleeps.")], progress=False)
        >>> [(row.number, e.units_a[1].text) for row, e in materials.explain(View("output", None, "project"))]
        [(1, 'A')]
    """

    lens: Lens
    pairs: Sequence[Any]
    choice: Choice = field(default_factory=Choice)
    sweep: int | None = None
    measure: str | None = None
    tol: float = 1e-3
    seed: int = 0
    words: str = "sum"
    points: int = 512
    pair: int | None = None
    annotations: Annotations | None = None
    wordnet: WordNet | None = None
    adjectives: Sequence[tuple[str, str, str]] = ()
    others: Sequence[Lens] = ()
    adjusted: Lens | None = None
    twin: Lens | None = None
    archive: Archive = field(default_factory=Archive)
    together: int = CHUNK
    data: str = ""
    progress: bool = True
    left_out: dict[str, dict[int, str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.pairs = [
            pair if isinstance(pair, Row) else Row(number, number, *pair[:2], score=(*pair, None)[2])
            for number, pair in enumerate(self.pairs, 1)
        ]
        if not self.pairs:
            raise InputError("a study needs one pair of texts at least.")
        choose("words", self.words, ("sum", "mean"))
        if self.sweep is not None:
            self.sweep = whole("sweep", self.sweep, 1)
        self._asked = self.measure
        self.measure = self._measure(self.lens)

    @property
    def rows(self) -> list[Row]:
        """All pairs."""
        return list(self.pairs)

    def few(self, most: int = SWEEP) -> list[Row]:
        """The pairs that are explained at every layer: as many as was asked for, or `most`."""
        return self.rows[: most if self.sweep is None else self.sweep]

    def explain(self, view: View, rows: Sequence[Row] | None = None, *, lens: Lens | None = None) -> Explained:
        """Explanations of pairs, at the level of tokens; those that cannot be explained are left out, and noted.

        Args:
            view: how.
            rows: which pairs; all by default.
            lens: another model than the study's own.
        """
        return list(self._stream(view, self.rows if rows is None else rows, lens or self.lens))

    def of_texts(self, view: View, pairs: Iterable[tuple[str, str]]) -> list[Explanation | None]:
        """Explanations of texts that are not in the data, None for those that cannot be explained."""
        rows = [Row(number, number, a, b) for number, (a, b) in enumerate(pairs, 1)]
        found = {row.number: e for row, e in self._stream(view, rows, self.lens, note=False)}
        return [found.get(row.number) for row in rows]

    def score(self, pairs: Sequence[tuple[str, str]]) -> Array:
        """The model's own scores, by plain forward passes, (pairs,); NaN where a text cannot be read."""
        encoder: Any = self.lens.encoder
        vectors: dict[str, Array] = {}
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        for start in range(0, len(texts), 256):
            read = {}
            for text in texts[start : start + 256]:
                try:
                    read[text] = encoder.read(text)
                except InputError:
                    continue
            if read:
                vectors |= dict(zip(read, encoder.outputs(list(read.values())), strict=True))
        width = len(next(iter(vectors.values()), ()))
        a, b = (np.array([vectors.get(pair[side], np.full(width, np.nan)) for pair in pairs]) for side in (0, 1))
        return score(a, b, str(self.measure))

    def describe(self, views: Sequence[View], pairs: int, **more: Any) -> dict[str, Any]:
        """What a result was made of, for its summary."""
        out = {view.label: self.left_out[view.label] for view in views if self.left_out.get(view.label)}
        return {
            "model": self.lens.name,
            "fingerprint": self.lens.encoder.fingerprint,
            "adjusted": self.lens.adjusted,
            "layers": self.lens.layers,
            "data": self.data,
            "pairs": pairs,
            "pairs_asked": len(self.pairs),
            "explained_by": [view.label for view in views],
            "measure": self.measure,
            "tol": self.tol,
            "seed": self.seed,
            "left_out": {label: {str(number): why for number, why in pairs.items()} for label, pairs in out.items()},
            **more,
        }

    def bar(self, total: int, what: str, unit: str = " pairs") -> Any:
        """A progress bar, on a terminal."""
        from tqdm.auto import tqdm

        return tqdm(total=total, desc=what, unit=unit, disable=None if self.progress else True, leave=False)

    # Inside.

    def _measure(self, lens: Lens) -> str:
        """How a model's embeddings are compared: as was asked for, or each model's own way."""
        return lens._treatment(None, self._asked)[1]

    def _stream(self, view: View, rows: Sequence[Row], lens: Lens, *, note: bool = True) -> Iterator[tuple[Row, Any]]:
        with self.bar(len(rows), view.label) as bar:
            for group in cut(rows, self.together):
                for row, entry in zip(group, self._entries(view, group, lens), strict=True):
                    if not isinstance(entry, str):
                        yield row, entry
                    elif note:
                        self.left_out.setdefault(view.label, {})[row.number] = entry
                bar.update(len(group))

    def _key(self, view: View, rows: Sequence[Row], lens: Lens) -> dict[str, Any]:
        return {
            "what": "explanations",
            "pairlens": pairlens.__version__,
            "model": lens.encoder.fingerprint,
            "dtype": lens.encoder.precision,
            "measure": self._measure(lens),
            "tol": self.tol,
            **view.options,
            "settings": repr(OTHERS[view.method]()) if view.method in OTHERS else "",
            "pairs": [[row.a, row.b] for row in rows],
        }

    def _entries(self, view: View, rows: Sequence[Row], lens: Lens) -> list[Explanation | str]:
        """Explanations as they were kept, or made now: all of them where one piece is missing, as the first time."""
        kept = [self.archive.recall(self._key(view, piece, lens)) for piece in cut(rows, CHUNK)]
        whole = [unpack(piece) for piece in kept if piece is not None]
        if len(whole) == len(kept):
            return [entry for piece in whole for entry in piece]
        return self._covered(view, rows, lens) or self._make(view, rows, lens)

    def _covered(self, view: View, rows: Sequence[Row], lens: Lens) -> list[Explanation | str] | None:
        """Some of the pairs out of what another study has kept of all of them; None where anything is missing."""
        wanted = {(row.a, row.b) for row in rows}
        found: dict[tuple[str, str], Explanation | str] = {}
        for piece in cut(self.rows, CHUNK):
            if not wanted.isdisjoint((row.a, row.b) for row in piece):
                kept = self.archive.recall(self._key(view, piece, lens))
                if kept is None:
                    return None
                found |= {(row.a, row.b): entry for row, entry in zip(piece, unpack(kept), strict=True)}
        return [found[row.a, row.b] for row in rows] if wanted <= found.keys() else None

    def _make(self, view: View, rows: Sequence[Row], lens: Lens) -> list[Explanation | str]:
        """Explain pairs in this view and in those that cost nothing more, and keep them all."""
        done = self._decompose(view, list(dict.fromkeys(text for row in rows for text in (row.a, row.b))), lens)
        own: list[Explanation | str] = []
        for sibling in view.siblings(self._measure(lens)):
            for piece in cut(rows, CHUNK):
                entries = [self._compare(done[row.a], done[row.b], sibling, lens) for row in piece]
                self.archive.keep(self._key(sibling, piece, lens), pack(entries))
                own += entries if sibling == view else []
        return own

    def _compare(self, a: Contributions | str, b: Contributions | str, view: View, lens: Lens) -> Explanation | str:
        if isinstance(a, str) or isinstance(b, str):
            return f"text a: {a}" if isinstance(a, str) else f"text b: {b}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReferenceWarning)
                return lens.compare(a, b, reference_terms=view.reference_terms, measure=self._measure(lens))
        except InputError as error:
            return str(error)

    def _decompose(self, view: View, texts: Sequence[str], lens: Lens) -> Mapping[str, Contributions | str]:
        options: dict[str, Any] = {**view.options, "measure": self._measure(lens), "tol": self.tol, "progress": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            try:
                return dict(zip(texts, lens.decompose(texts, **options), strict=True))
            except OF_A_TEXT:
                next(lens.decompose(["one"], **options))  # options that cannot be used are no fault of a text
                found: dict[str, Contributions | str] = {}
                for text in texts:
                    try:
                        found[text] = next(lens.decompose([text], **options))
                    except OF_A_TEXT as error:
                        found[text] = str(error)
                return found


def cut(rows: Sequence[Row], size: int) -> list[Sequence[Row]]:
    """Pieces of so many rows, and a last one with the rest."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def text_tokens(e: Explanation) -> Array:
    """The matrix without special tokens and prompts, (text units of a, of b)."""
    a, b = (np.array([unit.kind == "text" for unit in units]) for units in (e.units_a, e.units_b))
    return e.matrix[np.ix_(a, b)]


def open_archive(out: Path) -> Archive:
    """The archive that all studies of a folder share."""
    return Archive(out / "explanations")
