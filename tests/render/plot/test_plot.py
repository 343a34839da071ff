import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import pairlens.render
from explanations import COFFEE, make
from figures import cells, folded, labels
from pairlens.cli import app
from pairlens.errors import MissingExtra
from pairlens.render.colours import LIGHT


def test_missing_matplotlib_is_named_with_its_extra(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pairlens.render.plot")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(pairlens.render, "plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    e = make(*COFFEE)
    needed = "matplotlib is not installed and this needs it. Install it with: pip install 'pairlens[plot]'"
    for use in (
        lambda: e.save(tmp_path / "a.png"),
        lambda: e.save(tmp_path / "a.pdf"),
        e.plot,
        lambda: e.plot("links"),
    ):
        with pytest.raises(MissingExtra, match=re.escape(needed)):
            use()
    assert not list(tmp_path.iterdir())


def test_command_saves_plots_and_warns_about_fonts(minilm, monkeypatch, tmp_path):
    monkeypatch.setattr("pairlens.cli.options.Request.load", lambda request: minilm)
    paths = [tmp_path / name for name in ("a.png", "a.svg", "a.pdf")]
    saves = [option for path in paths for option in ("--save", str(path))]
    done = CliRunner().invoke(app, ["explain", "A cat.", "A dog.", "--method", "output", *saves])
    assert done.exit_code == 0, done.output
    assert all(path.stat().st_size > 1000 for path in paths)
    odd = CliRunner().invoke(app, ["explain", "x\U000f1234", "A dog.", "--method", "output", "--save", str(paths[0])])
    assert odd.exit_code == 0
    assert "no installed font has \U000f1234" in odd.stderr


def test_plots_of_a_real_model_show_its_units_and_values(minilm):
    e = minilm.explain(*COFFEE, level="word", method="output")
    _, ax = e.plot()
    rows, _ = labels(ax)
    assert rows[:-2] == [unit.text for unit in e.units_a[1:-1]]
    assert np.asarray(cells(ax).get_array()).reshape(8, 6) == pytest.approx(folded(e))
    strongest = e.top(1)[0]
    _, ax = e.plot("links", top=1)
    assert {t.get_text() for t in ax.texts if t.get_color() == LIGHT.ink} >= {strongest.a.text, strongest.b.text}
