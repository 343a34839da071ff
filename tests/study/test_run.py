"""`study.run`: every study on a tiny model, and studies that lack an input."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from matplotlib.text import Text

import zoo
from pairlens import Lens, study
from pairlens.errors import InputError
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.views import Choice
from studies import PAIRS, adjust, materials

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


@pytest.fixture(autouse=True)
def _few_points(monkeypatch):
    """Fewer and wider tolerances in the study of convergence, whose tightest cost most of its time."""
    monkeypatch.setattr("pairlens.study.papers.convergence.TOLERANCES", (1e-1, 1e-3))
    monkeypatch.setattr("pairlens.study.papers.convergence.GAUSS", (1, 8, 32))


# The study of convergence takes as long as all others together.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "convergence" else ()) for name in CATALOGUE]
)
def test_every_study_gives_a_table_a_picture_and_a_summary(name, everything, tmp_path):
    result = study.run(name, everything)
    assert not result.skipped
    assert result.table
    assert result.sentences
    assert {path.name for path in result.save(tmp_path)} == {
        "table.csv",
        "pairs.parquet",
        f"{name}.png",
        f"{name}.svg",
        "summary.json",
    }
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert (summary["study"], summary["title"]) == (name, CATALOGUE[name].title)
    assert summary["settings"]["pairs"] >= 1
    parquet = import_module("pyarrow.parquet")
    assert parquet.read_table(tmp_path / "pairs.parquet").num_rows == len(result.raw)
    assert len(result.to_pandas()) == len(result.table)
    shown = " ".join(text.get_text() for text in result.plot().findobj(Text) if isinstance(text, Text))
    assert "pair" in shown, "the picture does not say how many pairs it is made of"
    assert "nan" not in " ".join(result.sentences)


@pytest.mark.parametrize("name", ["convergence", "failures", "lexical-bias"])
@pytest.mark.parametrize("kind", ["adjusted", "dot"])
def test_studies_of_adjusted_and_dot_product_models(name, kind):
    plain = zoo.encoder("bert", normalize=kind != "dot", similarity="dot" if kind == "dot" else None)
    given = materials(Lens(adjust(plain) if kind == "adjusted" else plain), choice=Choice(layers=(2,)))
    result = study.run(name, given)
    assert not result.skipped
    assert {view.split(", ")[1] for view in result.settings["explained_by"]} == {
        "shift" if kind == "adjusted" else "project"
    }


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("parts-of-speech", {}, "needs parts of speech. Give --annotations"),
        ("syntactic-roles", {}, "needs dependency relations"),
        ("models", {}, "there is one"),
        ("failures", {"pairs": [pair[:2] for pair in PAIRS]}, "no scores by people"),
        ("layers", {"pair": 99}, "pair 99 is not among those of this run; some that are: 1, 2, 3, 4"),
        ("agreement", {"twin": "itself"}, "--adjusted and --twin go together"),
        ("agreement", {"twin": "itself", "adjusted": "another"}, "read pair 1 as different tokens"),
        ("failures", {"pairs": [("Tea.", "Tea.", 5.0)]}, "no pair of texts of at most 12 words is off"),
    ],
)
def test_a_study_says_what_it_lacks(lens, name, options, reason, tmp_path):
    models = {"itself": lens, "another": Lens(zoo.encoder("roberta"))}
    options = {
        key: models.get(value, value) if key in ("twin", "adjusted") else value for key, value in options.items()
    }
    (tmp_path / "table.csv").write_text("of an earlier run")
    result = study.run(name, materials(lens, **options))
    assert reason in result.skipped
    assert [path.name for path in result.save(tmp_path)] == ["summary.json"]
    assert json.loads((tmp_path / "summary.json").read_text())["skipped"] == result.skipped
    assert not (tmp_path / "table.csv").exists()
    with pytest.raises(InputError, match="has no picture"):
        result.plot()


def test_static_embeddings_have_no_layers_to_study():
    given = materials(Lens(zoo.static()))
    for name in ("convergence", "layers"):
        assert "static embeddings" in study.run(name, given).skipped
    assert not study.run("cumulative", given).skipped
