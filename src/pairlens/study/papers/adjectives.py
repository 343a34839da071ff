"""How the model judges adjectives of the same, of the opposite and of another meaning in the same sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError
from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.english import FRAMES, PLAIN_FRAMES, TRIPLES
from pairlens.study.language.wordnet import WordNet
from pairlens.study.materials import Materials
from pairlens.study.result import Result, Row, percent, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["adjectives"]
RELATIONS = ("synonym", "antonym", "unrelated")
COLOURS: dict[str, str] = {"synonym": "#0072B2", "antonym": "#D55E00", "unrelated": "#888888"}


@dataclass(frozen=True)
class Case:
    """Two adjectives in one frame."""

    source: str
    relation: str
    one: str
    other: str
    frame: str

    @property
    def texts(self) -> tuple[str, str]:
        """The two sentences."""
        return self.frame.format(adjective=self.one), self.frame.format(adjective=self.other)

    @property
    def start(self) -> int:
        """The adjective's first character."""
        return self.frame.index("{adjective}")


def study(materials: Materials) -> Result:
    """Scores of sentences that differ in one adjective, and the contribution of the pair of adjectives."""
    cases = list(_cases(materials))
    views = materials.choice.standard(materials.lens)
    raw: list[Row] = []
    for view in views:
        for case, e in zip(cases, materials.of_texts(view, [case.texts for case in cases]), strict=True):
            if e is not None:
                own = {"source": case.source, "relation": case.relation, "one": case.one, "other": case.other}
                pair = own_pair(e.at("word"), case.start)
                raw.append({"view": view.label, **own, "frame": case.frame, "score": e.score, "own": pair})
    table = describe(raw)
    told = tell_apart(raw)
    settings = materials.describe(views, len(cases), sources=list(dict.fromkeys(case.source for case in cases)))
    return Result(
        ABOUT,
        table,
        raw,
        figures={"means": table, "told_apart": told},
        sentences=_sentences(table, told),
        settings=settings,
        draw=lambda: draw(raw, settings),
    )


def _cases(materials: Materials) -> Iterator[Case]:
    """The pairs of adjectives: those that pairlens brings, then those of WordNet and of the user, as many as pairs."""
    count = len(materials.pairs)
    random = np.random.default_rng(materials.seed)
    triples = TRIPLES[:count]
    everything = sorted({word for _, *adjectives in TRIPLES for word in adjectives})
    for noun, adjective, synonym, antonym in triples:
        others = [word for word in everything if word not in (adjective, synonym, antonym)]
        unrelated = others[int(random.integers(len(others)))]
        for relation, other in zip(RELATIONS, (synonym, antonym, unrelated), strict=True):
            for frame in FRAMES:
                yield Case("pairlens", relation, adjective, other, frame.replace("{noun}", noun))
    found = (
        [("WordNet", *pair) for pair in from_wordnet(materials.wordnet, min(count, 60))] if materials.wordnet else []
    )
    given = list(materials.adjectives)
    chosen = sorted(random.permutation(len(given))[:count])
    found += [("file", *given[i]) for i in chosen]
    for source, one, other, relation in found:
        for frame in PLAIN_FRAMES:
            yield Case(source, relation, one, other, frame)


def from_wordnet(wordnet: WordNet, count: int) -> Iterator[tuple[str, str, str]]:
    """Common adjectives whose most frequent meaning has both a synonym and an antonym, with each of them."""
    for adjective in wordnet.common("adj"):
        if count == 0:
            return
        opposite = [word for word in wordnet.antonyms(adjective, senses=1) if word.isalpha()]
        members = [word.lower() for word in wordnet.members(*wordnet.senses(adjective, "adj")[0])]
        same = [word for word in members if word.isalpha() and word != adjective]
        if opposite and same and adjective.isalpha():
            count -= 1
            yield adjective, same[0], "synonym"
            yield adjective, opposite[0], "antonym"


