"""Inputs into indexes: exactly once, whatever happens. Real processes, really killed."""

from __future__ import annotations

import json
import multiprocessing
import random
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import corpora
from pairlens import Lens
from pairlens.corpus import Index
from pairlens.corpus import ingest as building
from pairlens.corpus.ingest import IngestRun
from pairlens.corpus.layout import Layout
from pairlens.corpus.parts import Parts
from pairlens.corpus.records import make_schema
from pairlens.corpus.store import Store
from pairlens.errors import InputError
from pairlens.io.tables import InputTable

COMMITTED = 16  # rows: several commits in a small file


@pytest.fixture(scope="module")
def lens(model) -> Lens:
    return Lens(model)


@pytest.fixture(autouse=True)
def small_commits(monkeypatch):
    monkeypatch.setattr(building, "COMMITTED", COMMITTED)


@pytest.fixture(scope="module")
def undisturbed(model, tmp_path_factory):
    """A file, and the index that it gives when nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    data = corpora.write_jsonl(folder / "data.jsonl")
    before, building.COMMITTED = building.COMMITTED, COMMITTED
    index, report, run = corpora.build(folder / "index", data, Lens(model))
    building.COMMITTED = before
    return data, index, report, run


# Without disturbance.


def test_a_file_is_indexed_and_what_is_bad_is_said(undisturbed):
    data, index, report, run = undisturbed
    assert (report.added, report.truncated, report.rejected, len(index)) == (51, 3, 9, 51)
    rejects = [json.loads(line) for line in run.rejects.read_text(encoding="utf-8").splitlines()]
    assert [reject["row"] for reject in rejects] == sorted(reject["row"] for reject in rejects)
    found = {reject["line"]: reject["reason"] for reject in rejects}
    lines = data.read_text(encoding="utf-8").splitlines()
    for number, reason in found.items():
        record = lines[number - 1]
        if '"broken' in record:
            assert reason.startswith("not JSON")
        elif '"  "' in record:
            assert reason == "the text is empty"
        else:
            assert reason.startswith(f"the id {json.loads(record)['id']!r} was in row ")
    assert len(found) == 9
    assert index.verify(3).passed


def test_the_index_is_what_adding_the_records_gives(undisturbed, lens, tmp_path):
    data, index, *_ = undisturbed
    other = Index.create(tmp_path / "index", lens, metadata={"year": "int"})
    good = []
    for line in data.read_text(encoding="utf-8").splitlines():
        try:
            good.append(json.loads(line))
        except ValueError:
            continue
    other.add(good)
    mine, theirs = (
        {row["id"]: (row["text"], row["units"], row["metadata"]) for row in corpora.rows(i)} for i in (index, other)
    )
    assert mine == theirs


def test_the_same_command_again_does_nothing(undisturbed, lens):
    data, index, report, _ = undisturbed
    version = index.store._table.version
    again, second, _ = corpora.build(index.path, data, lens)
    assert second == report
    assert again.store._table.version == version


def test_a_file_that_has_grown(undisturbed, lens, tmp_path):
    data, *_ = undisturbed
    path = tmp_path / "data.jsonl"
    path.write_text(data.read_text(encoding="utf-8"), encoding="utf-8")
    index, first, _ = corpora.build(tmp_path / "index", path, lens)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"id": "new", "text": "A new text.", "year": 3}) + "\n")
    _, second, _ = corpora.build(index.path, path, lens)
    assert (second.added, second.there) == (1, first.added)
    # What was rejected for its name before is still in the way of another text.
    assert second.rejected == first.rejected


def test_update_replaces_and_leaves_the_rest_alone(lens, tmp_path):
    path = tmp_path / "data.jsonl"
    records = [{"id": str(i), "text": text} for i, text in enumerate(corpora.texts(20))]
    path.write_text("\n".join(map(json.dumps, records)))
    index, *_ = corpora.build(tmp_path / "index", path, lens)
    records[3]["text"] = "Changed."
    path.write_text("\n".join(map(json.dumps, records)))
    table = InputTable(str(path))
    layout = Layout.of(table, None, "id", None)
    refused = IngestRun(index, table, layout)()
    assert (refused.rejected, refused.there) == (1, 19)
    report = IngestRun(index, table, layout, update=True)()
    assert (report.updated, report.there, report.rejected, len(index)) == (1, 19, 0, 20)
    assert index.contributions(["3"])[0].text == "Changed."


def test_restart_reads_everything_again_and_doubles_nothing(lens, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(json.dumps({"id": str(i), "text": t}) for i, t in enumerate(corpora.texts(20))))
    index, _, run = corpora.build(tmp_path / "index", path, lens)
    index.delete(["4", "19"])
    assert corpora.build(tmp_path / "index", path, lens)[1].added == 20
    assert len(index) == 18  # what was deleted does not come back by itself
    report = run(restart=True)
    assert (report.added, len(index)) == (20, 20)
    assert index.verify(1).doubled == ()


# Killed.


def start(path: Path, data: Path, model: str, limit: int | None = None) -> BaseProcess:
    """Indexing in a process of its own, from a server that has imported what takes long."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "sentence_transformers", "pairlens.corpus.ingest", "corpora"])
    process = context.Process(target=corpora.build_elsewhere, args=(str(path), str(data), model, COMMITTED, limit))
    process.start()
    return process


