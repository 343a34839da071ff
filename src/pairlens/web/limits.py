"""The limits of the server, and the refusal of what exceeds them: a status and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that one request may ask for, and how many may wait.

    Attributes:
        chars: characters of one text.
        tokens: tokens of one text, as the model reads it.
        total: tokens of all texts of a request together.
        passages: passages of one query, or texts to decompose.
        passes: forward passes a text, for banzhaf and shapley.
        body: bytes of a request.
        document: bytes of a request that brings a finished explanation.
        quick: short calculations under way at a time.
        slow: long calculations under way at a time.
        waiting: requests that may wait for a place.
        seconds: how long a request may take, the wait included.
        grace: seconds that the requests under way get when the server is told to stop.
    """

    chars: int = 10_000
    tokens: int = 512
    total: int = 2048
    passages: int = 32
    passes: int = 1024
    body: int = 512 * 2**10
    document: int = 32 * 2**20
    quick: int = 2
    slow: int = 2
    waiting: int = 64
    seconds: float = 60.0
    grace: float = 20.0


class Refusal(Exception):
    """A request that is not carried out.

    Args:
        status: the HTTP status.
        message: what is wrong and what to do, for the client.
        retry: seconds after which the client may try again.
        close: close the connection, because the request was not read to its end.
    """

    def __init__(self, status: int, message: str, *, retry: int | None = None, close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers: dict[str, str] = {}
        if retry is not None:
            self.headers["Retry-After"] = str(retry)
        if close:
            self.headers["Connection"] = "close"


def check_chars(texts: Sequence[tuple[str, str]], limits: Limits) -> None:
    """Refuse texts with too many characters.

    Args:
        texts: the name and the text of each.
        limits: the most that is allowed.

    Example:
        >>> check_chars([("a", "word " * 3000)], Limits())
        Traceback (most recent call last):
            ...
        pairlens.web.limits.Refusal: a has 15000 characters, and this server takes up to 10000 a text. Shorten it.
    """
    for name, text in texts:
        _check_count(name, len(text), "characters", limits.chars)


def check_tokens(counts: Sequence[tuple[str, int]], limits: Limits) -> None:
    """Refuse texts with too many tokens, each or together.

    Args:
        counts: the name and the number of tokens of each.
        limits: the most that is allowed.
    """
    for name, count in counts:
        _check_count(name, count, "tokens", limits.tokens)
    total = sum(count for _, count in counts)
    if total > limits.total:
        raise Refusal(
            422,
            f"the texts have {total} tokens together, and this server takes up to {limits.total} a request. Send fewer "
            "or shorter ones.",
        )


def _check_count(name: str, count: int, things: str, most: int) -> None:
    if count > most:
        raise Refusal(422, f"{name} has {count} {things}, and this server takes up to {most} a text. Shorten it.")
