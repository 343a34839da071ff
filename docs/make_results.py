"""Fill docs/results.md from what `pairlens study all` wrote: python docs/make_results.py OUT "the command for it".

Figures come from the summaries, and every word that compares two of them is chosen here by comparing them, so that the
page cannot say what the figures do not.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Figures = dict[str, Any]
Rows = list[tuple[str, str, str]]
"""What is measured, the papers' figure, ours."""
Page = tuple[Rows, str, str]
"""The table, a sentence on where the two agree, and one on where they do not."""


def share(value: float | None) -> str:
    """A share in per cent."""
    return "—" if value is None else f"{100 * value:.0f} %".replace("-", "−")


def spread(own: Figures, name: str = "") -> str:
    """A mean and a standard deviation in per cent."""
    mean, sd = (own[f"{name}_{what}"] if name else own[what] for what in ("mean", "sd"))
    return f"{100 * mean:.0f} ± {100 * sd:.0f} %".replace("-", "−")


def number(value: float) -> str:
    """A number that may be very small."""
    if value == 0 or abs(value) >= 0.01:
        return f"{value:.2g}".replace("-", "−")
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}·10<sup>{int(power)}</sup>".replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign."""
    return f"{value:+.{digits}f}".replace("-", "−")


def compared(ours: float, theirs: float, slack: float, more: str = "more", less: str = "less") -> str:
    """How our figure compares with theirs."""
    return "about as many" if abs(ours - theirs) <= slack else more if ours > theirs else less


def convergence(figures: Figures, settings: Figures) -> Page:
    """How many points an integral needs."""
    last = settings["layers"]
    deep = f"layer {int(0.75 * last + 0.5)}"
    steps = sorted((name for name in figures if name.startswith("riemann")), key=lambda name: int(name.split()[1]))
    many = int(steps[-1].split()[1])
    few, most = figures[steps[0]], figures[steps[-1]]
    at = {name: f"{number(few[name]['error_mean'])} ± {number(few[name]['error_sd'])}" for name in (deep, "layer 0")}
    first = f"{number(most['layer 0']['error_mean'])} ± {number(most['layer 0']['error_sd'])}"
    adaptive = figures["adaptive 0.001"]
    points = ", ".join(f"{own['points_mean']:.0f}" for own in adaptive.values())
    rows = [
        (
            "error three quarters up the layers",
            "(5 ± 5)·10<sup>−3</sup> at N = 50 (layer 9 of 12)",
            f"{at[deep]} at N = 64",
        ),
        (
            "error at the input",
            "MPNet: not falling at N = 2,500; RoBERTa: (1 ± 1)·10<sup>−2</sup>",
            f"{at['layer 0']} at N = 64, {first} at N = {many:,}",
        ),
        ("points for a gap of 10<sup>−3</sup>, adaptive", "—", f"{points} at layers 0 to {last}"),
    ]
    worst = max(own["error_mean"] for own in figures["gauss-legendre 32"].values())
    agree = (
        "Equal steps converge at first order at every layer, and some fifty of them give the size of error that the "
        "paper has at a deep layer."
    )
    differ = (
        f"The layers near the input converge here too: with {many:,} equal steps to "
        f"{number(most['layer 0']['error_mean'])}, with 32 Gauss–Legendre points to {number(worst)} at the worst "
        "layer. MiniLM has half as many layers as MPNet, so this is not the same integral; but a rule of higher "
        "order is what makes it cheap."
    )
    return rows, agree, differ


def distribution(figures: Figures, settings: Figures) -> Page:
    """How many contributions are negative."""
    last, share_of = settings["layers"], figures["negative"]
    inner = {terms: share_of[f"layer {last - 1}, {terms}"] for terms in ("project", "ignore")}
    outer = {terms: share_of[f"layer {last}, {terms}"] for terms in ("project", "ignore")}
    rows = [
        (
            "negative, last layer but one",
            "38 % (layer 11 of 12)",
            f"{share(inner['project'])} (“project”), {share(inner['ignore'])} (“ignore”)",
        ),
        ("negative, output", "5 %", f"{share(outer['project'])} (“project”), {share(outer['ignore'])} (“ignore”)"),
    ]
    falls = outer["project"] < inner["project"] / 2
    agree = (
        "Negative contributions are common inside the model and rare at its output."
        if falls
        else "Both find negative contributions at inner layers."
    )
    word = compared(inner["project"], 0.38, 0.03, "more", "fewer")
    differ = (
        f"At the last layer but one there are {word} than in the paper; and with the papers' approximation (“ignore”) "
        f"there are {share(inner['ignore'])}, because what the reference shares with every text is added to every "
        "pair. The paper's 38 % is for an adjusted model, whose reference has no share."
    )
    return rows, agree, differ


