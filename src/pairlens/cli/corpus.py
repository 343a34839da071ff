"""What the commands on an index share: opening the index, and the cluster to compute on."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairlens.cli import options
from pairlens.cli.session import warn_of_rows
from pairlens.errors import InputError

if TYPE_CHECKING:
    from pairlens.corpus import Index
    from pairlens.corpus.cluster import Cluster

DATA = "What the data is like"
WHERE = "Where to compute"
IndexModel = Annotated[
    str | None, typer.Option("--model", "-m", help="The place of the index's model, if it has moved.")
]
Split = Annotated[str, typer.Option(help="The split of a hub dataset.", rich_help_panel=DATA)]
Ray = Annotated[
    str | None,
    typer.Option("--ray", help="A Ray cluster: its address, auto, or local to start one here.", rich_help_panel=WHERE),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Workers of the cluster. By default one for each GPU, else for each CPU.", rich_help_panel=WHERE
    ),
]


def open_index(path: Path, model: str | None, device: str | None) -> Index:
    """An index with its model: the model that the user named, or the index's own, loaded when it is needed."""
    from pairlens.corpus import Index

    opened = Index.open(path)
    if model is not None or device is not None:
        name = opened.model if model is None else model
        return Index.open(path, options.load_lens(name, device, opened.dtype))
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    return opened


def warn_of_rejects(count: int, path: Path) -> None:
    """Warn of the rejected rows that a file lists, unless there are none."""
    if count:
        with path.open(encoding="utf-8") as file:
            warn_of_rows(count, json.loads(next(file)), path)


def cluster_of(ray: str | None, workers: int | None, index: Index, device: str | None) -> Cluster | None:
    """The cluster to compute on, or None for this process."""
    if ray is None:
        if workers is not None:
            raise InputError("--workers is for a cluster: give --ray local, or its address.")
        return None
    from pairlens.corpus.cluster import Cluster
    from pairlens.lens import Lens

    return Cluster(ray, partial(Lens, index.model, device, dtype=index.dtype), workers)
