"""`pairlens study NAME` for the studies of both papers, and `pairlens study all`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli import options
from pairlens.cli.adjust import both_columns
from pairlens.cli.session import session, tell
from pairlens.errors import InputError, PairlensError
from pairlens.study.catalogue import CATALOGUE

if TYPE_CHECKING:
    from pairlens.io.pairs import PairRow, PairTable
    from pairlens.study.language.annotations import Annotations
    from pairlens.study.materials import Materials
    from pairlens.study.result import Result

HOW, WITH = "How to explain", "What it needs besides"
ON_GPU = 256
"""The number of pairs that are explained together on a GPU."""
Given = dict[str, Any]


def _option(kind: Any, *names: str, panel: str | None = None, **more: Any) -> Any:
    return Annotated[kind, typer.Option(*names, rich_help_panel=panel, show_default=False, **more)]


COMMON: dict[str, tuple[Any, Any]] = {
    "data": (
        _option(
            Path, "--data", "-d", help="Pairs of texts: .csv, .tsv, .jsonl, .parquet, or a hub dataset owner/name."
        ),
        inspect.Parameter.empty,
    ),
    "out": (_option(Path, "--out", "-o", help="Results go to OUT/NAME."), inspect.Parameter.empty),
    "model": (options.Model, None),
    "device": (options.Device, None),
    "dtype": (options.Dtype, "float32"),
    "measure": (options.Measure, None),
    "column_a": (_option(str | None, help="The column of text a."), None),
    "column_b": (_option(str | None, help="The column of text b."), None),
    "column_score": (_option(str | None, help="The column of what people say."), None),
    "split": (_option(str, help="Of a hub dataset. By default test."), "test"),
    "limit": (_option(int, min=1, help="How many pairs, drawn at random. By default 300."), 300),
    "seed": (_option(int, min=0, help="Of everything that is drawn. By default 0."), 0),
}
"""The options of every study, with their defaults."""
SPECIFIC: dict[str, tuple[Any, Any]] = {
    "method": (
        _option(
            str | None,
            panel=HOW,
            help="shapley, fade, integrated-jacobian, occlusion or output. By default shapley, and beside it the "
            "papers' settings: integrated-jacobian three quarters up the layers, reference terms ignored.",
        ),
        None,
    ),
    "layer": (
        _option(str | None, panel=HOW, help="Layers of integrated-jacobian, with commas between; -1 is the last."),
        None,
    ),
    "reference_terms": (_option(str | None, panel=HOW, help="project, shift, keep or ignore."), None),
    "tol": (_option(float, panel=HOW, help="The largest relative gap of a text. By default 0.001."), 1e-3),
    "sweep": (
        _option(
            int | None,
            min=1,
            panel=HOW,
            help="How many of the pairs are explained at every layer. By default 40, and 5 for convergence.",
        ),
        None,
    ),
    "points": (
        _option(int, min=2, panel=HOW, help="The most equal steps of an integral. By default 512."),
        512,
    ),
    "words": (
        _option(str, panel=HOW, help="A word is the sum of its tokens, or their mean as in the paper. By default sum."),
        "sum",
    ),
    "pair": (_option(int | None, min=1, panel=HOW, help="The number of the pair to show, its row in the data."), None),
    "annotations": (_option(Path | None, panel=WITH, help="A CoNLL-U file; see pairlens annotate."), None),
    "spacy": (_option(str | None, panel=WITH, help="A spaCy pipeline to annotate the texts with."), None),
    "wordnet": (_option(Path | None, panel=WITH, help="WordNet's folder. By default where it usually is."), None),
    "adjectives": (
        _option(Path | None, panel=WITH, help="Lines of two adjectives and 1 for antonyms or 0 for synonyms."),
        None,
    ),
    "other": (_option(list[str] | None, panel=WITH, help="A further model to compare. Repeatable."), None),
    "adjusted": (_option(str | None, panel=WITH, help="A model that pairlens adjust has adjusted."), None),
    "twin": (_option(str | None, panel=WITH, help="Its twin, which is not adjusted."), None),
}
"""The options of some studies, with their defaults."""


def register(app: typer.Typer) -> None:
    """Add the studies of both papers to a command, each with its own options."""
    for about in CATALOGUE.values():
        help_text = f"{about.does}\n\nAfter {about.paper.split(' (')[0]}, {about.where}."
        app.command(about.name, help=help_text)(_command([about.name], about.options))
    help_text = "All twelve studies of both papers, and one report of them."
    app.command("all", help=help_text)(_command(list(CATALOGUE), SPECIFIC))


def _command(names: list[str], specific: Collection[str]) -> Callable[..., None]:
    """A function that runs studies, with the common and these specific options in its signature."""
    taken = {**COMMON, **{name: SPECIFIC[name] for name in SPECIFIC if name in specific}}

    @session()
    def command(**given: Any) -> None:
        _run(names, {**{name: default for name, (_, default) in SPECIFIC.items()}, **given})

    keyword = inspect.Parameter.KEYWORD_ONLY
    command.__signature__ = inspect.Signature(
        [inspect.Parameter(n, keyword, default=default, annotation=kind) for n, (kind, default) in taken.items()]
    )
    command.__annotations__ = {name: kind for name, (kind, _) in taken.items()}
    return command


def _run(names: list[str], given: Given) -> None:
    """Run studies one after the other; they share an archive of explanations."""
    from pairlens import study
    from pairlens.io.files import make_folder, require_pyarrow
    from pairlens.study import files, report
    from pairlens.study.archive import remove_unfinished

    files.require_matplotlib()  # before the work, not when the results are saved
    require_pyarrow()
    materials = _materials(given, names)
    wrong = 0
    for name in names:
        folder = make_folder(given["out"] / name, "--out")
        remove_unfinished(folder)
        try:
            result = study.run(name, materials)
        except KeyboardInterrupt as error:
            tell(f"interrupted in {name}. Give the same command again to go on.")
            raise typer.Exit(130) from error
        except PairlensError as error:
            if len(names) == 1:
                raise
            wrong += 1
            tell(f"{name}: {error}", "error: ", "bold red")
            result = study.skip(name, materials, str(error))
        _show(result, result.save(folder), brief=len(names) > 1)
    if len(names) > 1:
        tell(f"saved {report.write(given['out'], names)}")
    if wrong:
        raise typer.Exit(1)


def _show(result: Result, paths: list[Path], *, brief: bool) -> None:
    if result.skipped:
        tell(f"{result.name} skipped: {result.skipped}", "warning: ", "yellow")
        return
    if brief:
        tell(f"saved {paths[0].parent}")
        return
    for sentence in result.sentences:
        typer.echo(sentence)
    for path in paths:
        tell(f"saved {path}")


def sample_pairs(source: PairTable, limit: int, seed: int) -> list[PairRow]:
    """Up to `limit` pairs drawn at random; a larger limit draws the same pairs first."""
    import numpy as np

    rows = list(source.rows())
    usable = [row for row in rows if not row.reason]
    if not usable:
        raise InputError(f"{source.path} holds no pairs that can be used.")
    if not source.header():
        tell(f"{source.path} has no header that is known: its columns are the two texts and, if there, their scores.")
    if len(usable) < len(rows):
        tell(f"{len(rows) - len(usable)} of {len(rows)} rows hold no pair that can be used, and are left out")
    order = np.random.default_rng(seed).permutation(len(usable))[:limit]
    return [usable[place] for place in order]


def _materials(given: Given, names: list[str]) -> Materials:
    """The materials that the options describe, loaded and checked."""
    from pairlens.io.pairs import PairTable
    from pairlens.study.materials import CHUNK, Materials, open_archive
    from pairlens.study.papers.adjectives import read_adjectives
    from pairlens.study.views import Choice

    columns = both_columns(given["column_a"], given["column_b"])
    source = PairTable(given["data"], columns, given["column_score"], given["split"])
    rows = sample_pairs(source, given["limit"], given["seed"])
    choice = Choice(given["method"], _numbers(given["layer"]), given["reference_terms"])
    adjectives = [] if given["adjectives"] is None else read_adjectives(given["adjectives"])
    load = partial(options.load_lens, device=given["device"], dtype=given["dtype"])
    return Materials(
        load(given["model"]),
        rows,
        choice=choice,
        **{name: given[name] for name in ("sweep", "measure", "tol", "seed", "words", "points", "pair")},
        annotations=_annotations(given, rows),
        wordnet=_wordnet(given, names),
        adjectives=adjectives,
        others=[load(name) for name in given["other"] or ()],
        adjusted=None if given["adjusted"] is None else load(given["adjusted"]),
        twin=None if given["twin"] is None else load(given["twin"]),
        archive=open_archive(given["out"]),
        together=ON_GPU if (given["device"] or "").startswith("cuda") else CHUNK,
        data=str(source.path),
    )


def _annotations(given: Given, rows: Sequence[PairRow]) -> Annotations | None:
    """The annotations of a file, or those of a spaCy pipeline, which are written to OUT."""
    if given["annotations"] is not None and given["spacy"] is not None:
        raise InputError("--annotations and --spacy say the same thing twice: give one of them.")
    if given["annotations"] is None and given["spacy"] is None:
        return None
    from pairlens.study.language.annotations import Annotations

    path = given["annotations"]
    if path is None:
        from pairlens.study.language import parsing

        path = given["out"] / "annotations.conllu"
        texts = list(dict.fromkeys(text for row in rows for text in (row.a, row.b)))
        parsing.write(path, texts, parsing.load(str(given["spacy"])))
    elif not path.is_file():
        raise InputError(f"there is no file {path}.")
    return Annotations.load(path)


def _wordnet(given: Given, names: Sequence[str]) -> Any:
    """WordNet from the folder that the user named, or from the usual places, or None."""
    from pairlens.study.language.wordnet import WordNet, find

    if given["wordnet"] is not None:
        return WordNet(given["wordnet"])
    wanted = any("wordnet" in CATALOGUE[name].options for name in names)
    return WordNet() if wanted and find() is not None else None


def _numbers(given: str | None) -> tuple[int, ...] | None:
    try:
        return None if given is None else tuple(int(part) for part in given.split(","))
    except ValueError as error:
        raise InputError(
            f"--layer takes whole numbers with commas between them, such as 0,3,5; not {given!r}."
        ) from error
