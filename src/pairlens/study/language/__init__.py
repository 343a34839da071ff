"""Annotations of texts: CoNLL-U, parsers, WordNet."""
