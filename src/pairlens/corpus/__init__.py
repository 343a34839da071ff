"""A corpus that is taken apart once and explains every search hit from then on: `pip install "pairlens[corpus]"`."""

from pairlens.corpus.index import Index, Verification
from pairlens.corpus.records import Reject
from pairlens.corpus.search import Hit
from pairlens.corpus.writer import Report

__all__ = ["Hit", "Index", "Reject", "Report", "Verification"]
