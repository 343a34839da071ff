"""`pairlens adjust BASE --data train.csv --out DIR`: train a model whose attributions are exact."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pairlens.cli.options import Restart, both_columns
from pairlens.cli.session import messages, resumable, session, tell

HOW = "How to train: the papers' recipe by default"
WHERE = "What the data is like"
how = partial(typer.Option, rich_help_panel=HOW)
where = partial(typer.Option, rich_help_panel=WHERE)
Data = Annotated[
    str, typer.Option("--data", "-d", help="Scored pairs to train on: .csv, .tsv, .jsonl, .parquet or a hub dataset.")
]
Dev = Annotated[str | None, typer.Option(help="Pairs that choose the best epoch. Without them it is the last.")]
Test = Annotated[str | None, typer.Option(help="Pairs to measure the result by.")]
Epochs = Annotated[int, how(help="How often every pair is seen.")]
BatchSize = Annotated[int, how(help="How many pairs a step has.")]
Rate = Annotated[float, how("--lr", help="The highest learning rate of AdamW.")]
Decay = Annotated[float, how("--weight-decay", help="The weight decay of AdamW.")]
Warmup = Annotated[float, how(help="The share of steps in which the learning rate rises.")]
Device = Annotated[str | None, how(help="Where to compute: cpu, cuda or mps. By default the fastest there is.")]
Precision = Annotated[str, how(help="The numbers to compute with: float32, bfloat16 or float16.")]
ColumnA = Annotated[str | None, where(help="The column of text a.")]
ColumnB = Annotated[str | None, where(help="The column of text b.")]
ColumnScore = Annotated[str | None, where(help="The column of the scores.")]
MaxScore = Annotated[float | None, where(help="What scores are divided by. By default 5 where any is above 1.")]


@session()
def adjust(
    base: Annotated[str, typer.Argument(help="The model to begin with: a hub id or a folder.")],
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the trained model.")],
    objective: Annotated[
        str, typer.Option(help="The similarity that is trained to equal the score: cosine or dot.")
    ] = "cosine",
    plain: Annotated[bool, typer.Option("--plain", help="Train the unadjusted twin, for comparison.")] = False,
    dev: Dev = None,
    test: Test = None,
    epochs: Epochs = 5,
    batch_size: BatchSize = 16,
    lr: Rate = 2e-5,
    weight_decay: Decay = 0.1,
    warmup: Warmup = 0.1,
    seed: Annotated[int, how(min=0, help="The seed of everything that is random.")] = 0,
    device: Device = None,
    precision: Precision = "float32",
    max_score: MaxScore = None,
    column_a: ColumnA = None,
    column_b: ColumnB = None,
    column_score: ColumnScore = None,
    restart: Restart = False,
) -> None:
    """Train a model whose score is the sum of its token pairs' attributions, with nothing left for the reference.

    Columns named like a and b or sentence1 and sentence2 hold the texts, and score or label the scores. Without a
    header they are the first three. Give the same command again to go on after an interruption.

    Examples:
      pairlens adjust all-MiniLM-L6-v2 --data train.csv --dev dev.csv --out mine
      pairlens adjust all-MiniLM-L6-v2 --data train.csv --plain --out twin
    """
    columns = both_columns(column_a, column_b)
    silence_downloads()
    from pairlens.adjusted.training import adjust as train

    part = out.with_name(f"{out.name}.part")
    with resumable(lambda: any(part.glob("checkpoint-*")), "complete epochs are kept"):
        train(
            base,
            data,
            out,
            objective=objective,
            adjusted=not plain,
            dev=dev,
            test=test,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            weight_decay=weight_decay,
            warmup=warmup,
            seed=seed,
            device=device,
            precision=precision,
            max_score=max_score,
            columns=columns,
            score=column_score,
            restart=restart,
        )
    _report(out)


def _report(out: Path) -> None:
    """Print the trained model's correlations with the scores."""
    from pairlens.adjusted.card import read_record

    record: Any = read_record(out)
    for split in ("dev", "test"):
        if scores := record[split]:
            tell(f"{split}: Spearman {scores['cosine']:.4f} by cosine, {scores['dot']:.4f} by dot product")
    tell(f"saved {out}")


def silence_downloads() -> None:
    """Switch off other packages' progress bars, except for a download's bar in a terminal."""
    from transformers.utils.logging import disable_progress_bar

    if not messages().is_terminal:
        from huggingface_hub.utils import disable_progress_bars

        disable_progress_bars()
    disable_progress_bar()