def is_same(path: Path, lens: Lens, undisturbed) -> bool:
    _, index, report, run = undisturbed
    found, again, other = corpora.build(path, undisturbed[0], lens)
    assert again == report
    assert other.rejects.read_bytes() == run.rejects.read_bytes()
    assert not list((other.folder / "parts").iterdir())
    return corpora.rows(found) == corpora.rows(index)


def wait_for(condition, process, seconds: float = 60) -> bool:
    """Until something has happened, or the process has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.is_alive():
        if condition():
            return True
        time.sleep(0.001)
    return False


@pytest.mark.slow
def test_killed_at_moments_that_matter_and_started_again(undisturbed, model, lens, tmp_path):
    data, path = undisturbed[0], tmp_path / "index"
    versions, runs = path / "texts.lance" / "_versions", path / "runs"
    moments = [
        # The first part is written, nothing is committed.
        lambda: any(runs.glob("*/parts/*.arrow")),
        # A commit is in the table, and perhaps not yet in the journal.
        lambda: len(list(versions.glob("*.manifest"))) >= 2,
        # The journal has it.
        lambda: any(len(p.read_bytes().splitlines()) >= 3 for p in runs.glob("*/journal.jsonl")),
    ]
    killed = 0
    for moment in moments:
        process = start(path, data, model)
        killed += wait_for(moment, process)
        process.kill()
        process.join()
    assert killed == 3
    assert 0 < len(Index.open(path, lens)) < 51
    process = start(path, data, model)
    process.join(120)
    assert process.exitcode == 0
    assert is_same(path, lens, undisturbed)


class Crash(BaseException):
    """What no code catches, like a process that ends there."""


STEPS = [
    *((Parts, "write", "after", count) for count in (1, 2)),
    *((building._Commits, "_reject", "after", count) for count in (1, 2)),
    *((Store, "write", when, count) for when in ("before", "after") for count in (1, 2)),
    *((building._Commits, "_note", "after", count) for count in (1, 2)),
    *((Parts, "clear", "before", count) for count in (1, 2)),
    (Store, "optimize", "after", 1),
]


@pytest.mark.parametrize(("owner", "name", "when", "count"), STEPS, ids=[f"{n}-{w}-{c}" for _, n, w, c in STEPS])
def test_ended_between_any_two_steps(owner, name, when, count, undisturbed, lens, tmp_path, monkeypatch):
    """The gaps between steps are too short for a signal to hit, so here the process ends exactly there."""
    step, calls = getattr(owner, name), []

    def ends(*arguments, **options):
        calls.append(name)
        if len(calls) == count and when == "before":
            raise Crash
        result = step(*arguments, **options)
        if len(calls) == count and when == "after":
            raise Crash
        return result

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, ends)
        with pytest.raises(Crash):
            corpora.build(tmp_path / "index", undisturbed[0], lens)
    assert is_same(tmp_path / "index", lens, undisturbed)


def test_a_part_that_was_cut_off_is_not_there(tmp_path, monkeypatch):
    def ends(number: int) -> None:
        raise Crash

    parts = Parts(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("pairlens.io.files.os.fsync", ends)
        with pytest.raises(Crash):
            parts.write(0, make_schema(3, {}, "float16").empty_table(), [], [], 5)
    assert not parts.path(0).exists()
    parts.write(0, make_schema(3, {}, "float16").empty_table(), [], [], 5)
    assert parts.read(0)[3] == 5


def test_a_half_written_index_or_part_is_not_taken_for_a_whole_one(undisturbed, lens, tmp_path):
    """What SIGKILL leaves behind: a table without a version, scratch files, half a line in the journal."""
    path = tmp_path / "index"
    (path / "texts.lance" / "data").mkdir(parents=True)
    (path / "texts.lance" / "data" / "half.lance").write_bytes(b"half")
    with pytest.raises(InputError, match="there is no index in"):
        Index.open(path, lens)
    table = InputTable(str(undisturbed[0]))
    layout = Layout.of(table, None, "id", None)
    run = IngestRun(Index.create(path, lens, metadata=layout.metadata), table, layout, chunk=8)
    (run.folder / "parts").mkdir(parents=True)
    (run.folder / "parts" / ".abc.tmp").write_bytes(b"half a part")
    (run.folder / "journal.jsonl").write_bytes(b'{"format": "pairlens.ba')
    (run.folder / "rejects.jsonl").write_bytes(b'{"row": 99, "half a line')
    run()
    assert is_same(path, lens, undisturbed)


@pytest.mark.slow
def test_a_full_disk(undisturbed, model, lens, tmp_path):
    """Files may not grow beyond what a commit needs: a clear error, and with more room it goes on."""
    data, path = undisturbed[0], tmp_path / "index"
    process = start(path, data, model, limit=22_000)
    process.join(120)
    assert process.exitcode == 3
    said = Path(f"{path}.error").read_text(encoding="utf-8")
    assert said.startswith("StoreError: ")
    assert "still there" in said or "nothing that was done is lost" in said
    assert is_same(path, lens, undisturbed)


MEMORY = """
import sys
sys.path[:0] = {paths!r}
import torch
torch.set_num_threads(1)
import resource
from pathlib import Path
import corpora
from pairlens import Lens
corpora.building.COMMITTED = 512
corpora.build(Path({index!r}), Path({data!r}), Lens({model!r}), chunk=64, method="output")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(model, tmp_path):
    peaks = []
    for count in (1_000, 10_000):
        data = corpora.write_jsonl(tmp_path / f"{count}.jsonl", count)
        paths = [str(Path(__file__).parents[1]), str(Path(building.__file__).parents[2])]
        code = MEMORY.format(paths=paths, index=str(tmp_path / f"index{count}"), data=str(data), model=model)
        ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        peaks.append(int(ran.stdout))
    # The rows of the larger file take 30 MB on disk, and more as Python's lists.
    assert peaks[1] - peaks[0] < 100, peaks


@pytest.mark.slow
def test_fifty_kills_at_random_moments(undisturbed, model, lens, tmp_path):
    """Each followed by a start; whenever the file is done, a new index is begun, until there were fifty kills."""
    rng, killed, rounds, finished = random.Random(0), 0, 0, 0
    while killed < 50:
        path = tmp_path / f"index{rounds}"
        rounds += 1
        while True:
            process = start(path, undisturbed[0], model)
            process.join(rng.uniform(0.5, 6.0))
            if process.is_alive():
                process.kill()
                process.join()
                killed += 1
            elif process.exitcode == 0:
                break
            else:
                raise AssertionError(f"ended by itself with {process.exitcode}")
            if killed >= 50:
                process = start(path, undisturbed[0], model)
                process.join(300)
                assert process.exitcode == 0
                break
        assert is_same(path, lens, undisturbed)
        finished += 1
    assert finished == rounds
