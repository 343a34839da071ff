"""Verification finds records that were changed or doubled."""

from __future__ import annotations

from corpora import record


def test_verify(index):
    found = index.verify(8)
    assert found.passed
    assert found.checked == 8
    assert 0 < found.difference < 5e-4


def test_verify_sees_a_changed_record(empty):
    empty.add([record(i) for i in range(6)])
    rows = empty.store._table.to_arrow()
    stolen = rows.take([1]).set_column(0, rows.schema.field("id"), [["t0"]])
    empty.store.write(stolen.set_column(1, rows.schema.field("text"), rows.take([0]).column("text")), replace=True)
    found = empty.verify(6)
    assert found.wrong == ("t0",)
    assert not found.passed


def test_verify_sees_a_doubled_record(empty):
    empty.add([record(i) for i in range(3)])
    empty.store.write(empty.store._table.to_arrow().take([1]), replace=False)
    found = empty.verify(2)
    assert found.doubled == ("t1",)
    assert not found.passed
