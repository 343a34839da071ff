"""The materials that all studies share: the model, the pairs, and their explanations, each of which is made once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import pairlens
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation
from pairlens.attribution.options import resolve_treatment
from pairlens.errors import InputError, NotConverged, NumericalError, ReferenceWarning, TruncationWarning, choose, whole
from pairlens.io import PairRow
from pairlens.lens import Lens
from pairlens.methods import choose_method
from pairlens.shapes import Array
from pairlens.study.archive import Archive, pack, unpack
from pairlens.study.statistics import score
from pairlens.study.views import Choice, View
from pairlens.text import Unit, words

if TYPE_CHECKING:
    from pairlens.study.language.annotations import Annotations
    from pairlens.study.language.wordnet import WordNet

CHUNK = 32
"""Pairs in one piece of the archive."""
SWEEP = 40
"""Pairs that are explained at every layer by default."""
FORWARD = 256
"""Texts in one call of the encoder, for plain scores."""
OF_A_TEXT = (InputError, NotConverged, NumericalError)
Explained = list[tuple[PairRow, Explanation]]


@dataclass
class Materials:
    """The inputs of studies, and the explanations made of them.

    Attributes:
        lens: the model.
        pairs: the pairs of texts, with or without a score: `(a, b)`, `(a, b, score)`, or rows of a table.
        choice: how to explain; each study has its own default.
        sweep: how many of the pairs, the first ones, are explained at every layer, which is costly; None for the
            study's default.
        measure: "cosine" or "dot"; the model's own by default.
        tol: the largest relative gap of a text, for methods that integrate.
        seed: the seed of all random draws.
        words: whether a word's contribution is the "sum" of its tokens', or the "mean" as in the first paper.
        points: the largest number of points in the study of convergence.
        pair: the number of the pair that a study of one pair shows; None to let it choose.
        annotations: parts of speech, lemmas and dependencies, for studies that need them.
        wordnet: synonyms and antonyms, for studies that need them.
        adjectives: pairs of adjectives with their relation, added to the built-in ones.
        others: further models, for the study that compares them.
        adjusted: a model with exact attributions.
        twin: the same model, trained alike, without exact attributions.
        archive: where explanations are kept; in memory by default.
        together: how many pairs are explained at a time: more use a GPU better, and are lost when a run is interrupted.
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
            pair if isinstance(pair, PairRow) else PairRow(number, number, *pair[:2], score=(*pair, None)[2])
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
    def rows(self) -> list[PairRow]:
        """All pairs."""
        return list(self.pairs)

    def few(self, most: int = SWEEP) -> list[PairRow]:
        """The pairs to explain at every layer: the first `sweep`, or the first `most` by default."""
        return self.rows[: most if self.sweep is None else self.sweep]

    def labelled(self) -> tuple[list[PairRow], Array]:
        """The pairs that people have scored, and these scores from 0 to 1, (pairs,)."""
        rows = [row for row in self.rows if row.score is not None]
        return rows, scaled(np.array([float(row.score or 0) for row in rows]))

    def explain(self, view: View, rows: Sequence[PairRow] | None = None, *, lens: Lens | None = None) -> Explained:
        """Explanations of pairs, at the level of tokens; pairs that cannot be explained are noted in `left_out`.

        Args:
            view: how to explain.
            rows: the pairs; all by default.
            lens: another model than the study's own.
        """
        explained: Explained = []
        for row, entry in self._entries(view, self.rows if rows is None else rows, lens or self.lens):
            if isinstance(entry, str):
                self.leave_out(view, row, entry)
            else:
                explained.append((row, entry))
        return explained

    def of_texts(self, view: View, pairs: Iterable[tuple[str, str]]) -> list[Explanation | None]:
        """Explanations of texts that are not in the data, None for pairs that cannot be explained."""
        rows = [PairRow(number, number, a, b) for number, (a, b) in enumerate(pairs, 1)]
        return [None if isinstance(entry, str) else entry for _, entry in self._entries(view, rows, self.lens)]

    def score(self, pairs: Sequence[tuple[str, str]]) -> Array:
        """The model's own scores, by plain forward passes, (pairs,); NaN for a text that cannot be read."""
        encoder: Any = self.lens.encoder
        vectors: dict[str, Array] = {}
        for texts in cut(list(dict.fromkeys(text for pair in pairs for text in pair)), FORWARD):
            read = {}
            for text in texts:
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
        """The settings of a result, for its summary."""
        labels = [view.label for view in views]
        left_out = {label: self.left_out[label] for label in labels if self.left_out.get(label)}
        return {
            "model": self.lens.name,
            "fingerprint": self.lens.encoder.fingerprint,
            "adjusted": self.lens.adjusted,
            "layers": self.lens.layers,
            "data": self.data,
            "pairs": pairs,
            "pairs_asked": len(self.pairs),
            "explained_by": labels,
            "measure": self.measure,
            "tol": self.tol,
            "seed": self.seed,
            "left_out": {label: {str(n): why for n, why in reasons.items()} for label, reasons in left_out.items()},
            **more,
        }

    def key(self, what: str, view: View, rows: Sequence[PairRow], lens: Lens, **more: Any) -> dict[str, Any]:
        """The key of a piece of the archive: everything that it depends on."""
        return {
            "what": what,
            "pairlens": pairlens.__version__,
            "model": lens.encoder.fingerprint,
            "dtype": lens.encoder.precision,
            "measure": self._measure(lens),
            **view.options,
            "pairs": [[row.a, row.b] for row in rows],
            **more,
        }

    def leave_out(self, view: View, row: PairRow, reason: str) -> None:
        """Note that a pair cannot be explained in a view."""
        self.left_out.setdefault(view.label, {})[row.number] = reason

    def bar(self, total: int, what: str) -> Any:
        """A progress bar over pairs, shown on a terminal."""
        from tqdm.auto import tqdm

        return tqdm(total=total, desc=what, unit=" pairs", disable=None if self.progress else True, leave=False)

    # How `explain` and `of_texts` get their explanations.

    def _measure(self, lens: Lens) -> str:
        """The measure that the user asked for, or the model's own."""
        return resolve_treatment(lens.encoder, None, self._asked, deletes=False)[1]

    def _entries(self, view: View, rows: Sequence[PairRow], lens: Lens) -> Iterator[tuple[PairRow, Explanation | str]]:
        """Every pair with its explanation, or with the reason why it has none."""
        with self.bar(len(rows), view.label) as bar:
            for group in cut(rows, self.together):
                entries = self._recall(view, group, lens)
                yield from zip(group, self._make(view, group, lens) if entries is None else entries, strict=True)
                bar.update(len(group))

    def _key(self, view: View, rows: Sequence[PairRow], lens: Lens) -> dict[str, Any]:
        method = choose_method(view.method, view.layer, None)
        return self.key("explanations", view, rows, lens, tol=self.tol, settings=repr(method))

    def _recall(self, view: View, rows: Sequence[PairRow], lens: Lens) -> list[Explanation | str] | None:
        """The archive's entries of these pairs, or None if one is missing.

        They are in pieces of exactly these pairs, or in pieces of all pairs, which another study has kept.
        """
        wanted = {(row.a, row.b) for row in rows}
        overlapping = [
            piece for piece in cut(self.rows, CHUNK) if not wanted.isdisjoint((row.a, row.b) for row in piece)
        ]
        for pieces in (cut(rows, CHUNK), overlapping):
            entries: dict[tuple[str, str], Explanation | str] = {}
            for piece in pieces:
                kept = self.archive.recall(self._key(view, piece, lens))
                if kept is None:
                    break
                entries |= {(row.a, row.b): entry for row, entry in zip(piece, unpack(kept), strict=True)}
            if wanted <= entries.keys():
                return [entries[row.a, row.b] for row in rows]
        return None

    def _make(self, view: View, rows: Sequence[PairRow], lens: Lens) -> list[Explanation | str]:
        """Explain pairs in this view and in its siblings, which cost nothing more, and keep them all."""
        done = self._decompose(view, list(dict.fromkeys(text for row in rows for text in (row.a, row.b))), lens)
        wanted: list[Explanation | str] = []
        for sibling in view.siblings(self._measure(lens)):
            for piece in cut(rows, CHUNK):
                entries = [self._compare(done[row.a], done[row.b], sibling, lens) for row in piece]
                self.archive.keep(self._key(sibling, piece, lens), pack(entries))
                wanted += entries if sibling == view else []
        return wanted

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
        """The contributions of texts, or for a text that has none the reason."""
        fixed = {"measure": self._measure(lens), "level": "token", "progress": False}
        deletes = choose_method(view.method, view.layer, None).deletes
        options: dict[str, Any] = {**view.options, **fixed, **({} if deletes else {"tol": self.tol})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            try:
                return dict(zip(texts, lens.decompose(texts, **options), strict=True))
            except OF_A_TEXT:
                next(lens.decompose(["one"], **options))  # wrong options are an error of the run, not of a text
                contributions: dict[str, Contributions | str] = {}
                for text in texts:
                    try:
                        contributions[text] = next(lens.decompose([text], **options))
                    except OF_A_TEXT as error:
                        contributions[text] = str(error)
                return contributions


def cut(rows: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Consecutive pieces of `size` rows; the last one may be shorter."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def scaled(labels: Array) -> Array:
    """Labels from 0 to 1: divided by 5 where any is above 1, and by the largest where any is above 5.

    Example:
        >>> scaled(np.array([0.0, 2.5, 5.0]))
        array([0. , 0.5, 1. ])
        >>> scaled(np.array([50.0, 100.0]))
        array([0.5, 1. ])
    """
    most = float(labels.max(initial=0.0))
    return labels / (1 if most <= 1 else max(5.0, most))


def longer(row: PairRow) -> int:
    """The number of words of a pair's longer text."""
    return max(len(words(row.a)), len(words(row.b)))


def text_units(units: Sequence[Unit]) -> list[int]:
    """The places of the units that are neither special tokens nor prompts."""
    return [place for place, unit in enumerate(units) if unit.kind == "text"]


def text_tokens(e: Explanation) -> Array:
    """The matrix without special tokens and prompts, (text units of a, text units of b)."""
    return e.matrix[np.ix_(text_units(e.units_a), text_units(e.units_b))]


def unit_texts(e: Explanation) -> tuple[list[str], list[str]]:
    """The texts of the units that `text_tokens` has, of a and of b."""
    a, b = ([units[place].text for place in text_units(units)] for units in (e.units_a, e.units_b))
    return a, b


def unit_at(units: Sequence[Unit], start: int) -> int:
    """The place of the unit that begins at a character of the text."""
    return next(place for place in text_units(units) if units[place].start == start)