def read_adjectives(path: Path) -> list[tuple[str, str, str]]:
    """Pairs of adjectives from a file of lines `word word label`, where 1 is antonyms and 0 synonyms."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) != 3 or parts[2] not in ("0", "1"):
            raise InputError(f"{path}, line {number}: expected two words and 0 or 1 for antonyms, not {line!r:.60}.")
        found.append((parts[0], parts[1], RELATIONS[int(parts[2])]))
    return found


def own_pair(e: Explanation, start: int) -> float:
    """The contribution of the two words that begin at a character."""
    i, j = (
        next(place for place, unit in enumerate(units) if unit.kind == "text" and unit.start == start)
        for units in (e.units_a, e.units_b)
    )
    return float(e.matrix[i, j])


def describe(raw: Sequence[Row]) -> list[Row]:
    """One row for every view, source and relation: means and standard deviations."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in raw:
        groups.setdefault((row["view"], row["source"], row["relation"]), []).append(row)
    table = []
    for (view, source, relation), rows in groups.items():
        numbers: Row = {"view": view, "source": source, "relation": relation, "pairs": len(rows)}
        for name in ("score", "own"):
            values = np.array([row[name] for row in rows])
            numbers |= {f"{name}_mean": float(values.mean()), f"{name}_sd": float(values.std())}
        table.append({**numbers, "own_negative": float(np.mean([row["own"] < 0 for row in rows]))})
    order = list(dict.fromkeys((row["view"], row["source"]) for row in raw))
    return sorted(table, key=lambda row: (order.index((row["view"], row["source"])), RELATIONS.index(row["relation"])))


def tell_apart(raw: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """How well the score, and the adjectives' own contribution, tell synonyms from antonyms: the area under ROC."""
    found: dict[str, dict[str, Row]] = {}
    for view in dict.fromkeys(row["view"] for row in raw):
        for source in dict.fromkeys(row["source"] for row in raw):
            own = [row for row in raw if row["view"] == view and row["source"] == source]
            areas = {}
            for name in ("score", "own"):
                sides = [np.array([row[name] for row in own if row["relation"] == kind]) for kind in RELATIONS[:2]]
                areas[name] = area(*sides)
            found.setdefault(view, {})[source] = areas
    return found


def area(higher: Array, lower: Array) -> float | None:
    """The share of pairs of values in which the first is higher than the second; ties count half.

    Example:
        >>> area(np.array([3.0, 1.0]), np.array([1.0, 0.0]))
        0.875
    """
    if not len(higher) or not len(lower):
        return None
    differences = higher[:, None] - lower[None, :]
    return float(((differences > 0) + (differences == 0) / 2).mean())


def _sentences(table: Sequence[Row], told: dict[str, dict[str, Row]]) -> list[str]:
    said = []
    for view, sources in told.items():
        for source, areas in sources.items():
            rows = {row["relation"]: row for row in table if row["view"] == view and row["source"] == source}
            means = ", ".join(
                f"{row['score_mean']:.2f} for {relation}s"
                if relation != "unrelated"
                else f"{row['score_mean']:.2f} for others"
                for relation, row in rows.items()
            )
            own = ", ".join(signed(row["own_mean"]) for row in rows.values())
            said.append(
                f"{view}, adjectives from {source}: the mean score is {means}; the pair of adjectives itself "
                f"contributes {own}. A synonym has a higher score than an antonym {_share(areas['score'])} of the "
                f"time, and a higher contribution of its own {_share(areas['own'])}."
            )
    return said


def _share(value: float | None) -> str:
    return "never known" if value is None else percent(value)


def draw(raw: Sequence[Row], settings: Any) -> Figure:
    """The picture: scores and own contributions by relation, for every source of adjectives."""
    first = raw[0]["view"]
    sources = settings["sources"]
    figure, axes = picture.sheet(3.4, 1, 2, width=min(10.5, 4.0 + 3.2 * len(sources)))
    random = np.random.default_rng(0)
    shown = [row for row in raw if row["view"] == first]
    for axis, name in zip(axes[0], ("score", "own"), strict=True):
        x, ticks = 0.0, []
        for source in sources:
            for relation in RELATIONS:
                values = [row[name] for row in shown if (row["source"], row["relation"]) == (source, relation)]
                if values:
                    places = x + random.uniform(-0.22, 0.22, len(values))
                    axis.plot(places, values, ".", color=COLOURS[relation], alpha=0.4, markersize=3.5, rasterized=True)
                    axis.plot([x - 0.32, x + 0.32], [np.mean(values)] * 2, color=picture.INK, linewidth=1.8)
                    ticks.append((x, f"{relation}\n{source}\n(n = {len(values):,})"))
                    x += 1
            x += 0.6
        axis.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
        axis.axhline(0, color="#888888", linewidth=0.8, zorder=0)
        axis.grid(axis="x", visible=False)
    picture.label(axes[0][0], y="score of the two sentences", title="score")
    picture.label(axes[0][1], y="contribution of the two adjectives", title="the adjectives' own pair")
    picture.caption(figure, ABOUT.title, settings, f"explained by {first}; lines are means")
    return figure
