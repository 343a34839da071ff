"""Integrals along paths: rules, plans of nodes, and integration with measured gaps."""
