"""What all tests share: executed shapes, one thread, Hypothesis profiles, and the fixtures of several rooms."""

import os

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

from typechecker import CHECKED

# Before pairlens is imported.
install_import_hook([f"pairlens.{name}" for name in CHECKED], "typechecker.check")

# One thread per test process and in processes that tests start; set before torch loads its libraries.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import torch  # noqa: E402

torch.set_num_threads(1)

# `make test` tries the same examples every time; `make soak` draws new ones, and more where a test sets no number.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("soak", derandomize=False, deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def minilm():
    """The bundled all-MiniLM-L6-v2, loaded once."""
    from pairlens import Lens

    return Lens()


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    """A folder with a tiny BERT, as `SentenceTransformer.save` writes it."""
    import zoo

    folder = tmp_path_factory.mktemp("model") / "tiny"
    zoo.encoder("bert").save(str(folder))
    return str(folder)


@pytest.fixture
def loaded() -> list[bool]:
    """A list with one entry for every time a command loads the model."""
    return []


@pytest.fixture(scope="module")
def commanded(model):
    """The lens on the tiny model that `invoke` gives to commands."""
    from pairlens import Lens

    return Lens(model)


@pytest.fixture
def invoke(commanded, loaded, monkeypatch):
    """A function that runs a command in this process, with the tiny model at its last layer, which is fast."""
    from typer.testing import CliRunner

    from pairlens.cli import app

    def load(request):
        loaded.append(True)
        commanded.strict = request.strict
        return commanded

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("pairlens.cli.options.Request.load", load)

    def run(*arguments, layer="-1", text=None):
        given = [str(argument) for argument in arguments]
        if given[0] in ("explain", "batch") and layer:
            given += ["--layer", layer]
        return CliRunner().invoke(app, given, input=text, catch_exceptions=False)

    return run


@pytest.fixture(scope="module")
def chromium():
    """Chromium, for one file of tests: no other event loop can run at the same time."""
    import browser

    with browser.launch() as launched:
        yield launched
