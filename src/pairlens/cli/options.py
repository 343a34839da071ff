"""The options that `explain` and `batch` have in common, in the words of the library."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli.session import busy, messages

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
        help="0, the embedding layer, to the last; -1 is the last. By default 0.",
        rich_help_panel=HOW,
        show_default=False,
    ),
]
Method = Annotated[str, typer.Option(help="The method: integrated-jacobian or output.", rich_help_panel=HOW)]
Reference = Annotated[
    str | None,
    typer.Option(help="padding, mask or zero. By default padding.", rich_help_panel=HOW, show_default=False),
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
Tol = Annotated[float, typer.Option(help="The largest relative gap of either text.", rich_help_panel=HOW)]
RoleA = Annotated[
    str | None,
    typer.Option(
        help="query or document: the prompt and the route of text a.", rich_help_panel=HOW, show_default=False
    ),
]
RoleB = Annotated[str | None, typer.Option(help="Likewise for text b.", rich_help_panel=HOW, show_default=False)]


@dataclass(frozen=True)
class Request:
    """What the user asked for: a model, and how to explain pairs with it."""

    model: str | None
    device: str | None
    dtype: str
    strict: bool
    method: str
    layer: int | None
    reference: str | None
    reference_terms: str | None
    measure: str | None
    level: str
    tol: float
    role_a: str | None
    role_b: str | None

    def load(self) -> Lens:
        """The lens, with a sign of life while the model loads."""
        from pairlens.loading import DEFAULT_MODEL, offline_model

        local = offline_model() is not None if self.model is None else Path(self.model).expanduser().is_dir()
        name = (self.model or DEFAULT_MODEL).rstrip("/").rsplit("/", 1)[-1]
        # Where a person watches, a download shows its own progress; loading from this machine shows ours.
        with busy(f"loading {name}") if local else nullcontext():
            from transformers.utils.logging import disable_progress_bar

            from pairlens.lens import Lens

            if local or not messages().is_terminal:
                disable_progress_bar()
            return Lens(self.model, self.device, dtype=self.dtype, strict=self.strict)

    def options(self) -> dict[str, Any]:
        """The keyword arguments of `Lens.explain`."""
        given = asdict(self)
        roles = given.pop("role_a"), given.pop("role_b")
        for name in ("model", "device", "dtype", "strict"):
            given.pop(name)
        return {**given, "roles": roles}
