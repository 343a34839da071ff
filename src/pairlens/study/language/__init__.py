"""Linguistics for the studies: annotations of texts (CoNLL-U, spaCy), WordNet, and lists of English words.

Annotated files and explanations go in; words with their tags and contributions come out.
"""
