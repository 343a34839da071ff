"""Finds the commands and snippets of a document, and runs them as a reader would: python tests/snippets.py DOCUMENT.

A command or snippet runs as it stands, after those above it. One that cannot run in a test says what it needs in a
comment `# needs …` at the end of its first line; on a line of its own above all others, the comment is about the whole
block. The numbers in the comment behind an expression are those of its value, and a `text` block right below another
block is its output.
"""

from __future__ import annotations

import ast
import builtins
import json
import numbers
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")), REPOSITORY / "docs/tutorial.ipynb"]
INSTALLERS = ("git", "pip", "make", "apt")
"""Commands that set a machine up: they need a network, so they are not run. Blocks run with what they install."""
SHOWN = ("text", "json", "js", "sql", "nginx")
"""Languages of blocks that are there to be read."""


@dataclass(frozen=True)
class Snippet:
    """A block of a document, a command of such a block, or a cell of a notebook.

    Attributes:
        place: the document and the line, or the number of the cell.
        language: "bash", "python", or one of `SHOWN`.
        source: what is in it.
        output: the `text` block right below it, or "".
    """

    place: str
    language: str
    source: str
    output: str = ""

    @property
    def needs(self) -> str:
        """What it needs that a test does not have, as it says itself; else ""."""
        said = re.search(r"# needs (.+)$", self.source.partition("\n")[0])
        return said[1] if said else "a network" if self.installs else ""

    @property
    def installs(self) -> bool:
        """Whether it sets a machine up."""
        return self.language == "bash" and self.source.startswith(INSTALLERS)


def snippets(document: Path) -> list[Snippet]:
    """The commands and snippets of a document, in order; a block of bash is divided into its commands."""
    if document.suffix == ".ipynb":
        cells = json.loads(document.read_text(encoding="utf-8"))["cells"]
        sources = [(n, "".join(cell["source"])) for n, cell in enumerate(cells, 1) if cell["cell_type"] == "code"]
        return [Snippet(f"{document.name} cell {n}", "python", source) for n, source in sources]
    text = document.read_text(encoding="utf-8")
    found: list[Snippet] = []
    for block in re.finditer(r"^```(\w*)\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.DOTALL | re.MULTILINE):
        language, source, output = block[1], block[2], block[3] or ""
        line = text[: block.start()].count("\n") + 2
        divided = language == "bash" and not source.startswith("# needs")
        parts = commands(source) if divided else [(0, source)]
        found += [Snippet(f"{document.name}:{line + n}", language, part) for n, part in parts]
        found[-1:] = [Snippet(last.place, last.language, last.source, output) for last in found[-1:]]
    return found


def commands(source: str) -> list[tuple[int, str]]:
    """The commands of a block of bash, with their lines; one ends where quotes, here documents and backslashes do."""
    found: list[tuple[int, str]] = []
    lines: list[str] = []
    for number, line in enumerate(source.splitlines()):
        lines.append(line)
        text = "\n".join(lines)
        if not _is_complete(text):
            continue
        if line.strip() and not line.startswith("#"):
            found.append((number + 1 - len(lines), text))
        lines = []
    return found


def _is_complete(command: str) -> bool:
    here = re.search(r"<<'(\w+)'", command)
    if here:
        return command.endswith(f"\n{here[1]}")
    try:
        shlex.split(command, comments=True)
    except ValueError:  # a quote is open
        return False
    return not command.endswith("\\")


def undefined(parts: list[Snippet]) -> Iterator[str]:
    """The names that the Python of a document uses and never defines, with their places."""
    known = set(dir(builtins))
    for part in parts:
        if part.language != "python" or part.needs:
            continue
        nodes = list(ast.walk(ast.parse(part.source)))
        for node in nodes:
            if isinstance(node, ast.alias):
                known.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.FunctionDef):
                known.add(node.name)
            elif isinstance(node, ast.arg):
                known.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                known.add(node.id)
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        yield from (f"{part.place}: {name}" for name in sorted(used - known))


