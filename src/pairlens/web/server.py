"""A server that can be told to stop: it finishes what it has begun, and refuses the rest."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from pairlens.errors import InputError
from pairlens.web.scheduler import Work

CONNECTIONS = 512
"""Connections and requests at a time; uvicorn itself answers 503 to what is above."""


class Server(uvicorn.Server):
    """uvicorn, draining before it stops.

    Args:
        app: the application.
        work: what it gives out.
    """

    def __init__(self, app: ASGIApp, work: Work) -> None:
        # No access log: a path is all that it could say, and it would say it of every key that is pressed.
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
        self._work = work
        self._stopping: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """On the first signal finish what is under way, on the second stop at once."""
        if self._stopping is not None:
            self.should_exit = self.force_exit = True
            return
        self._stopping = asyncio.get_event_loop().create_task(self._stop())

    async def _stop(self) -> None:
        await self._work.drain()
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Give another port with --port, or "
            "--port 0 for any that is free."
        ) from error
    return found
