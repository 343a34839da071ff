"""Any function from texts to vectors: deletion cuts characters out of the text, and there are no layers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pairlens import progress
from pairlens.errors import InputError, ModelError, NumericalError
from pairlens.model.protocol import FIXED, Deletions
from pairlens.model.tokenize import Text, check_text
from pairlens.shapes import Array
from pairlens.text import Unit, level_spans

BATCH = 256
"""Texts handed to the function at a time."""
CACHED = 4096
"""Texts whose vectors are kept; the cache is emptied when it holds more."""


class EmbeddingFunction:
    """An embedding function: an API, an ONNX session, anything that takes a list of texts.

    Args:
        embed: takes a list of texts, returns one vector each, (texts, dim).
        name: what results call it.
        empty: the text to embed where all words are deleted.
        measure: how its vectors are compared, "cosine" or "dot".
    """

    adjusted = False
    precision = "float64"
    fingerprint = None
    has_layers = False
    finest_level = "word"
    concurrent_batches = 1

    def __init__(self, embed: Callable[[list[str]], Any], *, name: str, empty: str, measure: str) -> None:
        if not callable(embed):
            raise InputError(f"from_function takes a function from a list of texts to vectors, not {embed!r:.60}.")
        if not isinstance(empty, str):
            raise InputError(f"empty is the text that stands for nothing, not {empty!r:.60}.")
        self._embed = embed
        self._empty = empty
        self.name = str(name)
        self.measure = measure
        self._dim: int | None = None
        self._cache: dict[str, Array] = {}

    def fork(self) -> EmbeddingFunction:
        """Return a second one for another thread, with a cache of its own."""
        other = copy.copy(self)
        vars(other).update(_cache={})
        return other

    @property
    def prompts(self) -> dict[str, str]:
        """No prompts: the function puts them before the texts itself."""
        return {}

    def is_static(self, role: str | None) -> bool:
        """Return False: nothing is known of how the function works."""
        return False

    def lanes(self, count: int) -> tuple[()]:
        """Return no contexts: the function decides where it computes."""
        return ()

    def layers(self, role: str | None = None) -> int:
        """Return 0: no layers can be seen."""
        return 0

    def pooling(self, role: str | None = None) -> str:
        """Return "unknown"."""
        return "unknown"

    def space(self, role: str | None, wanted: str, *, path: bool = True) -> str:
        """Return "unit" for normalised vectors, else "raw"."""
        return "unit" if wanted == "unit" else "raw"

    def read(self, text: str, role: str | None = None, prompt: str | None = None) -> Text:
        """Return a text as its words, the finest units that can be deleted."""
        for name, value in (("roles", role), ("prompts", prompt)):
            if value is not None:
                raise InputError(f"a black box has no {name}: put what {value!r} stands for into the function.")
        check_text(text)
        units = tuple(Unit(text[start:end], start, end) for start, end in level_spans(text, "word"))
        tokens, kept = tuple(unit.text for unit in units), (False,) * len(units)
        return Text(text, None, "", {}, tokens, units, truncated=False, kept=kept)

    def deletions(self, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str) -> Deletions:
        """Return the vectors of texts with characters cut out; see `EmbeddingModel.deletions`."""
        return _CharacterDeletions(self.embed, self._empty, texts, labels, normalize=space == "unit")

    def outputs(self, texts: Sequence[Text]) -> Array:
        """Return the function's own vectors, (texts, dim)."""
        return self.embed([text.text for text in texts])

    def embed(self, texts: Sequence[str]) -> Array:
        """Return vectors of texts, (texts, dim). Calls may cost money, so those of recent texts are cached."""
        if len(self._cache) > CACHED:
            self._cache.clear()
        fresh = [text for text in dict.fromkeys(texts) if text not in self._cache]
        steps = progress.Steps(len(fresh))
        for start in range(0, len(fresh), BATCH):
            part = fresh[start : start + BATCH]
            self._cache.update(zip(part, self._call(part), strict=True))
            steps.advance(len(part))
        return np.array([self._cache[text] for text in texts])

    def _call(self, texts: list[str]) -> Array:
        """Call the function and check what it returns."""
        try:
            returned = self._embed(list(texts))
        except Exception as error:
            if self._empty in texts:
                error.add_note(f"pairlens asked for {self._empty!r}, where nothing is left: empty= sets another text.")
            raise
        try:
            vectors = np.asarray(_on_host(returned))
            if np.iscomplexobj(vectors):
                raise TypeError("complex numbers")
            vectors = vectors.astype(np.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ModelError(f"{self.name} returned something that is no array of numbers: {error}.") from error
        expected = self._dim or max(1, vectors.shape[-1] if vectors.ndim else 1)
        if vectors.ndim != 2 or vectors.shape != (len(texts), expected):
            dim = "dim" if self._dim is None else self._dim
            raise ModelError(
                f"{self.name} returned an array of shape {vectors.shape} for {len(texts)} texts; expected "
                f"({len(texts)}, {dim}), one vector a text."
            )
        self._dim = vectors.shape[1]
        bad = np.flatnonzero(~np.isfinite(vectors).all(1))
        if len(bad):
            text = texts[bad[0]]
            hint = " Give from_function another text for nothing, such as empty='.'." if text == self._empty else ""
            raise NumericalError(f"{self.name} returned NaN or infinite numbers for the text {text!r:.60}.{hint}")
        return vectors


def _on_host(returned: Any) -> Any:
    """Return tensors and sparse matrices as arrays, also inside lists and tuples, and anything else as it is."""
    if hasattr(returned, "toarray"):  # SciPy's sparse matrices
        return returned.toarray()
    if hasattr(returned, "detach"):
        return returned.detach().to_dense().cpu().double().numpy()
    return [_on_host(item) for item in returned] if isinstance(returned, list | tuple) else returned


class _CharacterDeletions:
    """Deletion of characters: a word is deleted together with the whitespace before it."""

    def __init__(
        self,
        embed: Callable[[Sequence[str]], Array],
        empty: str,
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
        *,
        normalize: bool,
    ) -> None:
        self._embed = embed
        self._empty = empty
        self._texts = texts
        self._labels = [np.array(row) for row in labels]
        self._normalize = normalize
        self.players = [sorted(set(row) - {FIXED}) for row in labels]
        self.sizes = [
            (np.array(players)[:, None] == row).sum(1) for players, row in zip(self.players, self._labels, strict=True)
        ]
        self.fixed = [int((row == FIXED).sum()) for row in self._labels]

    def embeddings(self, subsets: Sequence[Array]) -> list[Array]:
        """Return the vectors of what is left: for every text, (subsets, players) booleans to (subsets, dim)."""
        parts = [
            self._left(i, np.array(self.players[i])[members]) for i, rows in enumerate(subsets) for members in rows
        ]
        vectors = self._embed(parts) if parts else np.zeros((0, 0))
        if self._normalize:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        return np.split(vectors, np.cumsum([len(rows) for rows in subsets])[:-1])

    def _left(self, index: int, units: Array) -> str:
        """Return what is left of a text if only these units stay."""
        text, labels = self._texts[index], self._labels[index]
        stay = np.isin(labels, units) | (labels == FIXED)
        if stay.all():
            return text.text
        if not stay.any():
            return self._empty
        parts, gap, end = [], "", 0
        for word, stays in zip(text.units, stay, strict=True):
            before = text.text[end : word.start]
            gap, end = before or gap, word.end
            if stays:
                # The whitespace of deleted words still separates the words around them.
                is_word = any(char.isalnum() for char in word.text)
                parts += [(gap if is_word else before) if parts else "", word.text]
                gap = ""
        return "".join(parts)
