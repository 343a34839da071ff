"""Texts in, rows of the table out: the part of indexing that takes time, and that many machines can share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from pairlens.attribution.contributions import Contributions
from pairlens.corpus.layout import SHOWN
from pairlens.corpus.records import Reject, Text, check_finite, to_table
from pairlens.corpus.settings import Settings
from pairlens.errors import InputError, NotConverged, NumericalError
from pairlens.lens import Lens
from pairlens.model.loaded import PROBE

_OF_A_TEXT = (InputError, NotConverged, NumericalError)
_FOREIGN = (RuntimeError, ValueError, LookupError, ArithmeticError)
"""What a text may provoke in other packages."""


class Decomposer:
    """Takes texts apart, and rejects those that cannot be.

    Args:
        lens: the model.
        settings: how.
        schema: of the rows.
        truncate: index the beginning of texts that are longer than the model takes, instead of rejecting them.
    """

    def __init__(self, lens: Lens, settings: Settings, schema: Any, *, truncate: bool) -> None:
        self._lens = lens
        self._settings = settings
        self._schema = schema
        self._truncate = truncate

    def __call__(self, texts: Sequence[Text], source: str) -> tuple[Any, list[Reject]]:
        """Rows for those texts that can be taken apart, in order, and why the others cannot.

        The same texts together give the same rows, to the last bit; in other company the last digits may differ.
        """
        rejects: list[Reject] = []
        usable: list[Text] = []
        cut = False
        for text in texts:
            reason, long = self._look_at(text)
            cut |= long
            if reason:
                rejects.append(_reject(text, reason))
            else:
                usable.append(text)
        with _unheard() if cut else nullcontext():
            kept, found = self._decompose(usable, rejects)
        return to_table(kept, found, self._schema, source), rejects

    def _look_at(self, text: Text) -> tuple[str, bool]:
        """What is wrong with a text, if anything, and whether it is too long."""
        try:
            read = self._lens.encoder.read(text.text, self._settings.role)
        except InputError as error:
            return str(error), False
        if read.truncated and not self._truncate:
            count = len(read.tokens)
            return (
                f"the text is longer than the {count} tokens that the model takes; --truncate keeps its beginning",
                True,
            )
        return "", read.truncated

    def _decompose(self, texts: list[Text], rejects: list[Reject]) -> tuple[list[Text], list[Contributions]]:
        """All texts together or, where that fails, one by one."""
        try:
            found = self._run([text.text for text in texts])
            for c in found:
                check_finite(c, self._settings.precision)
            return texts, found
        except (*_OF_A_TEXT, *_FOREIGN):
            kept: list[Text] = []
            found = []
            for text in texts:
                try:
                    (own,) = self._run([text.text])
                    check_finite(own, self._settings.precision)
                except _OF_A_TEXT as error:
                    rejects.append(_reject(text, str(error)))
                except _FOREIGN as error:
                    # Where another text fails too, this one is not to blame. It has a number, as boxes remember texts.
                    self._run([f"{PROBE} {text.row}"])
                    rejects.append(_reject(text, f"{type(error).__name__}: {error}"))
                else:
                    kept.append(text)
                    found.append(own)
            return kept, found

    def _run(self, texts: list[str]) -> list[Contributions]:
        options = self._settings.options()
        return list(self._lens.decompose(texts, progress=False, window=max(1, len(texts)), **options))


def _reject(text: Text, reason: str) -> Reject:
    return Reject(text.row, text.line, text.id, reason, text.text[:SHOWN])


@contextmanager
def _unheard() -> Iterator[None]:
    """Within this context nothing is warned of: rows say themselves that they are truncated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
