"""Whether the model sees negation: what a cue contributes, and what becomes of the score without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pairlens.io import PairRow
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.english import FUNCTION, NEGATING, PADDING, SLOTS, is_cue, without_cue
from pairlens.study.materials import Materials, unit_at
from pairlens.study.result import Result, percent, signed
from pairlens.study.statistics import Record, distinct, group_by, mean_of, where
from pairlens.study.views import View
from pairlens.text import words

ABOUT = CATALOGUE["negation"]
NAMES = {"cue": "negation cue", "function": "other function word", "content": "content word"}
KINDS = tuple(NAMES)
NEGATED = ("none", "one_text", "both_texts")


def study(materials: Materials) -> Result:
    """Negation cues against other words: in pairs of the data with a cue, and in sentences that differ by one word."""
    views = materials.choice.standard(materials.lens)
    negated = [row for row in materials.rows if cues(row.a) or cues(row.b)]
    falls = _deletions(materials, negated)
    slots = SLOTS[: len(materials.pairs)]
    raw: list[Record] = []
    for view in views:
        raw += [{"part": "data", "view": view.label, **row} for row in _of_data(materials, view, negated, falls)]
        raw += [{"part": "sentences", "view": view.label, **row} for row in _of_sentences(materials, view, slots)]
    table = describe(raw)
    labelled = against_labels(materials)
    settings = materials.describe(views, len(negated), sentences=len(slots), pairs_searched=len(materials.rows))
    figures = {"words": table, "labels": labelled}
    sentences = _sentences(table, labelled, len(negated), len(slots))
    return Result(ABOUT, settings, table, raw, figures, sentences, partial(draw, raw, views[0].label))


def cues(text: str) -> list[tuple[int, int]]:
    """The spans of the words of a text that negate.

    Example:
        >>> cues("It isn't cold, no.")
        [(3, 8), (15, 17)]
    """
    return [(start, end) for start, end in words(text) if is_cue(text[start:end])]


def kind_of(word: str) -> str | None:
    """The kind of a word: cue, function or content; None for punctuation."""
    if is_cue(word):
        return "cue"
    if word.lower() in FUNCTION:
        return "function"
    return "content" if any(char.isalnum() for char in word) else None


def shortened(text: str, start: int, end: int) -> str:
    """The text without one word; of a contraction only the negation is deleted.

    Example:
        >>> shortened("It isn't cold.", 3, 8), shortened("It is not cold.", 6, 9)
        ('It is cold.', 'It is cold.')
    """
    return " ".join((text[:start] + without_cue(text[start:end]) + text[end:]).split())


def _deletions(materials: Materials, rows: Sequence[PairRow]) -> dict[tuple[int, str, int], float]:
    """The fall of the score when one word is deleted, by pair, side and the word's first character."""
    asked: dict[tuple[int, str, int], tuple[str, str]] = {}
    for row in rows:
        for side, text in (("a", row.a), ("b", row.b)):
            for start, end in words(text):
                short = shortened(text, start, end)
                if kind_of(text[start:end]) and short:
                    asked[row.number, side, start] = (short, row.b) if side == "a" else (row.a, short)
    if not asked:
        return {}
    whole = dict(zip((row.number for row in rows), materials.score([(row.a, row.b) for row in rows]), strict=True))
    scores = materials.score(list(asked.values()))
    return {key: float(whole[key[0]] - value) for key, value in zip(asked, scores, strict=True) if np.isfinite(value)}


def _of_data(
    materials: Materials, view: View, rows: Sequence[PairRow], falls: dict[tuple[int, str, int], float]
) -> Iterator[Record]:
    """Every word of the pairs with a cue: its contribution, and the fall of the score without it."""
    for row, e in materials.explain(view, rows):
        e = e.at("word")
        for side, units, values in (("a", e.units_a, e.row + e.effects_a), ("b", e.units_b, e.column + e.effects_b)):
            for unit, value in zip(units, values, strict=True):
                kind = kind_of(unit.text) if unit.kind == "text" else None
                fall = falls.get((row.number, side, unit.start))
                if kind is not None and fall is not None:
                    word = {"pair": row.number, "kind": kind, "word": unit.text, "score": e.score}
                    yield {**word, "own": float(value), "moved": fall}


def _of_sentences(materials: Materials, view: View, slots: Sequence[str]) -> Iterator[Record]:
    """Sentences beside themselves with one word more: a negation, or a word that changes little."""
    asked = [(slot, word) for slot in slots for word in (*NEGATING, *PADDING)]
    plain = [" ".join(slot.format("").split()) for slot, _ in asked]
    longer = [slot.format(word) for slot, word in asked]
    alone = materials.score([(text, text) for text in plain])
    for number, e in enumerate(materials.of_texts(view, zip(plain, longer, strict=True))):
        if e is not None:
            slot, word = asked[number]
            e = e.at("word")
            place = unit_at(e.units_b, slot.index("{"))
            value, fall = e.column[place] + e.effects_b[place], alone[number] - e.score
            kind = "cue" if word in NEGATING else "function"
            record = {"pair": number + 1, "kind": kind, "word": word, "score": e.score}
            yield {**record, "own": float(value), "moved": float(fall)}


def describe(raw: Sequence[Record]) -> list[Record]:
    """One row for every part, view and kind of word: means, with and without signs."""
    table = []
    for (part, view, kind), rows in group_by(raw, "part", "view", "kind").items():
        row: Record = {"part": part, "view": view, "kind": kind, "words": len(rows)}
        for name in ("own", "moved"):
            row[f"{name}_mean"] = mean_of(entry[name] for entry in rows)
            row[f"{name}_absolute"] = mean_of(abs(entry[name]) for entry in rows)
        # The score falls by what the word's own pairs take, and by the changes of all others.
        moved = row["moved_mean"]
        row["carried"] = -row["own_mean"] / moved if part == "sentences" and moved else None
        table.append(row)
    views = distinct(raw, "view")
    return sorted(table, key=lambda row: (row["part"], views.index(row["view"]), KINDS.index(row["kind"])))