def cumulative(figures: Figures, settings: Figures) -> Page:
    """How many pairs make up the score."""
    rows = []
    for what, theirs, show in (
        ("strongest 5 % of token pairs", "77 ± 133 %", lambda own: spread(own, "top")),
        ("needed for sd below 5 %", "78 %", lambda own: share(own["needed_sd_5%"])),
        ("needed for sd below 2 %", "92 %", lambda own: share(own["needed_sd_2%"])),
    ):
        rows.append((what, theirs, "; ".join(f"{show(own)} ({view})" for view, own in figures.items())))
    needs = [own["needed_sd_2%"] for own in figures.values() if own["needed_sd_2%"] is not None]
    agree = (
        f"A few pairs make up much of the score, and it takes {share(min(needs))} to {share(max(needs))} of them "
        "until it can be relied on."
    )
    sds = [own["top_sd"] for own in figures.values()]
    differ = (
        f"The strongest pairs vary {'less' if max(sds) < 1.33 else 'more'} from pair to pair (± {share(min(sds))} to "
        f"{share(max(sds))} instead of ± 133 %): a cosine of MiniLM is seldom close to zero, where shares explode. "
        "How many pairs it takes depends on the method at least as much as on the model."
    )
    return rows, agree, differ


def parts_of_speech(figures: Figures, settings: Figures) -> Page:
    """Which parts of speech do."""
    rows = []
    for what, theirs, name in (
        ("nouns and verbs rebuild", "53 ± 90 %", "nouns_and_verbs"),
        ("the ten most frequent relations", "66 ± 98 %", "ten_relations"),
        ("the strongest 90 % of the pairs", "95 ± 29 %", "strongest"),
    ):
        rows.append((what, theirs, "; ".join(f"{spread(own[name])} ({view})" for view, own in figures.items())))
    tops = {view: own["ten"][0] for view, own in figures.items()}
    nouns = all(top == "NOUN–NOUN" for top in tops.values())
    agree = (
        "Pairs of nouns are the most frequent relation among the highest contributions, in both ways of explaining."
        if nouns
        else "Nouns and verbs are among the most frequent relations of the highest contributions."
    )
    first, second = (list(figures.values())[i]["nouns_and_verbs"]["mean"] for i in (0, -1))
    differ = (
        f"How much nouns and verbs rebuild depends on the method: {share(first)} with the default and {share(second)} "
        "with the papers' settings, where every pair gets a part of what the references share. The standard "
        "deviations are smaller than the paper's, as for the strongest pairs. Words are sums of tokens here and "
        "means there."
    )
    return rows, agree, differ


def layers(figures: Figures, settings: Figures) -> Page:
    """One pair, layer by layer."""
    negative = figures["negative"]
    first, last = next(iter(negative.values())), list(negative.values())[-1]
    rows = [
        (
            "negative pairs of words",
            "“poorly” at layers 11 and 7, not at the output",
            f"{share(first)} at layer 0, {share(last)} at the output",
        )
    ]
    agree = (
        "What takes from the score at inner layers is gone at the output."
        if last < first
        else "Layers differ in sign, as in the paper."
    )
    differ = (
        "The pair is another one, chosen because its layers differ most among short pairs; one picture proves "
        "nothing about the others."
    )
    return rows, agree, differ


def models(figures: Figures, settings: Figures) -> Page:
    """One pair, model by model."""
    scores = {name: own["score"] for name, own in figures.items()}
    rows = [
        (
            "scores of the pair shown",
            "two examples",
            ", ".join(f"{score:.2f} ({name})" for name, score in scores.items()),
        )
    ]
    strongest = {own["strongest"] for own in figures.values()}
    agree = (
        "The models see the same pair differently."
        if len(strongest) > 1
        else "The strongest pair of words is the same in all of them."
    )
    differ = (
        "These are one base model and its two trained variants, while the paper compares models of different families."
    )
    return rows, agree, differ


