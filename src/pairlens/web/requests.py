"""What a request computes: checks before the calculation, an estimate of its length, and the result as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from pairlens.attribution.explanation import Explanation
from pairlens.attribution.zoom import OPENED, has_sentences, is_long
from pairlens.errors import InputError, ModelError, PairlensError, choose
from pairlens.io import documents
from pairlens.lens import Lens
from pairlens.methods import choose_method
from pairlens.methods.sampled import Sampled
from pairlens.model import Encoder
from pairlens.render import html
from pairlens.web.limits import Limits, Refusal, check_chars, check_tokens
from pairlens.web.schemas import DecomposeRequest, ExplainRequest, Options, RankRequest

QUICK = 4e11
"""A calculation is short up to this number of operations: a few seconds on one core."""
PASSES = {"occlusion": 1, "output": 2, "integrated-jacobian": 60, "fade": 100}
"""Forward passes that a method takes per unit, roughly."""


LEFT = {"banzhaf": 0.82, "shapley": 0.5}
"""Methods that sample, with the mean length of a text after deletions."""


def check(body: Options, models: Iterable[str], limits: Limits) -> str:
    """Return the name of the model asked for; refuse what can be refused without the model."""
    names, texts = list(models), body.named_texts
    if len(texts) > limits.passages + 1:
        most = f"this server takes up to {limits.passages + 1} a request"
        raise Refusal(422, f"these are {len(texts)} texts, and {most}. Send fewer.")
    if body.passes is not None and body.passes > limits.passes:
        raise Refusal(422, f"passes is {body.passes}, and this server makes up to {limits.passes}.")
    check_chars([(name, text) for name, text, _ in texts], limits)
    return names[0] if body.model is None else choose("model", body.model, names)


def is_quick(body: Options, lens: Lens, limits: Limits) -> bool:
    """Whether the calculation is short; refuses texts with too many tokens."""
    encoder = lens.encoder
    assert isinstance(encoder, Encoder)
    counts = [(name, len(encoder.read(text, role).tokens)) for name, text, role in body.named_texts]
    check_tokens(counts, limits)
    integrates = body.layer is not None or body.reference is not None or lens.adjusted
    name = body.method or ("integrated-jacobian" if integrates else "banzhaf")
    given = body.keywords()["method"]
    method = choose_method(name if given is None else given, None, None)
    work = 0.0
    for (_, count), (_, text, _) in zip(counts, body.named_texts, strict=True):
        if not isinstance(method, Sampled):
            work += count * PASSES[name] * (count / 20 if body.level == "sentence" else count)
            continue
        zooms = is_long(text) if body.level is None else body.level == "zoom" and has_sentences(text)
        long = zooms or body.level == "sentence"
        units = round(count / 20) if long else count
        passes = min(method.budget(units, long=long), 2**units) + zooms * method.budget(OPENED, part=True)
        work += count * passes * LEFT[method.name]
    return work * encoder.effort(body.named_texts[0][2]) <= QUICK


def needs_roles(lens: Lens) -> bool:
    """Whether the model reads only texts that have a role."""
    try:
        lens.encoder.layers()
    except ModelError:
        return True
    return False


def explain(body: ExplainRequest, lens: Lens) -> str:
    """The explanation of one pair, as `Explanation.save` writes it, with the picture where it was asked for."""
    e = lens.explain(body.a, body.b, roles=(body.roles[0], body.roles[1]), **body.keywords())
    text = documents.to_json(e).rstrip()
    if not body.picture:
        return text
    # `Explanation.load` ignores the additional field.
    return f'{text.removesuffix("}").rstrip()},\n"picture": {_dump(html.payload(e))}\n}}'


def rank(body: RankRequest, lens: Lens) -> str:
    """The passages with their explanations, best first; of equal ones the earlier comes first."""
    pairs = [(body.query, passage) for passage in body.passages]
    roles = body.roles[0], body.roles[1]
    explanations = lens.explain_many(pairs, roles=roles, progress=False, **body.keywords())
    ranked = sorted(enumerate(explanations), key=lambda hit: -hit[1].score)
    hits = [
        f'{{"rank": {place}, "passage": {passage}, "score": {e.score!r}, "explanation": {documents.to_json(e)}}}'
        for place, (passage, e) in enumerate(ranked, start=1)
    ]
    picture = ""
    if body.picture:
        picture = f', "picture": {_dump(html.payload({_label(passage): e for passage, e in ranked}))}'
    return f'{{"hits": [{", ".join(hits)}]{picture}}}'


def decompose(body: DecomposeRequest, lens: Lens) -> str:
    """The contributions of every text, as `Contributions.save` writes them."""
    contributions = lens.decompose(body.texts, role=body.role, progress=False, **body.keywords())
    return f'{{"contributions": [{", ".join(map(documents.to_json, contributions))}]}}'


def render(body: bytes, kind: str, limits: Limits) -> bytes:
    """A picture of a finished result.

    Args:
        body: the response of /api/explain or of /api/rank.
        kind: "html", the interactive picture as one file, or "png".
        limits: how large the texts may be.
    """
    try:
        explanations = _read_result(json.loads(body), limits)
        return html.document(explanations, arrange="list").encode() if kind == "html" else _png(explanations)
    except (PairlensError, Refusal):
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError("this is not what /api/explain or /api/rank gives: it was cut off or changed.") from error


def _read_result(document: Any, limits: Limits) -> dict[str, Explanation]:
    explanations = {
        _label(hit["passage"]) if "passage" in hit else "": documents.from_document(Explanation, hit["explanation"])
        for hit in document.get("hits", [{"explanation": document}])
    }
    if not explanations:
        raise InputError("there is no hit among these, so there is nothing to draw.")
    for e in explanations.values():
        check_chars([("a", e.text_a), ("b", e.text_b)], limits)
        check_tokens([("a", len(e.units_a)), ("b", len(e.units_b))], limits)
    return explanations


def _png(explanations: dict[str, Explanation]) -> bytes:
    from pairlens.render import plot

    figure, _ = plot.links(next(iter(explanations.values())))
    file = BytesIO()
    figure.savefig(file, format="png", dpi=200)
    return file.getvalue()


def _label(passage: int) -> str:
    return f"passage {passage + 1}"


def _dump(picture: dict[str, Any]) -> str:
    return json.dumps(picture, ensure_ascii=False, allow_nan=False)
