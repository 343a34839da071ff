"""The same map on many machines: Ray Data with a pool of actors, each of which holds the model."""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from pairlens.errors import InputError, MissingExtra, PairlensError, StoreError
from pairlens.lens import Lens

LOCAL = "local"
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Model:
    """How a worker loads the model: by its name, as it is no use to send it.

    Attributes:
        name: a hub id or a folder that every machine sees; None for all-MiniLM-L6-v2.
        dtype: what to compute in.
        device: where; by default a GPU where there is one.
    """

    name: str | None = None
    dtype: str = "float32"
    device: str | None = None

    def __call__(self) -> Lens:
        """The lens."""
        return Lens(self.name, self.device, dtype=self.dtype)


@dataclass(frozen=True)
class Cluster:
    """Where to compute.

    Attributes:
        address: "local" to start a cluster on this machine, "auto" for one that runs here, or its address.
        model: the model that every worker loads.
        workers: how many; by default one for each GPU of the cluster or, where there is none, for each CPU.
    """

    address: str
    model: Model = Model()
    workers: int | None = None

    def map(
        self, items: Callable[[], Iterable[Item]], make: Callable[[], Callable[[Item], Result]]
    ) -> Iterator[Result]:
        """Apply a function to items on many machines; results come in any order.

        A worker that dies is replaced, and what it was doing is done again: the function must not mind.

        Args:
            items: makes the items; called on one of the machines, and read as fast as they are worked off.
            make: makes the function; called once by every worker.
        """
        ray = _require_ray()
        with _connected(ray, self.address, self.workers):
            gpus = int(ray.cluster_resources().get("GPU", 0))
            workers = self.workers or gpus or max(1, int(ray.cluster_resources().get("CPU", 1)))
            with _quiet(ray):
                found = ray.data.read_datasource(_source(items), override_num_blocks=1, num_cpus=0)
                found = found.map_batches(
                    _Worker,
                    batch_size=1,
                    compute=ray.data.ActorPoolStrategy(size=workers),
                    fn_constructor_args=(make,),
                    num_cpus=0 if gpus else 1,
                    num_gpus=1 if gpus else 0,
                )
                try:
                    for row in found.iter_rows():
                        yield pickle.loads(row["result"])
                except ray.exceptions.RayError as error:
                    raise _told(error) from error


class _Worker:
    """An actor of the pool."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._fault: PairlensError | None = None
        try:
            self._work = make()
        except PairlensError as error:
            self._fault = error  # Ray tries for ever to start an actor that raises here

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self._fault is not None:
            raise self._fault
        return {"result": [pickle.dumps(self._work(pickle.loads(item))) for item in batch["item"]]}


def _source(items: Callable[[], Iterable[Any]]) -> Any:
    """Ray's view of the items: one task that reads them as a stream."""
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    from pairlens.storage import require_pyarrow

    pa, _ = require_pyarrow()

    def read() -> Iterator[Any]:
        return (pa.table({"item": [pickle.dumps(item)]}) for item in items())

    class Items(Datasource):
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            return [ReadTask(read, BlockMetadata(None, None, None, None))]

    return Items()


@contextmanager
def _connected(ray: Any, address: str, workers: int | None) -> Iterator[None]:
    """Within this context there is a connection to the cluster; one that was there before stays."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address == LOCAL:
            with _unreported():
                ray.init(address=LOCAL, num_cpus=workers, include_dashboard=False, **options)
        else:
            _knock(address)
            ray.init(address=address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {address!r}: {str(error).splitlines()[0]} Start one with: ray start --head, or "
            "use --ray local."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _unreported() -> Iterator[None]:
    """Within this context a cluster that is started tells nobody outside of it."""
    name = "RAY_USAGE_STATS_ENABLED"
    before = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _knock(address: str) -> None:
    """Raise if nobody listens at an address; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Within this context Ray Data works item by item, and says nothing unless something is wrong."""
    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.target_max_block_size, context.enable_progress_bars, logger.level
    # One item a block: it is the unit of work, of retrying and of what waits in memory.
    context.target_max_block_size, context.enable_progress_bars = 1, False
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        context.target_max_block_size, context.enable_progress_bars = before[:2]
        logger.setLevel(before[2])


def _told(error: BaseException) -> PairlensError:
    """What went wrong in a worker, as the worker said it."""
    cause: BaseException | None = error
    while cause is not None:
        own = getattr(cause, "cause", None)
        if isinstance(own, PairlensError):
            return own
        cause = own if isinstance(own, BaseException) else cause.__cause__
    return StoreError(f"the cluster gave up: {str(error).splitlines()[-1]}")


def _require_ray() -> Any:
    try:
        ray = import_module("ray")
        import_module("ray.data")
    except ImportError as error:
        raise MissingExtra("ray", "corpus") from error
    return ray