def against_labels(materials: Materials) -> Record | None:
    """How far scores are above labels, by the number of texts of a pair that hold a cue; None without labels."""
    rows, labels = materials.labelled()
    if not rows:
        return None
    off = materials.score([(row.a, row.b) for row in rows]) - labels
    counts = np.array([bool(cues(row.a)) + bool(cues(row.b)) for row in rows])
    groups = {name: off[(counts == count) & np.isfinite(off)] for count, name in enumerate(NEGATED)}
    return {name: {"pairs": len(values), "off": mean_of(values)} for name, values in groups.items()}


def _sentences(table: Sequence[Record], labelled: Record | None, negated: int, slots: int) -> list[str]:
    sentences = []
    for (view,), rows in group_by(table, "view").items():
        data = {row["kind"]: row for row in where(rows, part="data")}
        if "cue" in data and "function" in data:
            sentences.append(
                f"{view}: in the {negated} pairs of the data that hold a negation, a cue contributes "
                f"{signed(data['cue']['own_mean'])} to the score ({data['cue']['own_absolute']:.3f} without signs), "
                f"another function word {signed(data['function']['own_mean'])} "
                f"({data['function']['own_absolute']:.3f})."
            )
        cue, other = where(rows, part="sentences")
        carried = cue["carried"]
        of_it = "" if carried is None else f", so that the negation's own carry {percent(carried)} of its fall"
        sentences.append(
            f"{view}: in {slots} sentences, a negation lowers the score with the plain sentence by "
            f"{cue['moved_mean']:.3f}, and “also”, “still” or “now” by {other['moved_mean']:.3f}; the word's own pairs "
            f"are {signed(cue['own_mean'])} and {signed(other['own_mean'])}{of_it}."
        )
    data = {row["kind"]: row for row in where(table, part="data")}
    if "cue" in data and "function" in data:
        content = f", a content word by {data['content']['moved_absolute']:.3f}" if "content" in data else ""
        sentences.append(
            f"Really deleting a cue moves the score by {data['cue']['moved_absolute']:.3f} on average, another "
            f"function word by {data['function']['moved_absolute']:.3f}{content}."
        )
    elif not negated:
        sentences.append("No pair of the data holds a negation.")
    if labelled is not None and labelled["one_text"]["off"] is not None and labelled["none"]["off"] is not None:
        one, none = labelled["one_text"], labelled["none"]
        sentences.append(
            f"Where one of the two texts is negated ({one['pairs']} of the pairs), scores are {signed(one['off'], 2)} "
            f"away from the labels on average; without negation ({none['pairs']}) {signed(none['off'], 2)}."
        )
    return sentences


def draw(raw: Sequence[Record], view: str, settings: Any) -> picture.Figure:
    """The picture: contributions and real deletions in the data, and the sentences that differ by one word."""
    figure, axes = picture.sheet(3.4, 1, 3, width=10.0)
    data, sentences = (where(raw, part=part, view=view) for part in ("data", "sentences"))
    where_negated = f"in the {settings['pairs']} pairs that hold a cue"
    _boxes(axes[0][0], data, "own", "kind", KINDS, NAMES)
    picture.label(axes[0][0], y="contribution of the word, all its pairs", title=f"contribution {where_negated}")
    _boxes(axes[0][1], data, "moved", "kind", KINDS, NAMES)
    picture.label(axes[0][1], y="fall of the score when the word is deleted", title=f"deletion {where_negated}")
    _boxes(axes[0][2], sentences, "moved", "word", (*NEGATING, *PADDING), {})
    picture.label(axes[0][2], y="fall of the score", title=f"one word more, in {settings['sentences']} sentences")
    picture.legend(axes[0][2], loc="upper right")
    of = f"of {settings['pairs_searched']:,} that were searched"
    picture.caption(figure, ABOUT.title, settings, f"{of}; explained by {view}")
    return figure


def _boxes(axis: Any, rows: Sequence[Record], value: str, by: str, order: Sequence[str], names: dict[str, str]) -> None:
    """Draw a box for every group, with its mean and its size."""
    groups = {name: [row[value] for row in where(rows, **{by: name})] for name in order}
    shown = {name: values for name, values in groups.items() if values}
    if not shown:
        axis.text(0.5, 0.5, "no pair holds a negation", ha="center", transform=axis.transAxes, fontsize=picture.SIZE)
        return
    style: Any = {"patch_artist": True, "showfliers": False, "medianprops": {"color": picture.INK}}
    drawn = axis.boxplot(list(shown.values()), widths=0.55, **style)
    for box, name in zip(drawn["boxes"], shown, strict=True):
        box.set(facecolor="#f3c9a8" if name == "cue" or name in NEGATING else "#bcd3ea", edgecolor="#777777")
    for line in [*drawn["whiskers"], *drawn["caps"]]:
        line.set(color="#777777", linewidth=0.8)
    places, means = range(1, len(shown) + 1), list(map(np.mean, shown.values()))
    axis.plot(places, means, "D", color=picture.INK, markersize=3.5, linestyle="none", label="mean")
    labels = [f"{names.get(name, name).replace(' ', chr(10))}\n(n = {len(values):,})" for name, values in shown.items()]
    axis.set_xticks(places, labels)
    picture.guide(axis)
    axis.grid(axis="x", visible=False)
