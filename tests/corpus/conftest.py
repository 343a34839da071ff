"""Indexes that tests of the corpus share."""

from __future__ import annotations

import pytest

import zoo
from corpora import TEXTS
from pairlens import Lens
from pairlens.corpus import Index


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens(zoo.encoder("bert"))


@pytest.fixture(scope="module")
def index(lens, tmp_path_factory) -> Index:
    """Forty texts, read only."""
    made = Index.create(tmp_path_factory.mktemp("corpus") / "index", lens, metadata={"year": "int", "title": "text"})
    records = [{"id": f"t{i}", "text": text, "year": 1990 + i, "title": text[:5]} for i, text in enumerate(TEXTS)]
    assert made.add(records).added == len(TEXTS)
    return made


@pytest.fixture
def empty(lens, tmp_path) -> Index:
    return Index.create(tmp_path / "index", lens, metadata={"year": "int"})
