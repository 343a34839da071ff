"""One server for all tests of the API: a tiny model, which is the default and quick, and the bundled one."""

import pytest

import zoo
from pairlens import Lens
from serving import serving


@pytest.fixture(scope="session")
def tiny():
    return Lens(zoo.encoder("bert"))


@pytest.fixture(scope="session")
def server(tiny, minilm):
    with serving({"tiny": tiny, "minilm": minilm}) as running:
        yield running


@pytest.fixture
def idle(server):
    """The server, without a calculation."""
    server.wait_until_idle()
    return server
