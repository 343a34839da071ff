"""`import pairlens` needs torch, numpy, transformers and sentence-transformers only, and is quick until it is used."""

from __future__ import annotations

import subprocess
import sys

# Everything that only an extra, the command line or the tests bring.
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

EXPLAIN = (
    WITHOUT
    + """
import pairlens
e = pairlens.Lens().explain("A cat.", "A dog.", layer=6)
assert abs(e.score - e.base - e.matrix.sum() - e.gap) < 1e-12
repr(e)
for name in pairlens.__all__:
    getattr(pairlens, name)
loaded = sorted(blocked & set(sys.modules))
assert not loaded, loaded
print("explained", round(e.score, 3))
"""
)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_explaining_needs_no_optional_package():
    assert "explained 0." in run(EXPLAIN.format(optional=OPTIONAL))


def test_what_is_blocked_is_missed():
    code = EXPLAIN.format(optional=[*OPTIONAL, "torch"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "No module named 'torch'" in done.stderr


def test_importing_the_package_or_the_command_line_does_not_load_torch():
    heavy = ("torch", "transformers", "sentence_transformers")
    code = f"import sys, pairlens, pairlens.cli; print([m for m in {heavy} if m in sys.modules])"
    assert run(code).strip() == "[]"
