"""What the server computes: a request becomes texts to check and a function of a lens that gives JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError, PairlensError, choose
from pairlens.io import documents
from pairlens.lens import Lens
from pairlens.model.encoder import Encoder
from pairlens.render import html
from pairlens.web import schemas
from pairlens.web.limits import Limits, Refusal, check_chars, check_tokens
from pairlens.web.scheduler import Work

QUICK = 4e11
"""Operations up to which a calculation is short: a few seconds on one core."""
PASSES = {"occlusion": 1, "output": 2, "integrated-jacobian": 60, "fade": 100}
"""About how many forward passes a method takes for every unit."""


class Task(Protocol):
    """What a request asks for."""

    @property
    def asked(self) -> schemas.Options:
        """The request."""
        ...

    @property
    def texts(self) -> list[tuple[str, str, str | None]]:
        """Every text with its name and role."""
        ...

    def compute(self, lens: Lens) -> str:
        """The answer, as JSON."""
        ...


def check(task: Task, work: Work) -> str:
    """Refuse what can be refused without a model, and give the name of the model that is asked for."""
    texts, limits, names = task.texts, work.limits, list(work.lenses)
    if len(texts) > limits.passages + 1:
        most = f"this server takes up to {limits.passages + 1} a request"
        raise Refusal(422, f"these are {len(texts)} texts, and {most}. Send fewer.")
    if task.asked.passes is not None and task.asked.passes > limits.passes:
        raise Refusal(422, f"passes is {task.asked.passes}, and this server makes up to {limits.passes}.")
    check_chars([(name, text) for name, text, _ in texts], limits)
    return names[0] if task.asked.model is None else choose("model", task.asked.model, names)


def weigh(task: Task, lens: Lens, limits: Limits) -> bool:
    """Read the texts, refuse them if they have too many tokens, and say whether this will be quick."""
    encoder = lens.encoder
    assert isinstance(encoder, Encoder)
    counts = [(name, len(encoder.read(text, role).tokens)) for name, text, role in task.texts]
    check_tokens(counts, limits)
    asked = task.asked
    paths = asked.layer is not None or asked.reference is not None or lens.adjusted
    method = asked.method or ("integrated-jacobian" if paths else "shapley")
    passes = 0.0
    for _, count in counts:
        units = count / 20 if asked.level == "sentence" else count
        own = min(max(160, 8 * units), 400, 2**units) / 2 if method == "shapley" else PASSES[method] * units
        passes += count * (own if asked.passes is None else asked.passes / 2)
    return passes * encoder.effort(task.texts[0][2]) <= QUICK


class Explaining:
    """One pair."""

    def __init__(self, asked: schemas.Explain) -> None:
        self.asked = asked

    @property
    def texts(self) -> list[tuple[str, str, str | None]]:
        """The two texts."""
        return [("a", self.asked.a, self.asked.roles[0]), ("b", self.asked.b, self.asked.roles[1])]

    def compute(self, lens: Lens) -> str:
        """The explanation's document."""
        e = lens.explain(self.asked.a, self.asked.b, roles=_pair(self.asked.roles), **self.asked.keywords())
        return _document(e, html.payload(e) if self.asked.picture else None)


class Ranking:
    """One query, several passages."""

    def __init__(self, asked: schemas.Rank) -> None:
        self.asked = asked

    @property
    def texts(self) -> list[tuple[str, str, str | None]]:
        """The query, then the passages."""
        role_a, role_b = self.asked.roles
        passages = [(f"passage {i}", text, role_b) for i, text in enumerate(self.asked.passages, start=1)]
        return [("query", self.asked.query, role_a), *passages]

    def compute(self, lens: Lens) -> str:
        """The hits, best first; of equal ones the earlier."""
        pairs = [(self.asked.query, passage) for passage in self.asked.passages]
        found = lens.explain_many(pairs, roles=_pair(self.asked.roles), progress=False, **self.asked.keywords())
        ranked = sorted(enumerate(found), key=lambda hit: -hit[1].score)
        hits = [
            f'{{"rank": {rank}, "passage": {index}, "score": {e.score!r}, "explanation": {_document(e, None)}}}'
            for rank, (index, e) in enumerate(ranked, start=1)
        ]
        labels = {f"passage {index + 1}": e for index, e in ranked}
        picture = html.payload(labels) if self.asked.picture else None
        tail = "" if picture is None else f', "picture": {_dump(picture)}'
        return f'{{"hits": [{", ".join(hits)}]{tail}}}'


class Decomposing:
    """Texts taken apart."""

    def __init__(self, asked: schemas.Decompose) -> None:
        self.asked = asked

    @property
    def texts(self) -> list[tuple[str, str, str | None]]:
        """The texts."""
        return [(f"text {i}", text, self.asked.role) for i, text in enumerate(self.asked.texts, start=1)]

    def compute(self, lens: Lens) -> str:
        """Their contributions' documents."""
        found = lens.decompose(self.asked.texts, role=self.asked.role, progress=False, **self.asked.keywords())
        return f'{{"contributions": [{", ".join(map(documents.to_json, found))}]}}'


def _document(e: Explanation, picture: dict[str, Any] | None) -> str:
    """The explanation as `Explanation.save` writes it, and the picture beside its fields, which `load` passes over."""
    text = documents.to_json(e).rstrip()
    if picture is None:
        return text
    return f'{text.removesuffix("}").rstrip()},\n"picture": {_dump(picture)}\n}}'


def _dump(picture: dict[str, Any]) -> str:
    return json.dumps(picture, ensure_ascii=False, allow_nan=False)


def _pair(roles: Sequence[str | None]) -> tuple[str | None, str | None]:
    return roles[0], roles[1]


# Finished explanations, which come back to be drawn.


def render(body: bytes, kind: str, limits: Limits) -> bytes:
    """A picture of what `Explaining` or `Ranking` gave.

    Args:
        body: the answer of /api/explain or of /api/rank.
        kind: "html", the interactive picture as one file, or "png".
        limits: how large it may be.
    """
    try:
        explanations = _finished(json.loads(body), limits)
        return html.document(explanations, arrange="list").encode() if kind == "html" else _png(explanations)
    except (PairlensError, Refusal):
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError("this is not what /api/explain or /api/rank gives: it was cut off or changed.") from error


def _finished(document: Any, limits: Limits) -> dict[str, Explanation]:
    hits = document.get("hits", [{"explanation": document}])
    found = {
        f"passage {hit['passage'] + 1}" if "passage" in hit else "": documents.from_document(
            Explanation, hit["explanation"]
        )
        for hit in hits
    }
    if not found:
        raise InputError("there is no hit among these, so there is nothing to draw.")
    for e in found.values():
        check_chars([("a", e.text_a), ("b", e.text_b)], limits)
        check_tokens([("a", len(e.units_a)), ("b", len(e.units_b))], limits)
    return found


def _png(explanations: dict[str, Explanation]) -> bytes:
    from io import BytesIO

    from pairlens.render import plot

    figure, _ = plot.links(next(iter(explanations.values())))
    file = BytesIO()
    figure.savefig(file, format="png", dpi=200)
    return file.getvalue()
