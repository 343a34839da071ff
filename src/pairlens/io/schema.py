"""The fields of a document: which of them are arrays, and which kinds of value the others hold."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

AXES = {
    "matrix": ("units_a", "units_b"),
    "entry_error": ("units_a", "units_b"),
    "effects_a": ("units_a",),
    "effects_b": ("units_b",),
    "values": ("units", "dim"),
    "error": ("units",),
    "reference": ("dim",),
    "embedding": ("dim",),
    "output": ("dim",),
    "noise_weights": ("draws", "units"),
    "noise_residuals": ("draws", "dim"),
    "tried": ("tried", "units"),
    "tried_embeddings": ("tried", "dim"),
    "tried_predictions": ("tried", "dim"),
    "tried_with_compounds": ("tried", "dim"),
    "tried_weights": ("tried",),
    "measured_a": ("units_a",),
    "measured_b": ("units_b",),
    "measured_pairs": ("units_a", "units_b"),
}
"""The fields that are arrays, and what their axes count."""
OPTIONAL = (
    "noise_weights",
    "noise_residuals",
    "tried",
    "tried_embeddings",
    "tried_predictions",
    "tried_with_compounds",
    "tried_weights",
    "measured_a",
    "measured_b",
    "measured_pairs",
    "forecast",
)
"""The fields that a document leaves out where the object has None."""
WORDS = ("tokens", "unknown")
"""The fields that are lists of words; their names begin so."""
EXPLANATIONS = ("a", "b")
"""The fields that are documents of explanations."""
SCALARS = {"str": str, "float": float, "bool": bool}
"""The types of the other fields, by their annotation."""
