"""Corpora: texts that are decomposed once and explain every search hit from then on.

Tables of texts or records go in; an `Index` comes out, a folder with one LanceDB table of texts and contributions. The
index searches, explains hits and pairs, and checks itself; `ingest` fills it from large tables and `pairs` explains
millions of pairs, in this process or on a Ray `cluster`. Needs `pip install "pairlens[corpus]"`.
"""

from pairlens.corpus.index import Index, Verification
from pairlens.corpus.records import Reject
from pairlens.corpus.search import Hit
from pairlens.corpus.writer import Report

__all__ = ["Hit", "Index", "Reject", "Report", "Verification"]
