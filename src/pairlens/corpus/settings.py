"""What the decompositions of an index depend on: the model, by its fingerprint, and how texts are taken apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch

from pairlens.errors import InputError, ModelError, choose
from pairlens.lens import Lens
from pairlens.lens import Method as Asked
from pairlens.methods import default_method
from pairlens.methods.fade import Fade
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.methods.occlusion import Occlusion
from pairlens.methods.shapley import Shapley
from pairlens.model.bundled import DEFAULT_MODEL
from pairlens.model.encoder import Encoder
from pairlens.model.function import EmbeddingFunction
from pairlens.quadrature.rules import Adaptive, GaussLegendre, Riemann, Rule
from pairlens.text import LEVELS

Method = IntegratedJacobian | Fade | Shapley | Occlusion
PASSES = 32
"""Forward passes a text at sentence level, unless told otherwise: up to 5 sentences are exact, and in long abstracts
their shares agree with the exact ones at 0.93, for less than a third of the time of Shapley's own default."""
PRECISIONS = ("float16", "float32")
QUERY_LEVEL = "word"
_KINDS = {
    kind.__name__: kind for kind in (IntegratedJacobian, Fade, Shapley, Occlusion, Riemann, GaussLegendre, Adaptive)
}


@dataclass(frozen=True)
class Settings:
    """How the texts of an index are taken apart. The same for all of them, or they could not be compared.

    Attributes:
        level: "token", "word" or "sentence".
        method: how.
        rule: how to integrate, for methods that do; else None.
        reference_terms: "project", "shift", "keep" or "ignore".
        measure: "cosine" or "dot".
        role: "document", or None for a black box, which has no roles.
        precision: of the stored contributions, "float16" or "float32".
    """

    level: str
    method: Method
    rule: Rule | None
    reference_terms: str
    measure: str
    role: str | None
    precision: str

    @classmethod
    def of(
        cls,
        lens: Lens,
        *,
        level: str = "sentence",
        method: Asked | None = None,
        layer: int | None = None,
        reference: str | None = None,
        reference_terms: str | None = None,
        measure: str | None = None,
        rule: Rule | None = None,
        tol: float = 1e-3,
        precision: str = "float16",
    ) -> Settings:
        """Settings from what a user asked for, defaults filled in."""
        level = choose("level of an index", level, LEVELS)
        lens._level(level)
        treatment, measure = lens._treatment(reference_terms, measure)
        work = lens._decomposer(method, layer, reference, rule, tol, treatment, measure)
        role = None if isinstance(lens.encoder, EmbeddingFunction) else "document"
        chosen: Any = work.method
        if chosen is None:
            chosen = default_method(lens.encoder, role)
            if isinstance(chosen, Shapley) and level == "sentence":
                chosen = replace(chosen, passes=PASSES)
        if isinstance(chosen, IntegratedJacobian) and isinstance(lens.encoder, Encoder):
            chosen = replace(chosen, layer=lens.encoder.layer_index(chosen.layer, role))
        integrates = isinstance(chosen, IntegratedJacobian | Fade)
        precision = choose("precision", precision, PRECISIONS)
        return cls(level, chosen, work.rule if integrates else None, treatment, measure, role, precision)

    def options(self) -> dict[str, Any]:
        """The keyword arguments of `Lens.decompose` for a text of the index."""
        names = ("level", "method", "rule", "reference_terms", "measure", "role")
        return {name: getattr(self, name) for name in names}

    def query_options(self, level: str | None = None, method: Asked | None = None) -> dict[str, Any]:
        """Those for a query: by default its words, taken apart as the texts are.

        A method that samples is given its own default budget: a query is short, so that it costs little.
        """
        chosen: Asked = self.method if method is None else method
        if method is None and isinstance(chosen, Shapley) and chosen.passes is not None:
            chosen = replace(chosen, passes=None)
        role = None if self.role is None else "query"
        rule = None if isinstance(chosen, Shapley | Occlusion) or chosen in ("shapley", "occlusion") else self.rule
        return {**self.options(), "level": level or QUERY_LEVEL, "method": chosen, "rule": rule, "role": role}

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON has them."""
        plain = {name: getattr(self, name) for name in ("level", "reference_terms", "measure", "role", "precision")}
        return {**plain, "method": _to_json(self.method), "rule": _to_json(self.rule)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Settings:
        """Settings from what `to_json` gave."""
        parts = {name: _from_json(document[name]) for name in ("method", "rule")}
        return cls(**{**document, **parts})

    def check(self, lens: Lens, asked: Mapping[str, Any]) -> None:
        """Raise if somebody asks for other settings than these; what is not asked for stays as it is."""
        how = ("method", "layer", "reference", "rule", "tol")
        mine: dict[str, Any] = {
            name: getattr(self, name) for name in ("level", "reference_terms", "measure", "precision")
        }
        if not any(name in asked for name in how):
            mine |= {"method": self.method, "rule": self.rule}
        wanted = Settings.of(lens, **{**mine, **asked})
        changed = [
            f"{name} is {_plain(old)}, not {_plain(new)}"
            for name in vars(self)
            if (old := getattr(self, name)) != (new := getattr(wanted, name))
        ]
        if changed:
            raise InputError(
                f"the index was made with other settings: {'; '.join(changed)}. Leave them out to use it as it is, or "
                "make another index."
            )


def _plain(part: Any) -> str:
    """A setting in a few words: of a method or a rule, what is not its default."""
    if not is_dataclass(part) or isinstance(part, type):
        return repr(part)
    own = [f"{f.name}={getattr(part, f.name)!r}" for f in fields(part) if getattr(part, f.name) != f.default]
    return f"{type(part).__name__}({', '.join(own)})"


def _to_json(part: Method | Rule | None) -> Any:
    return None if part is None else {"kind": type(part).__name__, **asdict(part)}


def _from_json(document: Mapping[str, Any] | None) -> Any:
    if document is None:
        return None
    given = dict(document)
    return _KINDS[choose("kind", given.pop("kind"), _KINDS)](**given)


_FINGERPRINTS: WeakKeyDictionary[Encoder | EmbeddingFunction, str] = WeakKeyDictionary()


def fingerprint(lens: Lens) -> str:
    """A hash of everything that an embedding depends on: weights, configuration, tokenizer, prompts.

    It is computed once for every lens: 0.2 seconds for all-MiniLM-L6-v2. A black box has its name only.
    """
    encoder = lens.encoder
    if isinstance(encoder, EmbeddingFunction):
        return f"function {encoder.name}"
    if encoder not in _FINGERPRINTS:
        _FINGERPRINTS[encoder] = _hash(encoder.sentence_transformer)
    return _FINGERPRINTS[encoder]


def _hash(model: Any) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    for name in ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim"):
        digest.update(f"{name} {getattr(model, name, None)!r}".encode())
    for module in model.modules():
        describe = getattr(module, "get_config_dict", None)
        if describe is not None:
            length = getattr(module, "max_seq_length", None)
            digest.update(
                f"{type(module).__name__} {json.dumps(describe(), sort_keys=True, default=str)} {length}".encode()
            )
        tokenizer = getattr(module, "tokenizer", None)
        if tokenizer is not None:
            digest.update(_tokenizer(tokenizer).encode())
    return digest.hexdigest()


def _tokenizer(tokenizer: Any) -> str:
    """All that a tokenizer does, but for padding and truncation, which calls leave behind in it."""
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(fast, "to_str"):
        parts = json.loads(fast.to_str())
        return json.dumps({name: value for name, value in parts.items() if name not in ("padding", "truncation")})
    return json.dumps(sorted(tokenizer.get_vocab().items()))


def full_name(name: str) -> str:
    """A model's name as it can be loaded from any other folder too."""
    return str(Path(name).expanduser().resolve()) if Path(name).expanduser().is_dir() else name


