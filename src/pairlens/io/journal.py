"""The journal of a long run: one line of JSON per record, so that a run that was cut off at any moment can resume."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from pairlens.errors import InputError, StoreError

try:
    import fcntl
except ImportError:  # Windows has no file locks here: the user must not start two runs on one file
    fcntl = None

FORMAT = "pairlens.batch"
_START = f'{{"format": "{FORMAT}"'.encode()
Record = dict[str, Any]


class Journal:
    """A file of records that is only appended to, in whole chunks.

    The first line holds the settings of the run; a run with other settings is refused. Records are kept in whole
    chunks, because texts that are explained together may differ in the last digit from texts explained apart: a
    resumed run then repeats exactly what an uninterrupted run does.

    Args:
        path: the file.
        asked: all settings that the records depend on.
        restart: discard the records of an earlier run.
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

    def __exit__(self, *error: object) -> None:
        if self._file.closed:
            return
        empty = next(self.records(), None) is None
        self._file.close()
        if empty:
            self.path.unlink(missing_ok=True)

    def keep(self, chunk: int, total: int) -> int:
        """Cut off incomplete lines, then incomplete chunks; returns how many records are left.

        Args:
            chunk: records of a chunk.
            total: records of a complete run, whose last chunk may be shorter.
        """
        ends = [end for end, _ in self._lines()]
        done = len(ends) - 1
        if done < total:
            done -= done % chunk
        self._file.truncate(ends[done])
        return done

    def append(self, records: Sequence[Record]) -> None:
        """Append a chunk of records."""
        lines = b"".join(json.dumps(record, allow_nan=False).encode() + b"\n" for record in records)
        try:
            self._file.write(lines)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()  # closing drops the buffer, which would be written again otherwise
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}. When the cause is gone, start again: nothing that "
                "was done is lost."
            ) from error

    def records(self) -> Iterator[Record]:
        """The records, in order."""
        lines = self._lines()
        next(lines)
        yield from (record for _, record in lines)

    def _matches(self) -> bool:
        """Whether the file holds a journal of this run; raises if it holds another run's records or another file."""
        beginning = [record for _, record in islice(self._lines(), 2)]
        if not beginning:
            self._file.seek(0)
            ours = _START.startswith(self._file.read(len(_START)))  # a first line that was cut off
        else:
            ours = isinstance(beginning[0], dict) and beginning[0].get("format") == FORMAT
        if not ours:
            raise InputError(f"{self.path} was not written by pairlens, and would be overwritten. Move it away.")
        if not beginning:
            return False
        changed = differences(beginning[0]["asked"], self._asked)
        if changed and len(beginning) > 1:
            raise InputError(
                f"{self.path} holds the beginning of another run: {'; '.join(changed)}. Delete that file or give "
                "--restart to begin anew, or give the same command as before to go on."
            )
        return not changed

    def _lines(self) -> Iterator[tuple[int, Any]]:
        """The complete lines, each with the offset of its end."""
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
    """The settings that differ, one sentence each; settings are compared as JSON."""
    now = json.loads(json.dumps(now))
    return [
        f"{name} was {before.get(name)!r:.40} and is {now.get(name)!r:.40}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
