"""Explanations for the eye: pure functions of an `Explanation`. Nothing is imported before it is used."""
