"""Adjusted models: encoders that subtract their reference's embedding, so that attributions sum to the score itself.

The function is `pairlens.adjust`; a folder of that name would hide it, so the folder is called `adjusted`.
"""
