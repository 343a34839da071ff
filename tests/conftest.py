"""Shapes are checked as they are computed: the annotations of pairlens's inner files are executed by beartype."""

import pytest
from jaxtyping import install_import_hook

# Before anything imports pairlens. The files that meet the user (lens, methods, quadrature, functional, tokens, loading
# and the command line) are left out: what a user hands in wrongly must meet their own errors, not a type checker's.
CHECKED = ("architectures", "contributions", "encoder", "explanation", "integrate", "reference", "similarity")
install_import_hook([f"pairlens.{name}" for name in CHECKED], "beartype.beartype")

import torch  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def minilm():
    """The bundled all-MiniLM-L6-v2, loaded once."""
    from pairlens import Lens

    return Lens()


@pytest.fixture(scope="module")
def chromium():
    """A real browser, for one file of tests: while it runs, no other event loop can."""
    import browser

    with browser.launch() as launched:
        yield launched
