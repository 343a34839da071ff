"""`import pairlens` needs torch, numpy, transformers and sentence-transformers only, and is quick until it is used."""

from __future__ import annotations

import subprocess
import sys

from imports import OPTIONAL, WITHOUT

# Everything that only an extra, the command line or the tests bring.


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
