"""The settings that the decompositions of an index share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

from pairlens.errors import InputError, choose
from pairlens.lens import Lens
from pairlens.methods import Method, choose_method, default_method
from pairlens.methods.banzhaf import Banzhaf
from pairlens.methods.fade import Fade
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.methods.occlusion import Occlusion
from pairlens.methods.sampled import Sampled
from pairlens.methods.shapley import Shapley
from pairlens.quadrature import Adaptive, GaussLegendre, Riemann, Rule
from pairlens.text.units import LEVELS

PRECISIONS = ("float16", "float32")
QUERY_LEVEL = "word"
_KINDS = {
    kind.__name__: kind
    for kind in (Banzhaf, IntegratedJacobian, Fade, Shapley, Occlusion, Riemann, GaussLegendre, Adaptive)
}


@dataclass(frozen=True)
class IndexSettings:
    """How the texts of an index are decomposed: all in the same way, so that they can be compared.

    Attributes:
        level: "token", "word" or "sentence".
        method: the method.
        rule: the quadrature rule, for methods that integrate; else None.
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
    def of(cls, lens: Lens, *, level: str = "sentence", precision: str = "float16", **options: Any) -> IndexSettings:
        """The settings that a user asked for, checked, with defaults filled in; `options` as for `Lens.explain`."""
        level = choose("level of an index", level, LEVELS)
        resolved = lens.resolve(level=level, **options)
        role = "document" if lens.encoder.has_layers else None
        chosen = resolved.method
        if chosen is None:
            chosen = default_method(lens.encoder, role)
        return cls(
            level=level,
            method=chosen.resolve(lens.encoder, role),
            rule=None if chosen.deletes else resolved.rule,
            reference_terms=resolved.reference_terms,
            measure=resolved.measure,
            role=role,
            precision=choose("precision", precision, PRECISIONS),
        )

    @property
    def has_words_inside(self) -> bool:
        """Whether deletions inside a sentence can refine what the index holds of it."""
        return self.level == "sentence" and isinstance(self.method, Sampled)

    def options(self) -> dict[str, Any]:
        """The keyword arguments of `Lens.decompose` for a text of the index."""
        names = ("level", "method", "rule", "reference_terms", "measure", "role")
        return {name: getattr(self, name) for name in names}

    def query_options(self, level: str | None = None, method: str | Method | None = None) -> dict[str, Any]:
        """The keyword arguments of `Lens.decompose` for a query: by default its words, by the method of the texts.

        A method that samples gets its own default budget: a query is short, so its forward passes cost little.
        """
        chosen = self.method.with_passes(None) if method is None else choose_method(method, None, None)
        return {
            **self.options(),
            "level": level or QUERY_LEVEL,
            "method": chosen,
            "rule": None if chosen.deletes else self.rule,
            "role": None if self.role is None else "query",
        }

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON types."""
        plain = {name: getattr(self, name) for name in ("level", "reference_terms", "measure", "role", "precision")}
        return {**plain, "method": _to_json(self.method), "rule": _to_json(self.rule)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> IndexSettings:
        """The settings that `to_json` gave."""
        parts = {name: _from_json(document[name]) for name in ("method", "rule")}
        return cls(**{**document, **parts})

    def check(self, lens: Lens, asked: Mapping[str, Any]) -> None:
        """Raise if `asked` names other settings than these; settings that it does not name stay as they are."""
        how = ("method", "layer", "reference", "rule", "tol")
        present: dict[str, Any] = {
            name: getattr(self, name) for name in ("level", "reference_terms", "measure", "precision")
        }
        if not any(name in asked for name in how):
            present |= {"method": self.method, "rule": self.rule}
        wanted = IndexSettings.of(lens, **{**present, **asked})
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
    """A setting for an error message; of a method or a rule, the options that are not the default."""
    if not is_dataclass(part) or isinstance(part, type):
        return repr(part)
    options = [f"{f.name}={getattr(part, f.name)!r}" for f in fields(part) if getattr(part, f.name) != f.default]
    return f"{type(part).__name__}({', '.join(options)})"


def _to_json(part: Any) -> Any:
    return None if part is None else {"kind": type(part).__name__, **asdict(part)}


def _from_json(document: Mapping[str, Any] | None) -> Any:
    if document is None:
        return None
    given = dict(document)
    return _KINDS[choose("kind", given.pop("kind"), _KINDS)](**given)
