"""From texts to rows of the index: the slow part of indexing, which many machines can share."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from pairlens.attribution.contributions import Contributions
from pairlens.corpus.layout import SHOWN
from pairlens.corpus.passages import split
from pairlens.corpus.records import Reject, TextRecord, check_finite, to_table
from pairlens.corpus.settings import IndexSettings
from pairlens.errors import InputError, NotConverged, NumericalError, TruncationWarning
from pairlens.lens import Lens
from pairlens.model.loaded import PROBE

_OF_A_TEXT = (InputError, NotConverged, NumericalError)
_FOREIGN = (RuntimeError, ValueError, LookupError, ArithmeticError)
"""Exceptions that a text may cause in other packages."""


class RecordDecomposer:
    """Decomposes texts, and rejects those that cannot be decomposed.

    Args:
        lens: the model.
        settings: how texts are decomposed.
        schema: the columns of the rows.
        passages: split texts that are longer than the model takes, instead of keeping their beginning.
    """

    def __init__(self, lens: Lens, settings: IndexSettings, schema: Any, *, passages: bool) -> None:
        self._lens = lens
        self._settings = settings
        self._schema = schema
        self._passages = passages

    def records(self, given: Iterable[TextRecord | Reject]) -> list[TextRecord | Reject]:
        """Rows of a table as the records of the index: texts that are split give several."""
        if not self._passages:
            return list(given)
        encoder, role = self._lens.encoder, self._settings.role
        return [
            record for one in given for record in (split(one, encoder, role) if isinstance(one, TextRecord) else [one])
        ]

    def __call__(self, texts: Sequence[TextRecord], source: str) -> tuple[Any, list[Reject]]:
        """The rows of the texts that can be decomposed, in order, and the rejected texts.

        The same batch gives the same rows to the last bit; in another batch the last digits of a text may differ.
        """
        rejects: list[Reject] = []
        usable: list[TextRecord] = []
        for text in texts:
            if reason := self._fault(text):
                rejects.append(_reject(text, reason))
            else:
                usable.append(text)
        # The column `truncated` says which texts are too long.
        with warnings.catch_warnings(action="ignore", category=TruncationWarning):
            kept, contributions = self._decompose(usable, rejects)
        return to_table(kept, contributions, self._schema, source), rejects

    def _fault(self, text: TextRecord) -> str:
        """Why the model cannot read a text, or ""."""
        try:
            self._lens.encoder.read(text.text, self._settings.role)
        except InputError as error:
            return str(error)
        return ""

    def _decompose(
        self, texts: list[TextRecord], rejects: list[Reject]
    ) -> tuple[list[TextRecord], list[Contributions]]:
        """The texts that can be decomposed and their contributions: all together or, where that fails, one by one."""
        try:
            contributions = self._run([text.text for text in texts])
            for c in contributions:
                check_finite(c, self._settings.precision)
            return texts, contributions
        except (*_OF_A_TEXT, *_FOREIGN):
            kept: list[TextRecord] = []
            contributions = []
            for text in texts:
                try:
                    (c,) = self._run([text.text])
                    check_finite(c, self._settings.precision)
                except _OF_A_TEXT as error:
                    rejects.append(_reject(text, str(error)))
                except _FOREIGN as error:
                    # If a harmless text fails too, the model is at fault: raise. The suffix is unique, so that an embed
                    # function with a cache cannot answer from memory.
                    self._run([f"{PROBE} {text.row}"])
                    rejects.append(_reject(text, f"{type(error).__name__}: {error}"))
                else:
                    kept.append(text)
                    contributions.append(c)
            return kept, contributions

    def _run(self, texts: list[str]) -> list[Contributions]:
        options = self._settings.options()
        return list(self._lens.decompose(texts, progress=False, window=max(1, len(texts)), **options))


def _reject(text: TextRecord, reason: str) -> Reject:
    return Reject(text.row, text.line, text.id, reason, text.text[:SHOWN])
