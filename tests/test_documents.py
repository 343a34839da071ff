"""The commands and snippets of README.md and docs/ run as they stand, or say what they need."""

from __future__ import annotations

import ast
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import zoo
from pairlens.cli import app
from snippet_files import extras, requirements, write_data
from snippets import DOCUMENTS, REPOSITORY, SHOWN, Reader, Snippet, check_numbers, snippets, undefined

README = REPOSITORY / "README.md"
SHELL = ("cat", "curl", "echo", "printf")
"""Other programs that documents use."""
FOLLOWED = [path for path in DOCUMENTS if any(part.language in ("bash", "python") for part in snippets(path))]

COMMANDS: Any = typer.main.get_command(app)

by_document = pytest.mark.parametrize("document", FOLLOWED, ids=lambda path: path.name)


def refused(command: str) -> str:
    """Why `pairlens` would refuse the arguments of a command, or ""."""
    program = COMMANDS
    name, *arguments = shlex.split(command, comments=True)
    try:
        while hasattr(program, "commands"):
            name, *arguments = arguments
            program = program.commands[name]
        program.make_context(name, arguments)
    except Exception as error:  # noqa: BLE001  typer's errors have no public root
        return f"{name}: {getattr(error, 'message', error)}"
    return ""


def faults(document: Path) -> list[str]:
    """What is wrong with a document that one can say without running it."""
    parts, found = snippets(document), []
    for part in parts:
        program = part.source.split()[0] if part.source.strip() else ""
        if part.language == "python":
            ast.parse(part.source)
        elif part.language == "bash" and program == "pairlens":
            found += [f"{part.place}: {why}" for why in [refused(part.source)] if why]
        elif part.language == "bash":
            if not (part.installs or part.needs or program in SHELL):
                found.append(f"{part.place}: what is {program}?")
        elif part.language not in SHOWN:
            found.append(f"{part.place}: blocks of {part.language or 'no language'} are not run")
    return found + list(undefined(parts))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """A folder with a random model of six layers, in which everything is fast."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    zoo.encoder("bert", num_hidden_layers=6).save(str(folder))
    return folder


@by_document
def test_first_every_command_exists_and_every_name_is_defined(document, tmp_path, monkeypatch):
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert faults(document) == []


def test_first_a_document_that_cannot_be_followed_is_found(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "```bash\npairlens explain a b --levels word\npairlens explain a b  # needs luck\nfrobnicate\n```\n"
        "```python\nlens.explain(a, 'b')\n```\n```ruby\nputs 1\n```\n",
        encoding="utf-8",
    )
    option, program, ruby, *names = faults(path)
    assert option.startswith("page.md:2: explain: No such option")
    assert program == "page.md:4: what is frobnicate?"
    assert ruby == "page.md:10: blocks of ruby are not run"
    assert names == ["page.md:7: a", "page.md:7: lens"]
    assert [part.needs for part in snippets(path)] == ["", "luck", "", "", ""]
    with pytest.raises(AssertionError, match=r"says 0\.12"):
        check_numbers([0.5, 0.1444], "0.12 and 0.14")
    with pytest.raises(AssertionError, match="not in the output"):
        Reader(tmp_path).follow(Snippet("page.md:1", "python", "1 + 1", output="3\n"))


def test_first_the_extras_that_documents_install_exist():
    known = set(metadata.metadata("pairlens").get_all("Provides-Extra") or [])
    assert [path.name for path in DOCUMENTS if not extras(path) <= known] == []


def test_first_the_first_line_to_install_is_enough_for_the_first_command(minilm, tmp_path, monkeypatch):
    install, first = [part.source for part in snippets(README) if part.language == "bash"][1:3]
    assert install.startswith("pip install")
    assert first.startswith("pairlens")
    (tmp_path / "page.md").write_text(f"```bash\n{install}\n```\n", encoding="utf-8")
    installed = requirements(f"pairlens[{','.join(extras(tmp_path / 'page.md'))}]")
    assert "matplotlib" not in requirements("pairlens[offline]")
    for name in {"fastapi", "lancedb", "matplotlib", "pandas", "pyarrow", "ray", "spacy"} - installed:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("pairlens.cli.options.Request.load", lambda request: minilm)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(first)[1:], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"page.md", "why.html", "why.pdf"}


def test_first_the_numbers_of_the_readme_are_right(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr("pairlens.Lens", lambda: minilm)
    monkeypatch.chdir(tmp_path)
    first = next(part for part in snippets(README) if part.language == "python")
    Reader(tmp_path).follow(first)
    assert (tmp_path / "why.html").is_file()


@pytest.mark.parametrize("name", ["README", "guide"])
def test_first_python_runs(name, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("pairlens.model.loading.offline_model", lambda: tiny)
    monkeypatch.setattr("pairlens.model.loading.check_offline", lambda folder: None)
    monkeypatch.setattr("snippets.check_numbers", lambda value, comment: None)  # those of another model
    monkeypatch.chdir(tmp_path)
    [document] = [path for path in DOCUMENTS if path.stem == name]
    reader = Reader(tmp_path)
    for part in snippets(document):
        if part.language == "python" and not part.needs:
            reader.run_python(part.source)


@pytest.mark.slow
@by_document
def test_first_a_reader_can_follow_the_document(document, capfd):
    with capfd.disabled():
        print(f"\n{document.name}", flush=True)
        done = subprocess.run([sys.executable, REPOSITORY / "tests" / "snippets.py", document], check=False)
    assert done.returncode == 0
