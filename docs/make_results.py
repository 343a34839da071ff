"""Write docs/results.md from the results of `pairlens study`: python docs/make_results.py OUT.

OUT is the folder of the results; docs/results/how.txt has the commands that made them. Every figure comes from a
summary, and every word that compares two figures is chosen by comparing them.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import findings_first
import findings_second
from findings_words import Figures, Page

HERE = Path(__file__).parent
PAGES: dict[str, Callable[[Figures, Figures], Page]] = {
    "convergence": findings_first.convergence,
    "distribution": findings_first.distribution,
    "cumulative": findings_first.cumulative,
    "parts-of-speech": findings_first.parts_of_speech,
    "layers": findings_first.layers,
    "models": findings_first.models,
    "failures": findings_first.failures,
    "agreement": findings_second.agreement,
    "syntactic-roles": findings_second.syntactic_roles,
    "negation": findings_second.negation,
    "adjectives": findings_second.adjectives,
    "lexical-bias": findings_second.lexical_bias,
}


def section(out: Path, name: str) -> list[str]:
    """The section about one study; its summary, table and picture are copied to docs/results."""
    summary = json.loads((out / name / "summary.json").read_text(encoding="utf-8"))
    lines = [
        f"## {summary['title']}",
        "",
        f"`pairlens study {name}` after {summary['paper']['title']}, {summary['paper']['where']}.",
    ]
    if "skipped" in summary:
        return [*lines, "", f"Skipped: {summary['skipped']}", ""]
    kept = HERE / "results" / name
    kept.mkdir(parents=True, exist_ok=True)
    for file in ("table.csv", f"{name}.svg"):
        shutil.copy(out / name / file, kept / file)
    settings = summary["settings"]
    for key in ("data", "annotations", "adjusted_model", "twin_model"):
        if settings.get(key):
            settings[key] = Path(settings[key]).name  # without the folders of the machine
    (kept / "summary.json").write_text(json.dumps(summary, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    rows, agree, differ = PAGES[name](summary["figures"], summary["settings"])
    lines += ["", f"![{summary['title']}](results/{name}/{name}.svg)", "", "| | The papers | Here |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    count = summary["settings"]["pairs"]
    lines += ["", f"{count:,} {'pair' if count == 1 else 'pairs'}. *Agrees.* {agree}", "", f"*Differs.* {differ}", ""]
    return lines


def main() -> None:
    """Write docs/results.md and the files that it shows."""
    out = Path(sys.argv[1])
    settings = next(
        summary["settings"]
        for summary in (json.loads((out / name / "summary.json").read_text(encoding="utf-8")) for name in PAGES)
        if "skipped" not in summary
    )
    lines = [
        "# Results: what MiniLM looks at",
        "",
        f"The twelve [studies](studies.md) of both papers for {settings['model']} on {settings['pairs_asked']:,} "
        "pairs of the STS benchmark's test set, with the papers' figures beside ours. The papers use other models "
        "(adjusted, fine-tuned MPNet and RoBERTa with 12 layers), so the figures can differ; the question is whether "
        "the findings carry over. We had only the abstract and a summary of the second paper, so its column has its "
        "findings in words.",
        "",
    ]
    after = [
        "`docs/make_results.py` writes this page from the summaries in `docs/results`. Figures are means ± standard "
        "deviations over pairs of texts.",
        "",
    ]
    for name in PAGES:
        after += section(out, name)
    how = (HERE / "results" / "how.txt").read_text(encoding="utf-8")
    page = [*wrap(lines), how, *wrap(after)]
    (HERE / "results.md").write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")


def wrap(lines: list[str]) -> list[str]:
    """Wrap paragraphs at 120 characters; tables, pictures and headings stay as they are."""
    return [line if line.startswith(("|", "!", "#")) else textwrap.fill(line, 120) for line in lines]


if __name__ == "__main__":
    main()
