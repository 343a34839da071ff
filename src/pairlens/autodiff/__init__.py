"""Forward-mode differentiation with many tangents at once."""
