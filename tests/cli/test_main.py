"""The `pairlens` command: how it starts, and its version."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

import pairlens
from commands import ENVIRONMENT, command


def test_the_command_line_imports_nothing_heavy():
    code = (
        "import sys, pairlens.cli; print(sorted({'torch', 'numpy', 'transformers', 'rich.table'} & set(sys.modules)))"
    )
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert done.stdout.strip() == "[]"


def test_help_lists_the_commands(invoke):
    assert "explain" in invoke("--help").stdout


@pytest.mark.slow
def test_help_takes_less_than_a_second_of_processor_time():
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "explain" in command("--help").stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 1.0


def test_version_prints_the_version(invoke):
    assert invoke("--version").stdout == f"pairlens {pairlens.__version__}\n"
