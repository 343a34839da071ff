import warnings

import matplotlib as mpl
import pytest

from explanations import COFFEE, make
from pairlens.errors import FontWarning
from pairlens.render import plot
from pairlens.render.plot.fonts import families, unseen


def test_characters_without_a_font_are_warned_about(tmp_path):
    odd = "\U000f1234"  # a character for private use
    assert unseen([odd, "abc"]) == odd
    figure, _ = make(f"x{odd}", "b").plot()
    with pytest.warns(FontWarning, match=odd):
        plot.save(figure, tmp_path / "a.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot.save(figure, tmp_path / "a.svg")
        plot.save(make(*COFFEE).plot()[0], tmp_path / "a.pdf")
    assert odd in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_further_fonts_are_used_for_missing_characters():
    with mpl.rc_context({"font.family": ["cmr10"]}):  # has few letters
        first, *further = families(["абв"])
        assert first == "cmr10"
        assert "DejaVu Sans" in further
        assert families(["abc"]) == ["cmr10"]
