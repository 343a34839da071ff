"""Help texts: every command has two examples that can be run, and flags look like flags."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from pairlens.cli import app
from pairlens.cli.help import EXAMPLES

ROOT = get_command(app)


def commands(command=ROOT, path: str = "pairlens") -> Iterator[tuple[str, Any]]:
    if isinstance(command, TyperGroup):
        for name in sorted(command.commands):
            yield from commands(command.commands[name], f"{path} {name}")
    else:
        yield path, command


def examples_of(command: Any) -> list[str]:
    return [line.strip() for line in command.help.partition(f"\n\n{EXAMPLES}\n")[2].splitlines()]


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_first_every_help_has_two_examples_that_the_command_takes(path):
    assert len(examples_of(COMMANDS[path])) >= 2
    for example in examples_of(COMMANDS[path]):
        line = example.removeprefix("HF_HOME=hub ")
        assert line.startswith(path)
        # Raises on options that do not exist and on arguments that are missing.
        COMMANDS[path].make_context(path, shlex.split(line.removeprefix(path)))


def test_first_examples_are_checked():
    assert len(examples_of(ROOT)) >= 2
    with pytest.raises(Exception, match="No such option"):
        COMMANDS["pairlens explain"].make_context("explain", ["a", "b", "--layers", "1"])


def test_first_one_option_has_one_name():
    options = {option for command in COMMANDS.values() for p in command.params for option in p.opts if "--" in option}
    assert options >= {"--out", "--layer", "--method"}
    assert not options & {"--output", "--layers", "--methods"}


@pytest.mark.parametrize("path", COMMANDS)
def test_first_flags_are_flags_in_the_help(path):
    shown = CliRunner().invoke(app, [*path.split()[1:], "--help"], env={"COLUMNS": "80"}).stdout
    assert not re.search(r"<bool>|int range|list\[", shown)
    assert re.search(r"--help +-h +Show this message", shown)
    for example in examples_of(COMMANDS[path]):
        assert f"  {example} " in shown  # on one line, for copying
