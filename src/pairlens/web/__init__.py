"""The web page and its server, which `pairlens serve` starts.

Lenses and limits go in; `build` gives an ASGI application with the page and a JSON API, and `Server` serves it. A
request is checked (`security`, `limits`, `schemas`), computed in fair turns (`scheduler`, `requests`) and answered
(`responses`).
"""

from pairlens.web.app import build
from pairlens.web.limits import Limits
from pairlens.web.requests import needs_roles
from pairlens.web.server import Server, listen

__all__ = ["Limits", "Server", "build", "listen", "needs_roles"]
