"""A SentenceTransformer, opened up: loading, tokens, layers, references, deletion."""
