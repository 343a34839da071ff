"""A server that finishes the requests under way when it is told to stop, and refuses new ones."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from pairlens.errors import InputError
from pairlens.web.scheduler import Scheduler

CONNECTIONS = 512
"""Connections and requests at a time; uvicorn answers 503 to any beyond them."""


class Server(uvicorn.Server):
    """A uvicorn server that drains its scheduler before it stops.

    Args:
        app: the application.
        scheduler: the scheduler of the application's calculations.
    """

    def __init__(self, app: ASGIApp, scheduler: Scheduler) -> None:
        # No access log: the page sends a request after every pause in typing, and the log could only repeat its path.
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=5,
        )
        super().__init__(config)
        self._scheduler = scheduler
        self._stopping: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """On the first signal finish the requests under way, on the second stop at once."""
        if self._stopping is not None:
            self.should_exit = self.force_exit = True
            return
        self._stopping = asyncio.get_event_loop().create_task(self._stop())

    async def _stop(self) -> None:
        await self._scheduler.drain()
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to this address; port 0 takes a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Give another port with --port, or "
            "--port 0 for any that is free."
        ) from error
    return listener
