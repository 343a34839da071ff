"""The options that several commands share, and the request that they make up."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli.session import busy, messages
from pairlens.errors import InputError

if TYPE_CHECKING:
    from pairlens.lens import Lens

HOW = "How to explain"
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A hub id or a folder. By default all-MiniLM-L6-v2.", show_default=False),
]
Device = Annotated[str | None, typer.Option(help="Where to compute: cpu, cuda, mps.", show_default=False)]
Dtype = Annotated[str, typer.Option(help="float32, or float64 for gaps below 1e-6.")]
Strict = Annotated[bool, typer.Option("--strict", help="Texts longer than the model takes are errors, not warnings.")]
Level = Annotated[str, typer.Option("--level", "-l", help="token, word or sentence.", rich_help_panel=HOW)]
Layer = Annotated[
    int | None,
    typer.Option(
        help="For integrated-jacobian: 0, the embedding layer, to the last; -1 is the last. By default 0.",
        rich_help_panel=HOW,
        show_default=False,
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        help="shapley, fade, integrated-jacobian, occlusion or output. By default shapley with larger sets counting "
        "more (near 1.5), or integrated-jacobian where a layer or a reference is given.",
        rich_help_panel=HOW,
        show_default=False,
    ),
]
Passes = Annotated[
    int | None,
    typer.Option(
        min=4,
        help="For shapley: forward passes a text. By default 8 a unit, 160 to 400 in all.",
        rich_help_panel=HOW,
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0, help="For shapley: which deletions are tried. By default 0.", rich_help_panel=HOW, show_default=False
    ),
]
Paper = Annotated[
    bool,
    typer.Option(
        "--exact-to-paper",
        help="The papers' settings: integrated Jacobians three quarters up the layers, 50 equal steps, a padding "
        "reference whose own share is ignored (or shifted away, for an adjusted model).",
        rich_help_panel=HOW,
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        help="For integrated-jacobian: padding, mask or zero. By default padding.",
        rich_help_panel=HOW,
        show_default=False,
    ),
]
ReferenceTerms = Annotated[
    str | None,
    typer.Option(
        help="What becomes of the reference's own share: project, shift, keep or ignore. By default project, and "
        "shift for an adjusted model.",
        rich_help_panel=HOW,
        show_default=False,
    ),
]
Measure = Annotated[
    str | None,
    typer.Option(help="cosine or dot. By default the model's own.", rich_help_panel=HOW, show_default=False),
]
Tol = Annotated[
    float,
    typer.Option(help="The largest relative gap of either text, for methods that integrate.", rich_help_panel=HOW),
]
RoleA = Annotated[
    str | None,
    typer.Option(
        help="query or document: the prompt and the route of text a.", rich_help_panel=HOW, show_default=False
    ),
]
RoleB = Annotated[str | None, typer.Option(help="Likewise for text b.", rich_help_panel=HOW, show_default=False)]


@dataclass(frozen=True)
class Request:
    """The model that the user asked for, and how to explain pairs with it."""

    model: str | None
    device: str | None
    dtype: str
    strict: bool
    method: str | None
    layer: int | None
    reference: str | None
    reference_terms: str | None
    measure: str | None
    level: str
    tol: float
    role_a: str | None
    role_b: str | None
    passes: int | None
    seed: int | None
    exact_to_paper: bool

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Request:
        """The request among a command's arguments, which are given by name."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    def load(self) -> Lens:
        """The lens on the request's model."""
        return load_lens(self.model, self.device, self.dtype, strict=self.strict)

    def options(self, lens: Lens) -> dict[str, Any]:
        """The keyword arguments of `Lens.explain`."""
        given = asdict(self)
        roles = given.pop("role_a"), given.pop("role_b")
        for name in ("model", "device", "dtype", "strict"):
            given.pop(name)
        passes, seed, paper = given.pop("passes"), given.pop("seed"), given.pop("exact_to_paper")
        if paper:
            for name in ("method", "reference", "reference_terms"):
                if given[name] is not None:
                    raise InputError(
                        f"--exact-to-paper says what --{name.replace('_', '-')} is: leave one of them out."
                    )
            given = {**given, **_paper(lens, self.layer)}
        if passes is not None or seed is not None:
            if given["method"] not in (None, "shapley") or self.layer is not None or self.reference is not None:
                raise InputError("--passes and --seed are for --method shapley.")
            from pairlens.methods.shapley import NEAR, Shapley

            near = NEAR if given["method"] is None else 1.0
            given["method"] = Shapley(passes=passes, seed=seed or 0, near=near)
        return {**given, "roles": roles}


def load_lens(model: str | None, device: str | None, dtype: str, *, strict: bool = False) -> Lens:
    """A lens, with a spinner while the model loads."""
    from pairlens.model.bundled import DEFAULT_MODEL, offline_model

    local = offline_model() is not None if model is None else Path(model).expanduser().is_dir()
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
