"""The same index from a real cluster of two workers, also when a worker or the driver is killed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

import corpora
import zoo
from pairlens import Lens
from pairlens.corpus import Index
from pairlens.corpus import ingest as building
from pairlens.corpus.cluster import Cluster, _Fault, _Worker
from pairlens.errors import InputError, ModelError, StoreError
from pairlens.io.tables import InputTable

ROWS, CHUNK = 96, 4


@pytest.fixture(scope="module")
def in_process(model, tmp_path_factory):
    """A file, and the index that this process makes of it."""
    folder = tmp_path_factory.mktemp("in_process")
    data = corpora.write_jsonl(folder / "data.jsonl", ROWS)
    return data, *corpora.build(folder / "index", data, Lens(model), chunk=CHUNK)


def workers() -> list[int]:
    """The actors of the cluster that this process has started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cmdline()[0].startswith("ray::MapWorker"):
                found.append(process.pid)
        except (psutil.Error, IndexError):
            continue
    return found


@pytest.mark.slow
def test_a_cluster_makes_the_same_index_and_a_killed_worker_changes_nothing(in_process, model, tmp_path, monkeypatch):
    data, index, report, run = in_process
    monkeypatch.setattr(building, "COMMITTED", 16)
    take, killed = building._Commits.take, []

    def take_and_kill(commits, done):
        if not killed and done.number >= 3:
            # In the middle: some parts are done, some are not begun.
            victims = workers()
            assert len(victims) == 2
            killed.append(victims[0])
            os.kill(victims[0], signal.SIGKILL)
        take(commits, done)

    monkeypatch.setattr(building._Commits, "take", take_and_kill)
    cluster = Cluster("local", partial(Lens, model), workers=2)
    found, again, other = corpora.build(tmp_path / "index", data, Lens(model), cluster=cluster, chunk=CHUNK)
    assert killed
    assert again == report
    assert other.rejects.read_bytes() == run.rejects.read_bytes()
    assert corpora.rows(found) == corpora.rows(index)
    assert found.verify(2).passed


DRIVER = """
import sys
sys.path[:0] = {paths!r}
import torch
torch.set_num_threads(1)
from functools import partial
from pathlib import Path
import corpora
from pairlens import Lens
from pairlens.corpus.cluster import Cluster
cluster = Cluster("local", partial(Lens, {model!r}), workers=2)
corpora.build(Path({index!r}), Path({data!r}), Lens({model!r}), cluster=cluster, chunk={chunk})
"""


@pytest.mark.slow
def test_a_killed_driver_goes_on(in_process, model, tmp_path):
    data, index, report, run = in_process
    path = tmp_path / "index"
    paths = [str(Path(__file__).parents[1]), str(Path(building.__file__).parents[2])]
    code = DRIVER.format(paths=paths, model=model, index=str(path), data=str(data), chunk=CHUNK)
    seen = []
    for moment in (2, 9):
        # A session of its own, so that the cluster it starts can be ended with it.
        driver = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stderr=subprocess.DEVNULL)
        parts = path / "runs"
        while driver.poll() is None and len(list(parts.glob("*/parts/*.arrow"))) < moment:
            time.sleep(0.01)
        assert driver.poll() is None
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        time.sleep(3)  # its cluster notices, and ends
        seen.append(len(list(parts.glob("*/parts/*.arrow"))))
    assert 0 < seen[0] <= seen[1]  # what was done is not done again
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, stderr=subprocess.DEVNULL)
    found, again, other = corpora.build(path, data, Lens(model), chunk=CHUNK)
    assert again == report
    assert other.rejects.read_bytes() == run.rejects.read_bytes()
    assert corpora.rows(found) == corpora.rows(index)


# Functions that workers find too.
NUMBERS, SQUARE = partial(range, 50), partial(partial, pow, exp=2)


@pytest.mark.slow
def test_a_map_gives_every_result_once():
    assert sorted(Cluster("local", workers=2).map(NUMBERS, SQUARE)) == [n * n for n in range(50)]


def ask(make, item: object = 3) -> object:
    """What a worker answers, here and not on a cluster."""
    (answer,) = _Worker(make)({"item": [pickle.dumps(item)]})["result"]
    return pickle.loads(answer)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (partial(Lens, "/nowhere"), ModelError, "'/nowhere' is no folder here"),
        (partial(Index.open, "/nowhere"), InputError, "there is no index in /nowhere"),
        (partial(partial, pow, exp="x"), StoreError, "a worker failed with TypeError: unsupported operand"),
    ],
)
def test_what_goes_wrong_in_a_worker_travels_as_a_value(make, kind, said):
    fault = ask(make)
    assert isinstance(fault, _Fault)
    assert fault.kind is kind
    assert fault.message.startswith(said)
    assert ask(SQUARE, fault) == fault  # what the reader could not read goes through
    assert ask(SQUARE) == 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "make", "kind", "said"),
    [
        (NUMBERS, partial(int, "x"), StoreError, "a worker failed with ValueError"),
        (partial(InputTable, "/nowhere.csv"), SQUARE, InputError, "there is no file"),
    ],
)
def test_what_goes_wrong_on_a_cluster_is_said_in_its_own_words(items, make, kind, said, capfd):
    with pytest.raises(kind, match=said):
        next(Cluster("local", workers=1).map(items, make))
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_worker_that_cannot_load_the_model_says_so(in_process, tmp_path, model):
    data = in_process[0]
    zoo.encoder("mpnet").save(str(tmp_path / "other"))
    with pytest.raises(InputError, match="was made with the model"):
        corpora.build(
            tmp_path / "index",
            data,
            Lens(model),
            cluster=Cluster("local", partial(Lens, str(tmp_path / "other")), workers=1),
        )


def test_an_address_where_nobody_answers():
    with pytest.raises(InputError, match=r"no Ray cluster answers at '127.0.0.1:1'.*--ray local"):
        next(Cluster("127.0.0.1:1").map(NUMBERS, SQUARE))
