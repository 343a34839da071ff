"""The import rule, as far as the import-linter contract in pyproject.toml cannot express it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from typechecker import CHECKED

SOURCE = Path(__file__).parents[1] / "src"
# Installed with every pairlens; any other package may be missing, so its import may stand inside a function.
REQUIRED = {"huggingface_hub", "numpy", "safetensors", "sentence_transformers", "tokenizers", "torch", "transformers"}
# Imports to rooms above, which the contract ignores: they must stand inside functions.
FORWARD = (("pairlens.attribution", ("pairlens.io", "pairlens.render")), ("pairlens.model", ("pairlens.adjusted",)))


@cache
def modules() -> dict[str, ast.Module]:
    files = {path.relative_to(SOURCE).with_suffix(""): path for path in sorted(SOURCE.rglob("*.py"))}
    return {".".join(name.parts).removesuffix(".__init__"): ast.parse(path.read_text()) for name, path in files.items()}


def imports(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, int, bool]]:
    """The name, the line and whether it is inside a function, for every import that runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for branch in node.orelse:
                yield from imports(branch, inside)
        else:
            yield from imports(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def home(name: str, known: dict[str, ast.Module]) -> str:
    """The module that an imported name comes from, or its top-level package if that is not pairlens."""
    if not name.startswith("pairlens"):
        return name.partition(".")[0]
    return name if name in known else name.rpartition(".")[0]


def optional(known: dict[str, ast.Module]) -> set[str]:
    """The packages that may be missing, and the modules that cannot be imported without one of them."""
    targets = {
        name: [(home(target, known), inside) for target, _, inside in imports(tree)] for name, tree in known.items()
    }
    needs = {name: {target for target, inside in pairs if not inside} for name, pairs in targets.items()}
    lacking = {target for pairs in targets.values() for target, _ in pairs if not target.startswith("pairlens")}
    lacking -= REQUIRED | sys.stdlib_module_names
    while more := {name for name, imported in needs.items() if imported & lacking} - lacking:
        lacking |= more
    return lacking


def is_forward(module: str, target: str) -> bool:
    return any(module.startswith(room) and target.startswith(rooms) for room, rooms in FORWARD)


def violations(known: dict[str, ast.Module]) -> list[str]:
    lacking = optional(known)
    broken = []
    for module, tree in known.items():
        for name, line, inside in imports(tree):
            target = home(name, known)
            # A room's door may wait for the files behind it.
            door = (SOURCE / module.replace(".", "/")).is_dir() and target.startswith(f"{module}.")
            lazy = module.startswith("pairlens.cli") or target in lacking or door
            if inside and not lazy and not is_forward(module, target):
                broken.append(f"{module}, line {line}: {target} is imported inside a function")
            if not inside and is_forward(module, target):
                broken.append(f"{module}, line {line}: {target} stands above: import it inside a function")
            if target == "pairlens" and name not in ("pairlens", "pairlens.__version__"):
                broken.append(f"{module}, line {line}: import {name} from the room it is defined in")
    return broken


def test_imports_stand_at_the_top_of_a_file_except_optional_packages_and_commands():
    assert not violations(modules())


@pytest.mark.parametrize(
    ("module", "code", "message"),
    [
        ("pairlens.text.units", "def f():\n    import numpy", "inside a function"),
        ("pairlens.attribution.explanation", "from pairlens.io import documents", "stands above"),
        ("pairlens.study.views", "from pairlens import Lens", "from the room it is defined in"),
    ],
)
def test_the_check_finds_a_broken_import(module, code, message):
    known = modules() | {module: ast.parse(code)}
    assert [text for text in violations(known) if module in text and message in text]


def test_every_file_whose_shapes_are_checked_exists():
    assert not [name for name in CHECKED if f"pairlens.{name}" not in modules()]