@dataclass
class Reader:
    """Somebody who follows a document in an empty folder, in one terminal and one Python.

    Attributes:
        folder: where commands and snippets run.
        environment: of the commands.
        names: what Python has defined so far.
        server: `pairlens serve` in the background, once it is started.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    server: subprocess.Popen[str] | None = None
    _address: str = "localhost:8000"

    def follow(self, part: Snippet) -> None:
        """Run a command or snippet, and compare what it shows with what the document says."""
        shown = self.run_python(part.source) if part.language == "python" else self.run_command(part.source)
        missing = [line for line in part.output.splitlines() if _plain(line) not in _plain(shown)]
        if missing:
            raise AssertionError(f"not in the output: {missing}\n{shown}")

    def run_python(self, source: str) -> str:
        """Run a snippet; return the text of its last expression."""
        value, lines = None, source.splitlines()
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), "snippet", "eval"), self.names)
                check_numbers(value, lines[(statement.end_lineno or 1) - 1].partition("  # ")[2])
            else:
                exec(compile(ast.Module([statement], []), "snippet", "exec"), self.names)
        return repr(value)

    def run_command(self, command: str) -> str:
        """Run a command of the terminal; return what it prints. `pairlens serve` stays in the background."""
        if command.startswith("pairlens serve"):
            return self.serve(shlex.split(command, comments=True))
        command = command.replace("localhost:8000", self._address)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"exit code {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
        return done.stdout + done.stderr

    def serve(self, arguments: list[str]) -> str:
        """Start a server on a free port, in the place of the one before."""
        self.stop()
        self.server = subprocess.Popen(
            [*arguments, "--port", "0", "--no-open"],
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.server.stderr is not None
        first = self.server.stderr.readline()
        address = re.search(r"http://(\S+)", first)
        if address is None:
            raise AssertionError(first + self.server.stderr.read())
        self._address = address[1]
        return first

    def stop(self) -> None:
        """Stop the server."""
        if self.server is not None:
            self.server.terminate()
            self.server.communicate()
            self.server = None


def check_numbers(value: Any, comment: str) -> None:
    """Raise unless every decimal number of a comment is in the value, to within one of its last digit."""
    held = list(_numbers(value))
    for text in re.findall(r"[-+−]?\d+\.(?:\d+)", comment):
        digits = len(text.partition(".")[2])
        if not any(abs(float(text.replace("−", "-")) - number) <= 1.001 * 10**-digits for number in held):
            raise AssertionError(f"the comment says {text}, and the value is {value!r}")


def _numbers(value: Any) -> Iterator[float]:
    """All numbers that a value holds."""
    if isinstance(value, numbers.Real):
        yield float(value)
    elif hasattr(value, "ravel"):
        yield from value.ravel().tolist()
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _numbers(item)
    elif is_dataclass(value) and not hasattr(value, "matrix"):  # a Pair or a Forecast
        yield from _numbers([getattr(value, name) for name in value.__dataclass_fields__])


def _plain(text: str) -> str:
    """Text without line breaks and without the hashes of folders, which differ between machines."""
    return re.sub(r"-[0-9a-f]{12}", "", " ".join(text.split()))


def main(document: Path, folder: Path, environment: dict[str, str]) -> int:
    """Follow a document; print each command and snippet with its time; return how many failed."""
    reader, failed = Reader(folder, environment), 0
    for part in snippets(document):
        first = part.source.strip().partition("\n")[0]
        if part.language not in ("bash", "python"):
            continue
        if part.needs:
            print(f"          {part.place:24} {first}" + f"  (needs {part.needs})" * part.installs, flush=True)
            continue
        start, problem = time.perf_counter(), ""
        try:
            reader.follow(part)
        except Exception as error:  # noqa: BLE001  whatever stops a reader is reported, and the next one tried
            failed, problem = failed + 1, f"\n{type(error).__name__}: {error}"
        print(f"{time.perf_counter() - start:7.1f} s {part.place:24} {first}{problem}", flush=True)
    reader.stop()
    return failed


if __name__ == "__main__":
    from snippet_files import desk

    chosen = Path(sys.argv[1]).resolve()
    with desk(chosen) as (here, variables):
        sys.exit(main(chosen, here, variables))
