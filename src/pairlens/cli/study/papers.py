"""`pairlens study NAME` for the studies of both papers, and `pairlens study all`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli import options
from pairlens.cli.help import Command, examples
from pairlens.cli.options import both_columns
from pairlens.cli.session import session, tell
from pairlens.errors import InputError, PairlensError
from pairlens.study.catalogue import CATALOGUE

if TYPE_CHECKING:
    from pairlens.io import PairRow, PairTable
    from pairlens.study.language.annotations import Annotations
    from pairlens.study.materials import Materials
    from pairlens.study.result import Result

ON_GPU = 256
"""The number of pairs that are explained together on a GPU."""
Given = dict[str, Any]
Option = tuple[Any, Any]
"""The annotation of an option, and its default."""


def _option(kind: Any, *names: str, default: Any = None, panel: str | None = None, **more: Any) -> Option:
    return Annotated[kind, typer.Option(*names, rich_help_panel=panel, show_default=False, **more)], default


REQUIRED = inspect.Parameter.empty
DATA = "Pairs of texts: .csv, .tsv, .jsonl, .parquet, or a hub dataset owner/name."
COMMON: dict[str, Option] = {
    "data": _option(Path, "--data", "-d", default=REQUIRED, help=DATA),
    "out": _option(Path, "--out", "-o", default=REQUIRED, help="The results go to the folder OUT/NAME."),
    "model": (options.Model, None),
    "device": (options.Device, None),
    "dtype": (options.Dtype, "float32"),
    "measure": (options.Measure, None),
    "column_a": _option(str | None, help="The column of text a."),
    "column_b": _option(str | None, help="The column of text b."),
    "column_score": _option(str | None, help="The column of the scores that people gave."),
    "split": _option(str, default="test", help="The split of a hub dataset. By default test."),
    "limit": _option(int, default=300, min=1, help="How many pairs, drawn at random. By default 300."),
    "seed": _option(int, default=0, min=0, help="The seed of everything that is random. By default 0."),
}
"""The options of every study, with their defaults."""
_how, _with = partial(_option, panel="How to explain"), partial(_option, panel="What it needs besides")
METHOD = (
    "banzhaf, shapley, fade, integrated-jacobian, occlusion or output. By default the library's default, banzhaf, and "
    "beside it the papers' settings: integrated-jacobian three quarters up the layers, reference terms ignored."
)
SWEEP = "How many of the pairs are explained at every layer. By default 40, and 5 for convergence."
WORDS = "A word is the sum of its tokens, or their mean as in the paper. By default sum."
SPECIFIC: dict[str, Option] = {
    "method": _how(str | None, help=METHOD),
    "layer": _how(str | None, help="Layers of integrated-jacobian, with commas between; -1 is the last."),
    "reference_terms": _how(str | None, help="keep, project, shift or ignore."),
    "tol": _how(float, default=1e-3, help="The largest relative gap of a text. By default 0.001."),
    "sweep": _how(int | None, min=1, help=SWEEP),
    "points": _how(int, default=512, min=2, help="The most equal steps of an integral. By default 512."),
    "words": _how(str, default="sum", help=WORDS),
    "pair": _how(int | None, min=1, help="The pair to show, by its row in the data. By default the study chooses one."),
    "annotations": _with(Path | None, help="A CoNLL-U file; see pairlens annotate."),
    "spacy": _with(str | None, help="A spaCy pipeline to annotate the texts with."),
    "wordnet": _with(Path | None, help="WordNet's folder. By default where it usually is."),
    "adjectives": _with(Path | None, help="Lines of two adjectives and 1 for antonyms or 0 for synonyms."),
    "other": _with(list[str] | None, help="A further model to compare. Repeatable."),
    "adjusted": _with(str | None, help="A model that pairlens adjust has adjusted."),
    "twin": _with(str | None, help="Its twin, which is not adjusted."),
}
"""The options of some studies, with their defaults."""


def register(app: typer.Typer) -> None:
    """Add the studies of both papers to a command, each with its own options."""
    for about in CATALOGUE.values():
        source = f"After {about.paper.split(' (')[0]}, {about.where}."
        help_text = "\n\n".join((about.does, source, _examples(about.name, about.options)))
        app.command(about.name, cls=Command, help=help_text)(_command([about.name], about.options))
    about_all = (
        "All twelve studies of both papers, and one report of them.",
        "Studies that lack what they need are skipped.",
    )
    help_text = "\n\n".join((*about_all, _examples("all", SPECIFIC)))
    app.command("all", cls=Command, help=help_text)(_command(list(CATALOGUE), SPECIFIC))


def _examples(name: str, specific: Collection[str]) -> str:
    """Two commands that run the study: with its defaults, and with what it can use besides."""
    besides = {"adjectives": "--adjectives adjectives.txt", "spacy": "--spacy en_core_web_sm", "pair": "--pair 2"}
    more = next((given for option, given in besides.items() if option in specific), "--limit 20")
    line = f"pairlens study {name} -d pairs.csv -o out"
    return examples(line, f"{line} {more}")


def _command(names: list[str], specific: Collection[str]) -> Callable[..., None]:
    """A function that runs studies, with the common and these specific options in its signature."""
    taken = COMMON | {name: option for name, option in SPECIFIC.items() if name in specific}
    defaults = {name: default for name, (_, default) in SPECIFIC.items()}

    @session()
    def command(**given: Any) -> None:
        _run(names, defaults | given)

    keyword_only = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    command.__signature__ = inspect.Signature(
        [keyword_only(name, default=default, annotation=kind) for name, (kind, default) in taken.items()]
    )
    command.__annotations__ = {name: kind for name, (kind, _) in taken.items()}
    return command


def _run(names: list[str], given: Given) -> None:
    """Run studies one after the other; they share an archive of explanations."""
    from pairlens import study
    from pairlens.io import make_folder, require_pyarrow
    from pairlens.study import files, report
    from pairlens.study.archive import remove_unfinished

    files.require_matplotlib()  # before the work, not when the results are saved
    require_pyarrow()
    materials = _materials(given, names)
    wrong = 0
    for place, name in enumerate(names, 1):
        if len(names) > 1:
            tell(f"study {place} of {len(names)}: {name}")
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
    options.tell_columns(source)
    if len(usable) < len(rows):
        tell(f"{len(rows) - len(usable)} of {len(rows)} rows hold no pair that can be used, and are left out")
    order = np.random.default_rng(seed).permutation(len(usable))[:limit]
    return [usable[place] for place in order]


def _materials(given: Given, names: list[str]) -> Materials:
    """The materials that the options describe, loaded and checked."""
    from pairlens.io import PairTable
    from pairlens.study.archive import Archive
    from pairlens.study.materials import CHUNK, Materials
    from pairlens.study.papers.adjectives import read_adjectives
    from pairlens.study.views import Choice

    columns = both_columns(given["column_a"], given["column_b"])
    source = PairTable(given["data"], columns, given["column_score"], given["split"])
    rows = sample_pairs(source, given["limit"], given["seed"])
    layers = split_numbers("--layer", given["layer"], strict=True)
    adjectives = [] if given["adjectives"] is None else read_adjectives(given["adjectives"])
    load = partial(options.load_lens, device=given["device"], dtype=given["dtype"])
    return Materials(
        load(given["model"]),
        rows,
        choice=Choice(given["method"], tuple(layers) if layers else None, given["reference_terms"]),
        **{name: given[name] for name in ("sweep", "measure", "tol", "seed", "words", "points", "pair")},
        annotations=_annotations(given, rows),
        wordnet=_wordnet(given, names),
        adjectives=adjectives,
        others=[load(name) for name in given["other"] or ()],
        adjusted=None if given["adjusted"] is None else load(given["adjusted"]),
        twin=None if given["twin"] is None else load(given["twin"]),
        archive=Archive(given["out"] / "explanations"),
        together=ON_GPU if (given["device"] or "").startswith("cuda") else CHUNK,
        data=str(source.path),
    )


def _annotations(given: Given, rows: Sequence[PairRow]) -> Annotations | None:
    """The annotations of a file, or those of a spaCy pipeline, which are written to OUT."""
    path, pipeline = given["annotations"], given["spacy"]
    if path is None and pipeline is None:
        return None
    from pairlens.study.language import parsing
    from pairlens.study.language.annotations import Annotations

    if path is None:
        path = given["out"] / "annotations.conllu"
        texts = list(dict.fromkeys(text for row in rows for text in (row.a, row.b)))
        parsing.write(path, texts, parsing.load(pipeline))
    elif pipeline is not None:
        raise InputError("--annotations and --spacy say the same thing twice: give one of them.")
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


def split_names(given: str | None) -> list[str] | None:
    """The names in an option with commas."""
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def split_numbers(option: str, given: str | None, *, strict: bool = False) -> list[int] | None:
    """The whole numbers in an option with commas; `strict` refuses empty parts, which are skipped otherwise."""
    if given is None:
        return None
    try:
        return [int(part) for part in given.split(",") if strict or part.strip()]
    except ValueError as error:
        message = f"{option} takes whole numbers with commas between them, such as 0,3,5; not {given!r}."
        raise InputError(message) from error
