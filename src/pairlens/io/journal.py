"""What long work has done so far, so that it can be cut off at any moment and go on: a line of JSON for each piece."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from pairlens.errors import InputError, StoreError

try:
    import fcntl
except ImportError:  # Windows: two runs on one file are then the user's to avoid
    fcntl = None

FORMAT = "pairlens.batch"
_START = f'{{"format": "{FORMAT}"'.encode()
Record = dict[str, Any]


class Journal:
    """A file of records that is only ever appended to, whole chunks at a time.

    The first line says what was asked for; a run that asks for something else is refused. Records are kept in whole
    chunks, because texts that are explained together may differ in the last digit from texts explained apart: a
    resumed run then repeats exactly what an uninterrupted one does.

    Args:
        path: the file.
        asked: everything that the records depend on.
        restart: begin anew, whatever there is.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any], *, restart: bool = False) -> None:
        self.path = path
        self._asked = dict(asked)
        try:
            self._file = path.open("a+b")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}.") from error
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise InputError(f"another run is writing {path}. Wait for it, or give another output.") from error
        try:
            if restart:
                self._file.truncate(0)
            if not self._matches():
                self._file.truncate(0)
                self.append([{"format": FORMAT, "asked": self._asked}])
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file.closed:
            return
        empty = next(self.records(), None) is None
        self._file.close()
        if empty:
            self.path.unlink(missing_ok=True)

    def keep(self, chunk: int, total: int) -> int:
        """Cut off what is not whole: lines, then chunks. Returns how many records there are."""
        ends = [end for end, _ in self._lines()]
        done = len(ends) - 1
        done = done if done >= total else done - done % chunk
        self._file.truncate(ends[done])
        return done

    def append(self, records: Sequence[Record]) -> None:
        """Add a chunk of records."""
        lines = b"".join(json.dumps(record, allow_nan=False).encode() + b"\n" for record in records)
        try:
            self._file.write(lines)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()  # else what it still holds would be tried again
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}. When the cause is gone, start again: nothing that "
                "was done is lost."
            ) from error

    def records(self) -> Iterator[Record]:
        """What was recorded, in order."""
        lines = self._lines()
        next(lines)
        yield from (record for _, record in lines)

    def _matches(self) -> bool:
        """Whether there is a journal to go on with; raises if it belongs to something else."""
        beginning = [record for _, record in islice(self._lines(), 2)]
        if not beginning:
            self._file.seek(0)
            if not _START.startswith(self._file.read(len(_START))):  # else it was cut off within its first line
                raise InputError(f"{self.path} was not written by pairlens, and would be overwritten. Move it away.")
            return False
        if not isinstance(beginning[0], dict) or beginning[0].get("format") != FORMAT:
            raise InputError(f"{self.path} was not written by pairlens, and would be overwritten. Move it away.")
        changed = differences(beginning[0]["asked"], self._asked)
        if changed and len(beginning) > 1:
            raise InputError(
                f"{self.path} holds the beginning of another run: {'; '.join(changed)}. Delete that file or give "
                "--restart to begin anew, or give the same command as before to go on."
            )
        return not changed

    def _lines(self) -> Iterator[tuple[int, Any]]:
        """The whole lines, with where each ends."""
        self._file.seek(0)
        end = 0
        for line in self._file:
            end += len(line)
            try:
                record = json.loads(line)
            except ValueError:
                return
            if not line.endswith(b"\n"):
                return
            yield end, record


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of the settings is not as it was, in words; settings as JSON has them."""
    now = json.loads(json.dumps(now))
    return [
        f"{name} was {before.get(name)!r:.40} and is {now.get(name)!r:.40}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
