"""Any function from texts to vectors, seen as far as it can be: deletion cuts characters, and there are no layers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pairlens import progress
from pairlens.errors import InputError, ModelError, NumericalError
from pairlens.model.deletion import Games
from pairlens.model.tokenize import Text, check_text
from pairlens.shapes import Array
from pairlens.text import Unit, level_spans

BATCH = 256
"""Texts handed to the function at a time."""
REMEMBERED = 4096
"""Texts whose vectors are kept before they are forgotten."""


class EmbeddingFunction:
    """An embedding function: an API, an ONNX session, anything that takes a list of texts.

    Args:
        embed: takes a list of texts, returns one vector each, (texts, dim).
        name: what to call it.
        empty: the text that stands for "nothing left".
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
        self._known: dict[str, Array] = {}

    def fork(self) -> EmbeddingFunction:
        """Another one, for another thread, that remembers for itself."""
        other = copy.copy(self)
        other._known = {}
        return other

    def is_static(self, role: str | None) -> bool:
        """False: nothing is known of how the function works."""
        return False

    def lanes(self, count: int) -> tuple[()]:
        """No contexts: the function decides where it computes."""
        return ()

    def layers(self, role: str | None = None) -> int:
        """None that can be seen."""
        return 0

    def pooling(self, role: str | None = None) -> str:
        """Unknown."""
        return "unknown"

    def space(self, role: str | None, wanted: str) -> str:
        """Its vectors as they are, or normalised."""
        return "unit" if wanted == "unit" else "raw"

    def read(self, text: str, role: str | None = None) -> Text:
        """A text as its words: the finest units that can be cut out of it."""
        if role is not None:
            raise InputError(f"a black box has no roles; put the prompt for {role!r} into the text or the function.")
        check_text(text)
        units = tuple(Unit(text[start:end], start, end) for start, end in level_spans(text, "word"))
        tokens, kept = tuple(unit.text for unit in units), (False,) * len(units)
        return Text(text, None, "", {}, tokens, units, truncated=False, kept=kept)

    def games(self, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str) -> Games:
        """What becomes of the vectors when characters are cut out."""
        return _CharacterGames(self, texts, labels, space)

    def outputs(self, texts: Sequence[Text]) -> Array:
        """The function's own vectors, (texts, dim)."""
        return self.embed([text.text for text in texts])

    def embed(self, texts: Sequence[str]) -> Array:
        """Vectors of texts, (texts, dim). Calls may cost money, so those of recent texts are remembered."""
        if len(self._known) > REMEMBERED:
            self._known.clear()
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        steps = progress.Steps(len(fresh))
        for start in range(0, len(fresh), BATCH):
            part = fresh[start : start + BATCH]
            self._known.update(zip(part, self._ask(part), strict=True))
            steps.advance(len(part))
        return np.array([self._known[text] for text in texts])

    def _ask(self, texts: list[str]) -> Array:
        try:
            found = self._embed(list(texts))
        except Exception as error:
            if self._empty in texts:
                error.add_note(f"pairlens asked for {self._empty!r}, where nothing is left: empty= sets another text.")
            raise
        try:
            vectors = np.asarray(_plain(found))
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


def _plain(found: Any) -> Any:
    """Tensors as numbers that NumPy takes."""
    if hasattr(found, "detach"):
        return found.detach().cpu().double().numpy()
    return [_plain(one) for one in found] if isinstance(found, list | tuple) else found


class _CharacterGames:
    """Deletion of characters: a word goes with the white space before it."""

    def __init__(
        self, box: EmbeddingFunction, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str
    ) -> None:
        self._box = box
        self._texts = texts
        self._labels = [np.array(row) for row in labels]
        self._space = space
        self.players = [sorted(set(row)) for row in labels]

    def values(self, coalitions: Sequence[Array]) -> list[Array]:
        """Embeddings of coalitions, one list a text."""
        asked = [
            self._left(i, np.array(self.players[i])[members]) for i, own in enumerate(coalitions) for members in own
        ]
        vectors = self._box.embed(asked) if asked else np.zeros((0, 0))
        if self._space == "unit":
            sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = np.divide(vectors, sizes, out=np.zeros_like(vectors), where=sizes > 0)
        return np.split(vectors, np.cumsum([len(own) for own in coalitions])[:-1])

    def _left(self, index: int, units: Array) -> str:
        """What is left of a text when only some units stay."""
        text, labels = self._texts[index], self._labels[index]
        stay = np.isin(labels, units)
        if stay.all():
            return text.text
        if not stay.any():
            return self._box._empty
        parts, gap, end = [], "", 0
        for word, kept in zip(text.units, stay, strict=True):
            before = text.text[end : word.start]
            gap, end = before or gap, word.end
            if kept:
                # White space goes with what follows it. If that is deleted, it still keeps words from being glued.
                glued = any(char.isalnum() for char in word.text)
                parts += [(gap if glued else before) if parts else "", word.text]
                gap = ""
        return "".join(parts)
