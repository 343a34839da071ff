"""`import pairlens` needs four packages only, and loads torch on first use."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import pairlens
from imports import OPTIONAL, WITHOUT

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


def test_a_blocked_package_cannot_be_imported():
    code = EXPLAIN.format(optional=[*OPTIONAL, "torch"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "No module named 'torch'" in done.stderr


def test_importing_the_package_or_the_command_line_does_not_load_torch():
    heavy = ("torch", "transformers", "sentence_transformers")
    code = f"import sys, pairlens, pairlens.cli; print([m for m in {heavy} if m in sys.modules])"
    assert run(code).strip() == "[]"


def test_every_public_name_is_listed_and_can_be_imported():
    assert dir(pairlens) == sorted(pairlens.__all__)
    assert all(getattr(pairlens, name) is not None for name in pairlens.__all__)


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Lense'"):
        _ = pairlens.Lense


def test_the_installed_version_is_the_version_of_the_package():
    assert version("pairlens") == pairlens.__version__
