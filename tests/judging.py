"""What tests of the judge have in common."""

from __future__ import annotations

from pairlens.study.faithfulness.deletions import Deletions

from pairlens import Lens
from pairlens.study.faithfulness.text_at_layer import layered_encoder

PAIRS = [
    ("The coffee here is not good.", "This coffee is bad."),
    ("The tea was cold.", "The coffee was not hot."),
    ("The shop is closed.", "Is the museum open today?"),
]
QUICK = ["output", "occlusion", "shapley", "bertscore", "random"]


def sides_of(lens: Lens, *texts: str) -> list[Deletions]:
    """The deletions of texts."""
    encoder = layered_encoder(lens)
    return [Deletions(encoder, encoder.read(text), "cosine") for text in texts]