def failures(figures: Figures, settings: Figures) -> Page:
    """Where the model is furthest from people."""
    rows = [
        ("Spearman with people", "85.9 (adjusted MPNet, cosine)", f"{100 * figures['spearman']:.1f}"),
        (
            "off by more than 0.25",
            "examples only",
            f"{share(figures['over'])} too high, {share(figures['under'])} too low",
        ),
    ]
    more = "over" if figures["over"] > figures["under"] else "under"
    agree = "Overestimated pairs share most of their words, and the words that differ are the ones that matter."
    differ = (
        f"MiniLM {more}estimates more often than the other way; it was not trained on these labels, so that part of "
        "every difference is a matter of scale."
    )
    return rows, agree, differ


def agreement(figures: Figures, settings: Figures) -> Page:
    """Approximate against exact."""
    rows = []
    for name, layers_ in figures.items():
        values = ", ".join(
            f"{own['spearman_mean']:.2f}" for own in layers_.values() if own["spearman_mean"] is not None
        )
        rows.append(
            (
                f"Spearman, {name}",
                "agree often, reliable when very deep",
                f"{values} at layers 0 to {settings['layers']}",
            )
        )
    exact = next((own for name, own in figures.items() if name.startswith("“ignore” of the twin")), None)
    plain = next(own for name, own in figures.items() if "“project”, one model" in name)
    curve = [own["spearman_mean"] for own in (exact or plain).values()]
    deep, shallow = sum(curve[-2:]) / 2, sum(curve[:2]) / 2
    agree = (
        f"Agreement is better for the last two layers ({deep:.2f}) than for the first two ({shallow:.2f})."
        if deep > shallow
        else f"Approximate and exact contributions agree to {min(curve):.2f} or more at every layer."
    )
    low = min(own["spearman_mean"] for own in plain.values())
    differ = (
        "On one and the same model, leaving the reference's share where it is (“ignore”) and taking it out exactly "
        f"(“project”) agree to {low:.2f} only at their worst layer: what is approximate is not small. “shift” differs "
        "from “ignore” by a factor for the whole matrix, so that the two always agree."
    )
    return rows, agree, differ


def syntactic_roles(figures: Figures, settings: Figures) -> Page:
    """Which roles contribute together."""
    rows = []
    for view, own in figures.items():
        best = ", ".join(f"{name} ({signed(value)})" for name, value in list(own["highest"].items())[:4])
        rows.append((f"highest mean contribution, {view}", "—", best))
    best = {name for own in figures.values() for name in list(own["highest"])[:4]}
    same = sum(name.split("–")[0] == name.split("–")[1] for name in best)
    agree = (
        f"{same} of the {len(best)} relations on top join a role with itself: objects with objects, subjects with "
        "subjects, predicates with predicates."
    )
    differ = (
        "The summary at hand of the second paper gives no figures for roles, so that only the direction can be "
        "compared; the labels are those of the parser that was used."
    )
    return rows, agree, differ


def negation(figures: Figures, settings: Figures) -> Page:
    """What a negation does."""
    words = figures["words"]
    view = words[0]["view"]
    data = {row["kind"]: row for row in words if row["part"] == "data" and row["view"] == view}
    own = {row["kind"]: row for row in words if row["part"] == "sentences" and row["view"] == view}
    rows = [
        (
            "deleting the word moves the score by",
            "mostly ignored",
            f"cue {data['cue']['moved_absolute']:.3f}, function word {data['function']['moved_absolute']:.3f}, "
            f"content word {data['content']['moved_absolute']:.3f}",
        ),
        (
            "one word more lowers the score by",
            "—",
            f"negation {own['cue']['moved_mean']:.3f}, “also”, “still”, “now” {own['function']['moved_mean']:.3f}",
        ),
        (
            "the word's own pairs",
            "—",
            f"negation {signed(own['cue']['own_mean'])}, others {signed(own['function']['own_mean'])}",
        ),
    ]
    if figures["labels"] is not None and figures["labels"]["one_text"]["off"] is not None:
        labels = figures["labels"]
        rows.append(
            (
                "score less label",
                "—",
                f"{signed(labels['one_text']['off'], 2)} with one text negated ({labels['one_text']['pairs']} "
                f"pairs), {signed(labels['none']['off'], 2)} with none",
            )
        )
    ratio = data["cue"]["moved_absolute"] / data["function"]["moved_absolute"]
    agree = (
        f"In the data a negation moves the score little: {ratio:.1f} times what another function word does, and "
        f"{data['cue']['moved_absolute'] / data['content']['moved_absolute']:.1f} times what a content word does."
    )
    differ = (
        f"It is not ignored: in short sentences it lowers the score by {own['cue']['moved_mean']:.2f}, "
        f"{own['cue']['moved_mean'] / own['function']['moved_mean']:.1f} times as much as a word that changes little. "
        "That is still far from what people would say."
    )
    return rows, agree, differ


