"""Python processes in which optional packages cannot be imported."""

from __future__ import annotations

OPTIONAL = """beartype datasets fastapi hypothesis jaxtyping lancedb matplotlib mkdocs pandas peft psutil
pyarrow pydantic pytest ray rich spacy typer uvicorn""".split()


WITHOUT = """
import sys
blocked = set({optional!r})
class Without:
    # Finds everything that the finder would, but for what is blocked.
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name in blocked or name.split(".")[0] in blocked:
            return None
        return self.finder.find_spec(name, path, target)
    def find_distributions(self, *context):
        # sentence-transformers looks at what is installed, not at what can be imported.
        wanted = context[0].name if context else None
        found = getattr(self.finder, "find_distributions", None)
        return [] if found is None or wanted in blocked else found(*context)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
