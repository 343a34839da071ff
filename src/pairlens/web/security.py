"""Checks before every request (host, origin, form, size) and the security headers of every response."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pairlens.errors import PairlensError
from pairlens.web.limits import Limits, Refusal

CALCULATIONS = ("/api/explain", "/api/rank", "/api/decompose", "/api/render")
READING_SECONDS = 10.0
"""Seconds that a request's body may take to arrive."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
logger = logging.getLogger("pairlens.web")


def problem(refusal: Refusal) -> Response:
    """The response to a request that is refused."""
    body = json.dumps({"error": refusal.message})
    return Response(body, refusal.status, {**refusal.headers, "Cache-Control": "no-store"}, "application/json")


def fault(error: Exception) -> Refusal:
    """The refusal after an unexpected error, which is logged.

    The log names the error's type and its place in the code, not its message, which may quote a user's text.
    """
    place = traceback.extract_tb(error.__traceback__)[-1]
    logger.error("%s in %s, line %s", type(error).__name__, place.filename, place.lineno)
    return Refusal(500, "something went wrong in the server: a fault of pairlens, not of the request.")


def as_refusal(error: Exception) -> Refusal:
    """The refusal that answers an error: what the library says is sent, any other error is logged as a fault."""
    if isinstance(error, Refusal):
        return error
    return Refusal(422, str(error)) if isinstance(error, PairlensError) else fault(error)


class Guard:
    """An ASGI application that checks requests before it hands them to another application.

    Args:
        app: the other application.
        hosts: the names that this server answers to, without ports. A foreign page whose name was made to point here
            (DNS rebinding) sends its own name.
        limits: how large a request may be.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], limits: Limits) -> None:
        self.app = app
        self.hosts = tuple(host.lower() for host in hosts)
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, await self._read(scope, receive), send_with_headers)
        except Exception as error:  # noqa: BLE001
            # Starlette answers an error and then raises it again.
            if not started:
                await problem(as_refusal(error))(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        """Refuse requests for another host, from another origin, or in another form than JSON."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = _name(host)
        if name not in self.hosts:
            raise Refusal(
                400,
                f"this server answers to {', '.join(self.hosts)}, and was asked for {name[:100]!r}. If that is its "
                f"name, start it with --allow-host {name[:100]}.",
            )
        if scope["method"] != "POST":
            return
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Refusal(403, "this server takes requests from its own page and from programs, not from other pages.")
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["path"] in CALCULATIONS and content_type != "application/json":
            raise Refusal(415, "send JSON, with the header Content-Type: application/json.")

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body, and return a `receive` that gives it out again."""
        if scope["method"] != "POST":
            return receive
        limit = self.limits.document if scope["path"] == "/api/render" else self.limits.body
        message = f"the request is larger than {limit} bytes, which is all this server takes."
        too_large = Refusal(413, message, close=True)
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdigit() or int(declared) > limit:
            raise too_large
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(READING_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the request broke off.")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    # A chunked body has no declared length, so its length is checked as it arrives.
                    if len(body) > limit:
                        raise too_large
        except TimeoutError:
            message = f"the request did not arrive within {READING_SECONDS:g} seconds."
            raise Refusal(408, message, close=True) from None
        whole: list[dict[str, Any]] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        return replay


def _name(host: str) -> str:
    """A Host header without its port.

    Example:
        >>> _name("localhost:8000"), _name("[::1]:8000"), _name("Pairlens.Example.")
        ('localhost', '[::1]', 'pairlens.example.')
    """
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower()
