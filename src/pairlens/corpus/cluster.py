"""A map over many machines: Ray Data with a pool of actors, each of which holds the model."""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pairlens.errors import InputError, ModelError, PairlensError, StoreError
from pairlens.io import require, require_pyarrow
from pairlens.lens import Lens

LOCAL = "local"
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster to compute on.

    Attributes:
        address: "local" to start a cluster on this machine, "auto" for one that runs here, or its address.
        model: loads the model in a worker: by its name, because sending the weights would be slower.
        workers: how many workers; by default one for each GPU of the cluster or, where there is none, for each CPU.
    """

    address: str
    model: Callable[[], Lens] = Lens
    workers: int | None = None

    def map(
        self, items: Callable[[], Iterable[Item]], make: Callable[[], Callable[[Item], Result]]
    ) -> Iterator[Result]:
        """Apply a function to items on many machines; results come in any order.

        A worker that dies is replaced and its item is repeated, so the function must be safe to repeat.

        Args:
            items: makes the items; called on one of the machines, and read as fast as workers take them.
            make: makes the function; called once by every worker.
        """
        require("ray.data", "corpus")
        ray = require("ray", "corpus")
        with _connected(ray, self.address, self.workers):
            gpus = int(ray.cluster_resources().get("GPU", 0))
            workers = self.workers or gpus or max(1, int(ray.cluster_resources().get("CPU", 1)))
            with _quiet(ray):
                dataset = ray.data.read_datasource(_source(items), override_num_blocks=1, num_cpus=0)
                dataset = dataset.map_batches(
                    _Worker,
                    batch_size=1,
                    compute=ray.data.ActorPoolStrategy(size=workers),
                    fn_constructor_args=(make,),
                    num_cpus=0 if gpus else 1,
                    num_gpus=1 if gpus else 0,
                )
                try:
                    # Closed, so that no task is running when the connection ends.
                    with closing(iter(dataset.iter_rows())) as rows:
                        for row in rows:
                            result = pickle.loads(row["result"])
                            if isinstance(result, _Fault):
                                raise result.kind(result.message)
                            yield result
                except ray.exceptions.RayError as error:
                    reason = str(error).splitlines()[0].rstrip(".")
                    raise StoreError(
                        f"the cluster gave up: {reason}. Nothing that was done is lost: give the same command again."
                    ) from error


@dataclass(frozen=True)
class _Fault:
    """An error of a worker or of the reader, as a value: Ray would wrap an exception, or retry it for ever."""

    kind: type[PairlensError]
    message: str

    @classmethod
    def of(cls, error: Exception) -> _Fault:
        """The error as a class and a message, which can be pickled; not all exceptions can."""
        if not isinstance(error, PairlensError):
            return cls(StoreError, f"a worker failed with {type(error).__name__}: {error}")
        return cls(next((kind for kind in (InputError, ModelError) if isinstance(error, kind)), StoreError), str(error))


class _Worker:
    """An actor of the pool."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._make = make
        self._work: Callable[[Any], Any] | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"result": [pickle.dumps(self._do(pickle.loads(item))) for item in batch["item"]]}

    def _do(self, item: Any) -> Any:
        if isinstance(item, _Fault):
            return item
        try:
            self._work = self._work or self._make()
            return self._work(item)
        except Exception as error:  # noqa: BLE001 - any error is reported where the command runs
            return _Fault.of(error)


def _source(items: Callable[[], Iterable[Any]]) -> Any:
    """Ray's view of the items: one task that reads them as a stream."""
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    pa, _ = require_pyarrow()

    def read() -> Iterator[Any]:
        try:
            for item in items():
                yield pa.table({"item": [pickle.dumps(item)]})
        except PairlensError as error:
            yield pa.table({"item": [pickle.dumps(_Fault.of(error))]})

    class Items(Datasource):
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            return [ReadTask(read, BlockMetadata(None, None, None, None))]

    return Items()


@contextmanager
def _connected(ray: Any, address: str, workers: int | None) -> Iterator[None]:
    """Connect to the cluster within this context; a connection that existed before stays open."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        with _silenced():
            if address == LOCAL:
                ray.init(address=LOCAL, num_cpus=workers, include_dashboard=False, **options)
            else:
                _check_address(address)
                ray.init(address=address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {address!r}: {str(error).splitlines()[0].rstrip('.')}. If there is one, it may "
            "want a token: set RAY_AUTH_MODE=token. Else start one with: ray start --head, or use --ray local."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _silenced() -> Iterator[None]:
    """Within this context a cluster starts without usage reports and without messages on the terminal.

    Everything written to standard error in the meantime is lost: Ray writes there even when it is told not to.
    """
    ours = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
    added = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(added)
    terminal = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        for name in added:
            del os.environ[name]


def _check_address(address: str) -> None:
    """Raise if no process listens at an address; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Within this context Ray Data works item by item, and logs errors only."""
    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.target_max_block_size, context.enable_progress_bars, logger.level
    # One item a block: the block is the unit of work, of retries and of memory.
    context.target_max_block_size, context.enable_progress_bars = 1, False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.target_max_block_size, context.enable_progress_bars = before[:2]
        logger.setLevel(before[2])
