"""Many texts or pairs as they come: read a window ahead, decompose its distinct texts together, explain its pairs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from tqdm.auto import tqdm

from pairlens.attribution import similarity
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.decomposer import Decomposer, Job
from pairlens.attribution.explanation import Explanation
from pairlens.attribution.options import Options
from pairlens.attribution.zoom import strongest_sentences
from pairlens.errors import InputError, PairlensError, whole
from pairlens.progress import share

FEW = 8
"""Up to this many pairs, a warning about a large base gives the numbers of each pair; more would hide other output."""
SENTENCES = 0.3
"""The share of sentences in the work of zooming, for reports of progress."""

Roles = tuple[str | None, str | None]


def stream_contributions(
    decomposer: Decomposer, texts: Iterable[str], role: str | None, options: Options, window: int, progress: bool
) -> Iterator[Contributions]:
    """The contributions of texts, in order, with the options for first texts."""
    level, prompt = options.levels[0], options.prompts[0]

    def job(text: Any) -> Job:
        check_given("the text", text)
        return decomposer.job(text, role, level, prompt)

    for _, jobs in windows(texts, window, progress, "texts", job, "texts[{}]"):
        done = decomposer.decompose(jobs)
        yield from (done[job] for job in jobs)


def stream_explanations(
    decomposer: Decomposer,
    pairs: Iterable[Any],
    roles: Roles,
    options: Options,
    window: int = 1,
    progress: bool = False,
    *,
    where: str = "",
) -> Iterator[Explanation]:
    """The explanations of pairs of texts, in order; each distinct text is decomposed once.

    If something is wrong with a pair, all pairs before it come first. The error says which pair it is in the words of
    `where`, such as "pairs[{}]"; by default it does not.
    """
    pairs = pairs_of(pairs)
    many = not isinstance(pairs, Sequence) or len(pairs) > FEW
    jobs: dict[tuple[int, str], Job] = {}

    def job(side: int, text: str) -> Job:
        if (side, text) not in jobs:
            jobs[side, text] = decomposer.job(text, roles[side], options.levels[side], options.prompts[side])
        return jobs[side, text]

    def explained(firsts: Sequence[Contributions], seconds: Sequence[Contributions]) -> Iterator[Explanation]:
        return similarity.explain_all(firsts, seconds, many=many, **options.treatment)

    def decompose(batch: Sequence[Sequence[str]]) -> list[list[Contributions]]:
        """The contributions of the first and of the second texts, with the words of sentences where they zoom."""
        sides = [[job(side, pair[side]) for pair in batch] for side in (0, 1)]
        zooming = [any(job.zooms for job in side) for side in sides]
        with share(0, SENTENCES if any(zooming) else 1):
            done = decomposer.decompose([*sides[0], *sides[1]])
        contributions = [[done[job] for job in side] for side in sides]
        if any(zooming):
            chosen = [[strongest_sentences(e, side) for side in ("a", "b")] for e in explained(*contributions)]
            middle = SENTENCES + (1 - SENTENCES) * zooming[0] / sum(zooming)
            for side, (start, end) in enumerate([(SENTENCES, middle), (middle, 1)]):
                with share(start, end):
                    sentences = [both[side] for both in chosen]
                    contributions[side] = decomposer.open_sentences(sides[side], contributions[side], sentences)
        return contributions

    def explain(start: int, batch: Sequence[Sequence[str]]) -> Iterator[Explanation]:
        try:
            firsts, seconds = decompose(batch)
        except Exception as error:
            if len(batch) == 1:
                _say_where(error, where.format(start))
                raise
            # Halves find the pair that is wrong; those before it come first, and the cache holds what is done.
            half = len(batch) // 2
            yield from explain(start, batch[:half])
            yield from explain(start + half, batch[half:])
            return
        yield from explained(firsts, seconds)

    for start, batch in windows(pairs, window, progress, "pairs", texts_of, where):
        jobs.clear()
        yield from explain(start, batch)


def windows(
    items: Iterable[Any], size: int, progress: bool, noun: str, read: Callable[[Any], Any], where: str
) -> Iterator[tuple[int, list[Any]]]:
    """Items, as `read` reads them, in lists of at most `size`, each with the number of its first item.

    What came before an error comes first, and the error of `read` says which item it is in the words of `where`.

    With `progress`, a bar is shown on a terminal.
    """
    size = whole("window", size, 1)
    total = len(items) if isinstance(items, Sequence) else None
    left, done = iter(items), 0
    # disable=None: the bar is shown only where standard error is a terminal.
    shown = tqdm(total=total, unit=f" {noun}", disable=None) if progress else contextlib.nullcontext()
    with shown as bar:
        while True:
            window: list[Any] = []
            try:
                for item in itertools.islice(left, size):
                    window.append(_read(item, read, where.format(done + len(window))))
            except Exception:
                if window:
                    yield done, window
                raise
            if not window:
                return
            yield done, window
            done += len(window)
            if bar is not None:
                bar.update(len(window))


def pairs_of(given: Any) -> Iterable[Any]:
    """The pairs of what a user gave: any iterable of pairs, or a table whose two columns are the texts."""
    names = _columns(given)
    if names and len(names) != 2:
        raise InputError(
            f"a table of pairs has two columns, the texts, and this one has {len(names)}: "
            f"{', '.join(names)}. Choose two: zip(table[{names[0]!r}], table[…])."
        )
    if isinstance(given, str) or (not isinstance(given, Iterable) and not names):
        raise InputError(f"explain_many takes pairs of texts, such as [(a, b), …], and got {given!r:.60}.")
    return _rows(given) if names else given


def texts_in(given: Any) -> Iterable[str]:
    """The texts of what a user gave: any iterable of texts, but neither one text nor a table."""
    if isinstance(given, str):
        raise InputError("decompose takes several texts; for one, write decompose([text]).")
    if names := _columns(given):
        raise InputError(f"decompose takes texts, and got a table. Choose a column: table[{names[0]!r}].")
    if not isinstance(given, Iterable):
        raise InputError(f"decompose takes texts, such as [text, …], and got {given!r:.60}.")
    return given


def _columns(given: Any) -> list[str]:
    """The names of the columns, if this is a table of pandas, polars, PyArrow or datasets."""
    names = getattr(given, "column_names", None)  # first: the `columns` of PyArrow are arrays
    names = getattr(given, "columns", ()) if names is None else names
    return list(map(str, names))


def _rows(table: Any) -> Iterable[Any]:
    """The rows of a table; where they are dictionaries, `texts_of` takes their values."""
    if hasattr(table, "itertuples"):  # pandas
        return list(table.itertuples(index=False, name=None))
    if hasattr(table, "iter_rows"):  # polars
        return list(table.iter_rows())
    return table.to_pylist() if hasattr(table, "to_pylist") else table  # PyArrow, else datasets


def both_roles(roles: Any) -> Roles:
    """The two roles that a user gave, checked."""
    if not isinstance(roles, Sequence) or isinstance(roles, str) or len(roles) != 2:
        raise InputError(f"roles has two entries, one for each text, not {roles!r}.")
    first, second = roles
    return first, second


def _read(item: Any, read: Callable[[Any], Any], place: str) -> Any:
    """What `read` returns for an item; its error says which item it is."""
    try:
        return read(item)
    except InputError as error:
        _say_where(error, place)
        raise


def _say_where(error: Exception, place: str) -> None:
    """Name the item of a list in its error, if it has a name."""
    if not place:
        return
    if isinstance(error, PairlensError) and error.args:
        error.args = (f"{place}: {error.args[0]}", *error.args[1:])
    else:
        error.add_note(f"This was {place}.")


def check_given(name: str, text: Any) -> None:
    """Raise unless this is a text that is not blank; `name` says which one it is."""
    if not isinstance(text, str):
        several = isinstance(text, Iterable) and not isinstance(text, bytes)
        hint = " For several pairs use explain_many, for example explain_many(zip(a, b))." if several else ""
        raise InputError(f"{name} should be a text, and is {type(text).__name__}: {text!r:.60}.{hint}")
    if not text.strip():
        raise InputError(f"{name} is empty ({text!r}); there is nothing to explain in it.")


def texts_of(pair: Any) -> Sequence[str]:
    """The two texts of what a user gave as a pair, checked."""
    texts = list(pair.values()) if isinstance(pair, Mapping) else pair
    if not isinstance(texts, tuple | list):
        texts = [] if isinstance(pair, str | Set) or not isinstance(pair, Iterable) else list(pair)
    if len(texts) != 2:
        raise InputError(f"expected a pair of texts, and got {pair!r:.60}.")
    for side, text in zip("ab", texts, strict=True):
        check_given(f"text {side}", text)
    return texts
