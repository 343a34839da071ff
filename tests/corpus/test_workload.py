"""How much work a table is, and what is left of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpora
from pairlens.corpus import Index
from pairlens.corpus.ingest import IngestRun
from pairlens.corpus.layout import Layout
from pairlens.corpus.records import Reject, TextRecord
from pairlens.corpus.workload import Pace, Workload
from pairlens.io import InputTable


@pytest.mark.parametrize(("passages", "ratio"), [(False, 1.0), (True, 10.0)])
def test_what_the_model_does_not_take_costs_nothing_unless_it_is_split(lens, passages, ratio):
    workload = Workload(lens.encoder, None, passages=passages)
    fits, ten = (workload.of(TextRecord("a", "tea " * (words * 64))) for words in (2, 20))
    assert ten / fits == pytest.approx(ratio, rel=0.3)
    assert 0 < workload.of(TextRecord("a", "Tea.")) < fits / 20
    assert workload.of(Reject(1, 1, "a", "the text is empty")) == 0


def test_the_time_left_counts_work_and_not_rows():
    # Long texts first: 10 of 100 rows are half of the work.
    pace = Pace(count=100, mean=2.0, rows=10, done=100.0)
    assert pace.left(30.0) == pytest.approx(30.0)
    assert pace.per_text(30.0) == pytest.approx(0.6)
    assert Pace(count=100, mean=2.0, rows=50, done=50.0, spared=100.0).left(30.0) == pytest.approx(30.0)
    assert Pace(count=100, mean=2.0).left(3.0) is None
    assert Pace(count=None, mean=2.0, rows=5, done=10.0).left(3.0) is None


def paces(index: Index, data: Path) -> list[tuple[int, float, float | None]]:
    """The rows, the work done and the whole work, whenever a run reports them."""
    table, seen = InputTable(str(data)), []
    run = IngestRun(index, table, Layout.of(table, None, "id", None), chunk=8)
    run(progress=lambda pace: seen.append((pace.rows, pace.done, pace.total)))
    return seen


def test_progress_ends_with_every_row_and_all_the_work(lens, tmp_path):
    data = corpora.write_jsonl(tmp_path / "data.jsonl", 25)
    index = Index.create(tmp_path / "index", lens, metadata={"year": "int"})
    seen = paces(index, data)
    rows, done, total = seen[-1]
    assert rows == 25
    assert done == pytest.approx(total)
    assert seen == sorted(seen)
    assert sum(rows == 0 for rows, _, _ in seen) > 2, "within the first block too"
    assert len({round(total or 0) for *_, total in seen}) == 1
    assert paces(index, data) == [], "nothing is left to do"


def test_texts_that_are_there_are_no_work(lens, tmp_path):
    path = tmp_path / "data.jsonl"
    records = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(corpora.texts(20))]
    path.write_text("\n".join(records[:17]))
    index, *_ = corpora.build(tmp_path / "index", path, lens)
    path.write_text("\n".join(records))
    seen = paces(index, path)
    workload = index.workload(passages=False)
    new = workload.sum(TextRecord(str(i), text) for i, text in enumerate(corpora.texts(20)) if i >= 17)
    assert seen[-1] == (20, pytest.approx(new), pytest.approx(new))
