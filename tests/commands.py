"""Runs commands as a user does: each in a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pairlens

A, B = "The coffee here is not good.", "This coffee is bad."
SOURCE = str(Path(pairlens.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "HF_HUB_OFFLINE": "1", "COLUMNS": "80"}


def command(*arguments, **options) -> subprocess.CompletedProcess[str]:
    """Run a command in a process, and capture its output."""
    line = [sys.executable, "-m", "pairlens.cli", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=300, **options)
