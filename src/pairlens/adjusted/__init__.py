"""Models trained to be exact: encoders that subtract their reference's embedding, so that the matrix sums to the score.

A base model and scored pairs go into `adjust` (also `pairlens.adjust`); a SentenceTransformer comes out, with a record
of its training and a model card. `wrap` does the same without training. This file imports nothing: saved models name
`pairlens.adjusted.module`, and loading that must not import the trainer.
"""