def adjectives(figures: Figures, settings: Figures) -> Page:
    """Synonyms and antonyms."""
    means, told = figures["means"], figures["told_apart"]
    view = means[0]["view"]
    rows = []
    for source in dict.fromkeys(row["source"] for row in means):
        own = {row["relation"]: row for row in means if row["source"] == source and row["view"] == view}
        rows.append(
            (
                f"mean score, adjectives of {source}",
                "—",
                ", ".join(f"{row['score_mean']:.2f} {relation}" for relation, row in own.items()),
            )
        )
        areas = told[view][source]
        rows.append(
            (
                f"synonyms above antonyms, {source}",
                "—",
                f"{share(areas['score'])} by score, {share(areas['own'])} by the adjectives' own pair",
            )
        )
    areas = [own["score"] for own in told[view].values() if own["score"] is not None]
    agree = (
        "Opposites are judged as alike as synonyms: the score puts a synonym above an antonym only "
        f"{share(min(areas))} to {share(max(areas))} of the time, where a coin gives 50 %."
    )
    differ = (
        "The summary at hand of the second paper gives no figures; and lists of adjectives differ, of which the ones "
        "with rare synonyms make the model look worse."
    )
    return rows, agree, differ


def lexical_bias(figures: Figures, settings: Figures) -> Page:
    """Equal words."""
    rows = []
    for view, own in figures.items():
        parts = ", ".join(f"{share(part['of_all'])} {kind}" for kind, part in own["shares"].items())
        rows.append((f"share of the scores, {view}", "—", parts))
    first = next(iter(figures.values()))
    rows.append(
        (
            "overlap of words and overestimation, Spearman",
            "lexical bias",
            f"{first['overlap_against_error']:+.2f}".replace("-", "−"),
        )
    )
    same = first["shares"]["same content word"]["of_all"]
    agree = f"Pairs of the same content word explain {share(same)} of the scores with the default method."
    word = "overestimates" if first["overlap_against_error"] > 0.05 else "does not overestimate"
    differ = (
        f"Measured against people, the model {word} pairs that share many words; that equal words weigh much is right "
        "as long as equal words mean the same. Synonyms, where there are any, weigh about as much as the meaning "
        "they share."
    )
    return rows, agree, differ


PAGES: dict[str, Callable[[Figures, Figures], Page]] = {
    "convergence": convergence,
    "distribution": distribution,
    "cumulative": cumulative,
    "parts-of-speech": parts_of_speech,
    "layers": layers,
    "models": models,
    "failures": failures,
    "agreement": agreement,
    "syntactic-roles": syntactic_roles,
    "negation": negation,
    "adjectives": adjectives,
    "lexical-bias": lexical_bias,
}


def section(out: Path, name: str) -> list[str]:
    """The part of the page about one study; its summary, table and picture are copied beside the page."""
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
            settings[key] = Path(settings[key]).name  # where it lay on somebody's machine is nobody's business
    (kept / "summary.json").write_text(json.dumps(summary, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    rows, agree, differ = PAGES[name](summary["figures"], summary["settings"])
    lines += ["", f"![{summary['title']}](results/{name}/{name}.svg)", "", "| | The papers | Here |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    count = summary["settings"]["pairs"]
    lines += ["", f"{count:,} {'pair' if count == 1 else 'pairs'}. *Agrees.* {agree}", "", f"*Differs.* {differ}", ""]
    return lines


def main() -> None:
    """Write docs/results.md and what it shows."""
    out, command = Path(sys.argv[1]), sys.argv[2]
    settings = next(
        own["settings"]
        for own in (json.loads((out / name / "summary.json").read_text(encoding="utf-8")) for name in PAGES)
        if "skipped" not in own
    )
    lines = [
        "# Results: what MiniLM looks at",
        "",
        f"The twelve [studies](studies.md) of both papers for {settings['model']} on {settings['pairs_asked']:,} "
        "pairs of the STS benchmark's test set, with the papers' figures beside ours. The papers' models are others "
        "(fine-tuned MPNet and RoBERTa with 12 layers, adjusted), so that figures need not be equal; whether "
        "findings carry over is the question.",
        "",
        "```bash",
        command,
        "```",
        "",
        "This page is written by `docs/make_results.py` from the summaries under `docs/results`. Figures are means ± "
        "standard deviations over pairs of texts.",
        "",
    ]
    for name in PAGES:
        lines += section(out, name)
    (HERE / "results.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
