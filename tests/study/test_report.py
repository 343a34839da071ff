"""The report of all studies."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from pairlens.errors import InputError
from pairlens.study import report
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.result import Result
from studies import materials

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def test_the_report_escapes_markup_in_texts(lens, tmp_path):
    evil = '<script>alert(1)</script> & "quotes" <img src=x onerror=alert(2)>'
    about = CATALOGUE["cumulative"]
    settings = {**materials(lens).describe([], 2), "data": evil, "explained_by": ["v"], "model": "m<b>"}
    table = [{"view": evil, "x": 0.123456}]
    result = Result(about, settings, table, [{"x": 1}], sentences=[evil], draw=lambda settings: Figure())
    folder = tmp_path / "cumulative"
    folder.mkdir()
    result.save(folder)
    (tmp_path / "models").mkdir()
    Result(CATALOGUE["models"], settings, skipped=evil).save(tmp_path / "models")
    text = report.write(tmp_path).read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot;") >= 3
    assert "data:image/svg+xml;base64," in text
    assert "m&lt;b&gt;" in text
    assert "0.1235" in text
    with pytest.raises(InputError, match="holds no study"):
        report.write(folder)
