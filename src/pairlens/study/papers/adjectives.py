"""How the model judges adjectives of the same, of the opposite and of another meaning in the same sentences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError
from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.english import FRAMES, PLAIN_FRAMES, TRIPLES
from pairlens.study.language.wordnet import WordNet
from pairlens.study.materials import Materials, unit_at
from pairlens.study.result import Result, percent, signed
from pairlens.study.statistics import Record, columns, distinct, group_by, mean_of, means, where

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
    raw: list[Record] = []
    for view in views:
        for case, e in zip(cases, materials.of_texts(view, [case.texts for case in cases]), strict=True):
            if e is not None:
                pair = {"score": e.score, "own": own_pair(e.at("word"), case.start)}
                raw.append({"view": view.label, **vars(case), **pair})
    table = describe(raw)
    areas = tell_apart(raw)
    settings = materials.describe(views, len(cases), sources=list(dict.fromkeys(case.source for case in cases)))
    figures = {"means": table, "told_apart": areas}
    return Result(ABOUT, settings, table, raw, figures, _sentences(table, areas), partial(draw, raw))


def _cases(materials: Materials) -> Iterator[Case]:
    """Pairs of adjectives in frames: built-in ones, then WordNet's and the user's, each at most as many as pairs."""
    count = len(materials.pairs)
    random = np.random.default_rng(materials.seed)
    everything = sorted({word for _, *adjectives in TRIPLES for word in adjectives})
    for noun, adjective, synonym, antonym in TRIPLES[:count]:
        others = [word for word in everything if word not in (adjective, synonym, antonym)]
        unrelated = others[int(random.integers(len(others)))]
        for relation, other in zip(RELATIONS, (synonym, antonym, unrelated), strict=True):
            for frame in FRAMES:
                yield Case("pairlens", relation, adjective, other, frame.replace("{noun}", noun))
    given = materials.adjectives
    further = {
        "WordNet": from_wordnet(materials.wordnet, min(count, 60)) if materials.wordnet else (),
        "file": [given[place] for place in sorted(random.permutation(len(given))[:count])],
    }
    for source, pairs in further.items():
        for one, other, relation in pairs:
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
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    pairs = []
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) != 3 or parts[2] not in ("0", "1"):
            raise InputError(f"{path}, line {number}: expected two words and 0 or 1 for antonyms, not {line!r:.60}.")
        pairs.append((parts[0], parts[1], RELATIONS[int(parts[2])]))
    return pairs


def own_pair(e: Explanation, start: int) -> float:
    """The contribution of the two words that begin at a character."""
    return float(e.matrix[unit_at(e.units_a, start), unit_at(e.units_b, start)])


def describe(raw: Sequence[Record]) -> list[Record]:
    """One row for every view, source and relation: means and standard deviations."""
    table = []
    for (view, source, relation), rows in group_by(raw, "view", "source", "relation").items():
        row: Record = {"view": view, "source": source, "relation": relation, "pairs": len(rows)}
        table.append(row | means(rows, "score", "own") | {"own_negative": mean_of(entry["own"] < 0 for entry in rows)})
    order = list(group_by(raw, "view", "source"))
    return sorted(table, key=lambda row: (order.index((row["view"], row["source"])), RELATIONS.index(row["relation"])))


def tell_apart(raw: Sequence[Record]) -> dict[str, dict[str, Record]]:
    """How well the score, and the adjectives' own contribution, tell synonyms from antonyms: the area under ROC."""
    areas: dict[str, dict[str, Record]] = {}
    for view, source in itertools.product(distinct(raw, "view"), distinct(raw, "source")):
        sides = [where(raw, view=view, source=source, relation=relation) for relation in RELATIONS[:2]]
        areas.setdefault(view, {})[source] = {
            name: area(*(columns(rows, name)[0] for rows in sides)) for name in ("score", "own")
        }
    return areas


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


def _sentences(table: Sequence[Record], areas: dict[str, dict[str, Record]]) -> list[str]:
    sentences = []
    for view, sources in areas.items():
        for source, area_of in sources.items():
            rows = where(table, view=view, source=source)
            plurals = ["others" if row["relation"] == "unrelated" else f"{row['relation']}s" for row in rows]
            scores = ", ".join(f"{row['score_mean']:.2f} for {name}" for row, name in zip(rows, plurals, strict=True))
            pairs = ", ".join(signed(row["own_mean"]) for row in rows)
            sentences.append(
                f"{view}, adjectives from {source}: the mean score is {scores}; the pair of adjectives itself "
                f"contributes {pairs}. A synonym has a higher score than an antonym {_share(area_of['score'])} of the "
                f"time, and a higher contribution of its own {_share(area_of['own'])}."
            )
    return sentences


def _share(value: float | None) -> str:
    return "never known" if value is None else percent(value)


def draw(raw: Sequence[Record], settings: Any) -> picture.Figure:
    """The picture: scores and own contributions by relation, for every source of adjectives."""
    first = raw[0]["view"]
    sources = settings["sources"]
    figure, axes = picture.sheet(3.4, 1, 2, width=min(10.5, 4.0 + 3.2 * len(sources)))
    random = np.random.default_rng(0)
    for axis, name in zip(axes[0], ("score", "own"), strict=True):
        x, ticks = 0.0, []
        for source in sources:
            for relation in RELATIONS:
                values = [row[name] for row in where(raw, view=first, source=source, relation=relation)]
                if values:
                    places = x + random.uniform(-0.22, 0.22, len(values))
                    axis.plot(places, values, ".", color=COLOURS[relation], alpha=0.4, markersize=3.5, rasterized=True)
                    axis.plot([x - 0.32, x + 0.32], [np.mean(values)] * 2, color=picture.INK, linewidth=1.8)
                    ticks.append((x, f"{relation}\n{source}\n(n = {len(values):,})"))
                    x += 1
            x += 0.6
        axis.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
        picture.guide(axis)
        axis.grid(axis="x", visible=False)
    picture.label(axes[0][0], y="score of the two sentences", title="score")
    picture.label(axes[0][1], y="contribution of the two adjectives", title="the adjectives' own pair")
    picture.caption(figure, ABOUT.title, settings, f"explained by {first}; lines are means")
    return figure
