"""Shapes are checked as they are computed: the annotations of pairlens's inner files are executed by beartype."""

import pytest
from jaxtyping import install_import_hook

# Before anything imports pairlens. The files that meet the user (lens, methods, quadrature, functional, tokens, loading
# and the command line) are left out: what a user hands in wrongly must meet their own errors, not a type checker's.
CHECKED = (
    "attribution.contributions",
    "attribution.explanation",
    "attribution.treatments",
    "model.encoder",
    "model.layers",
    "model.reference",
    "quadrature.integrate",
)
install_import_hook([f"pairlens.{name}" for name in CHECKED], "beartype.beartype")

import torch  # noqa: E402

torch.set_num_threads(1)


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
    """Grows when a command asks for the model."""
    return []


@pytest.fixture(scope="module")
def commanded(model):
    """The lens that `invoke` gives to commands."""
    from pairlens import Lens

    return Lens(model)


@pytest.fixture
def invoke(commanded, loaded, monkeypatch):
    """Run a command in this process with the tiny model at its last layer, which is quick."""
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
    """A real browser, for one file of tests: while it runs, no other event loop can."""
    import browser

    with browser.launch() as launched:
        yield launched
