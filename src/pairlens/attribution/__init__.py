"""From contributions to explanations."""
