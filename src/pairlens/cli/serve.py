"""`pairlens serve`: the web page, served from this machine."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from pairlens.cli import options
from pairlens.cli.session import session, tell
from pairlens.errors import MissingExtra

if TYPE_CHECKING:
    from pairlens.lens import Lens

LOCAL = ("127.0.0.1", "localhost", "[::1]")
LIMITS = "Limits"


@session()
def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A hub id or a folder. Repeatable: the page offers these models and no others. By default "
            "all-MiniLM-L6-v2.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8000,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that the server answers to, besides its address. Repeatable.")
    ] = None,
    device: options.Device = None,
    browser: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open the page in a browser. By default in a terminal on a machine with a screen."
        ),
    ] = None,
    max_chars: Annotated[
        int, typer.Option(min=1, help="The most characters of a text.", rich_help_panel=LIMITS)
    ] = 10_000,
    max_tokens: Annotated[int, typer.Option(min=1, help="The most tokens of a text.", rich_help_panel=LIMITS)] = 512,
    max_seconds: Annotated[
        float, typer.Option(min=1, help="The most seconds that a request may take.", rich_help_panel=LIMITS)
    ] = 60,
) -> None:
    """Open a page where anyone can try their own sentences, and an API beside it.

    Everything is computed on this machine. Stop the server with Ctrl-C.

    Examples:
      pairlens serve
      pairlens serve --model all-MiniLM-L6-v2 --model ./mine --port 0
    """
    try:
        from pairlens import web
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", "web") from error
    names = list(dict.fromkeys(model or [""]))
    with web.listen(host, port) as listener:
        lenses = dict(_load(name, device) for name in names)
        limits = web.Limits(chars=max_chars, tokens=max_tokens, total=4 * max_tokens, seconds=max_seconds)
        hosts = [*LOCAL, *([] if host in LOCAL else [f"[{host}]" if ":" in host else host]), *(allow_host or [])]
        app, scheduler = web.build(lenses, hosts=hosts, limits=limits)
        shown = "127.0.0.1" if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        _announce(address, host, browser)
        # Warnings quote texts, which must not reach the log. The page shows their content from the result.
        warnings.simplefilter("ignore")
        web.Server(app, scheduler).run(sockets=[listener])
    tell("stopped")


def _load(name: str, device: str | None) -> tuple[str, Lens]:
    """A lens on a model, with the name that the page shows."""
    from pairlens.web import needs_roles

    lens = options.load_lens(name or None, device, "float32")
    shown = (name or lens.name).rstrip("/")
    # The first explanation sets up caches; doing it now spares the first request the wait.
    roles = ("query", "document") if needs_roles(lens) else (None, None)
    lens.explain("A cat.", "A dog.", level="word", roles=roles)
    return shown, lens


def _announce(address: str, host: str, browser: bool | None) -> None:
    """Print the address of the page, and open it in a browser."""
    import webbrowser

    tell(f"pairlens is at {address}  (stop with Ctrl-C)")
    if host not in LOCAL:
        tell("this address can be reached from other machines, and there is no password.", "warning: ", "yellow")
    if browser or (browser is None and sys.stderr.isatty() and _has_screen()):
        webbrowser.open(address)


def _has_screen() -> bool:
    """Whether a browser would open a window rather than run in this terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