def model_name(document: Mapping[str, Any]) -> str | None:
    """What to call `Lens` with: the bundled model has no name of its own there."""
    name = document["model"]
    return None if name == DEFAULT_MODEL.split("/")[-1] else name


def load_model(document: Mapping[str, Any]) -> Lens:
    """The model that an index was made with, by its name."""
    try:
        return Lens(model_name(document), dtype=document["contributions"]["dtype"])
    except ModelError as error:
        raise InputError(
            f"the index was made with the model {document['model']!r}, which cannot be loaded by that name: "
            f"{error} Give it: Index.open(path, lens), or --model."
        ) from error


def check_model(document: Mapping[str, Any], lens: Lens) -> None:
    """Raise unless this is the model that an index was made with."""
    mine = fingerprint(lens)
    if document["fingerprint"] != mine:
        raise InputError(
            f"the index was made with the model {document['model']!r} (fingerprint "
            f"{document['fingerprint'][:16]}), and this is {lens.name!r} (fingerprint {mine[:16]}). "
            "Open it with the model that it was made with."
        )
    if document["contributions"]["dtype"] != lens.encoder.precision:
        raise InputError(
            f"the index was computed in {document['contributions']['dtype']}, and this lens computes in "
            f"{lens.encoder.precision}. Open it with Lens(…, dtype={document['contributions']['dtype']!r})."
        )
