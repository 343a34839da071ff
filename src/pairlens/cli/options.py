"""The options that several commands share, and the request that they make up."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli.session import busy, messages, tell
from pairlens.errors import InputError

if TYPE_CHECKING:
    from pairlens.io import PairTable
    from pairlens.lens import Lens

HOW = "How to explain"
how = partial(typer.Option, rich_help_panel=HOW)
"""An option in the panel `HOW` of the help text."""
Model = Annotated[str | None, typer.Option("--model", "-m", help="A hub id or a folder. By default all-MiniLM-L6-v2.")]
Device = Annotated[
    str | None, typer.Option(help="Where to compute: cpu, cuda or mps. By default the fastest there is.")
]
Dtype = Annotated[str, typer.Option(help="The numbers to compute with: float32, or float64 for gaps below 1e-6.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at a text longer than the model takes, instead of warning.")
]
ColumnA = Annotated[str | None, typer.Option(help="The column of text a.")]
ColumnB = Annotated[str | None, typer.Option(help="The column of text b.")]
Top = Annotated[int, typer.Option(min=1, help="How many of the strongest pairs to keep.")]
Special = Annotated[bool, typer.Option("--special", help="Keep pairs of special tokens, such as [CLS], too.")]
Restart = Annotated[bool, typer.Option("--restart", help="Begin anew: forget what an interrupted run has done.")]
Level = Annotated[
    str | None,
    how(
        "--level",
        "-l",
        help="The units to explain by: token, word, sentence, or zoom for sentences and the words of those that matter "
        "most. By default word, and zoom for texts of more than 48 words.",
    ),
]
Layer = Annotated[
    int | None,
    how(help="For integrated-jacobian: 0, the embedding layer, to the last; -1 is the last. By default 0."),
]
Method = Annotated[
    str | None,
    how(
        help="banzhaf, shapley, fade, integrated-jacobian, occlusion or output. By default banzhaf, which predicts "
        "deletions best, or integrated-jacobian where a layer or a reference is given."
    ),
]
Passes = Annotated[
    int | None,
    how(
        min=4,
        help="For banzhaf and shapley: forward passes per text. More give the same numbers with smaller errors. By "
        "default about 4 per unit and at least 48 for banzhaf, 8 and 160 for shapley.",
    ),
]
Seed = Annotated[
    int | None,
    how(min=0, help="For banzhaf and shapley: the seed that decides which deletions are tried. By default 0."),
]
Compounds = Annotated[
    int | None,
    how(
        min=0,
        help="For banzhaf: how many pairs of words that act together, such as “not good”, may get rows of their own.",
    ),
]
Paper = Annotated[
    bool,
    how(
        "--exact-to-paper",
        help="The papers' settings: integrated Jacobians three quarters up the layers, 50 equal steps, a padding "
        "reference whose own share is ignored (or shifted away, for an adjusted model).",
    ),
]
Reference = Annotated[str | None, how(help="For integrated-jacobian: padding, mask or zero. By default padding.")]
ReferenceTerms = Annotated[
    str | None,
    how(
        help="What becomes of the reference's own share: project, shift, keep or ignore. By default keep for methods "
        "that delete words, else project, and shift for an adjusted model."
    ),
]
Measure = Annotated[str | None, how(help="The similarity: cosine or dot. By default the model's own.")]
Tol = Annotated[
    float | None,
    how(help="The largest relative gap of either text, for methods that integrate. By default 0.001."),
]
RoleA = Annotated[
    str | None, how(help="query or document: text a gets the model's prompt and route for queries or for documents.")
]
RoleB = Annotated[str | None, how(help="The same for text b.")]


@dataclass(frozen=True)
class Request:
    """The model that the user asked for, and how to explain pairs with it."""

    model: str | None = None
    device: str | None = None
    dtype: str = "float32"
    strict: bool = False
    method: str | None = None
    layer: int | None = None
    reference: str | None = None
    reference_terms: str | None = None
    measure: str | None = None
    level: str | None = None
    tol: float | None = None
    role_a: str | None = None
    role_b: str | None = None
    passes: int | None = None
    seed: int | None = None
    compounds: int | None = None
    exact_to_paper: bool = False

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Request:
        """The request among a command's arguments, by name; options that the command lacks have their defaults."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls) if field.name in arguments})

    def load(self) -> Lens:
        """The lens on the request's model."""
        return load_lens(self.model, self.device, self.dtype, strict=self.strict)

    def options(self, lens: Lens) -> dict[str, Any]:
        """The keyword arguments of `Lens.explain`."""
        names = ("method", "layer", "reference", "reference_terms", "measure", "level", "tol")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.exact_to_paper:
            for name in ("method", "reference", "reference_terms", "tol"):
                if given[name] is not None:
                    raise InputError(
                        f"--exact-to-paper says what --{name.replace('_', '-')} is: leave one of them out."
                    )
            given |= _paper(lens, self.layer)
        if (self.passes, self.seed, self.compounds) != (None, None, None):
            from pairlens.methods import sampled_method

            sampling = {"passes": self.passes, "seed": self.seed, "compounds": self.compounds}
            given["method"] = sampled_method(given["method"], **sampling)
        return {**given, "roles": (self.role_a, self.role_b)}


def both_columns(column_a: str | None, column_b: str | None) -> tuple[str, str] | None:
    """The columns of the two texts, if both are named."""
    if (column_a is None) != (column_b is None):
        raise InputError("--column-a and --column-b go together: give both or none.")
    return None if column_a is None or column_b is None else (column_a, column_b)


def tell_columns(source: PairTable) -> None:
    """Say which columns are taken for the two texts, where the user named none."""
    if source.columns is None:
        names = source.text_columns()
        known = f"the texts are in the columns {' and '.join(names)}"
        tell(f"{source.path}: {known if names else 'no known header, so every line is a pair, with its texts first'}")


def load_lens(model: str | None, device: str | None, dtype: str, *, strict: bool = False) -> Lens:
    """A lens, with a spinner while the model loads."""
    from pairlens.model.bundled import DEFAULT_MODEL, is_default, offline_model

    local = offline_model() is not None if is_default(model) else Path(model or "").expanduser().is_dir()
    name = (model or DEFAULT_MODEL).rstrip("/").rsplit("/", 1)[-1]
    # A download shows its own progress bar; only loading from this machine needs the spinner.
    with busy(f"loading {name}") if local else nullcontext():
        from transformers.utils.logging import disable_progress_bar

        from pairlens.lens import Lens

        if local or not messages().is_terminal:
            disable_progress_bar()
        return Lens(model, device, dtype=dtype, strict=strict)


def _paper(lens: Lens, layer: int | None) -> dict[str, Any]:
    """The settings of the papers' figures: layer 9 of 12 and 50 steps. Their gap is reported, never refused."""
    from pairlens.quadrature.rules import Riemann

    return {
        "method": "integrated-jacobian",
        "layer": int(0.75 * lens.layers + 0.5) if layer is None else layer,
        "reference": "padding",
        "reference_terms": "shift" if lens.adjusted else "ignore",
        "rule": Riemann(50),
    }
