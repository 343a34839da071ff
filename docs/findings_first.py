"""The findings of the first paper's studies beside the paper's: rows of a table and two sentences for each."""

from __future__ import annotations

from findings_words import Figures, Page, compared, share, spread

from pairlens.study.result import small


def convergence(figures: Figures, settings: Figures) -> Page:
    """How many points an integral needs."""
    last = settings["layers"]
    deep = f"layer {int(0.75 * last + 0.5)}"
    steps = sorted((name for name in figures if name.startswith("riemann")), key=lambda name: int(name.split()[1]))
    many = int(steps[-1].split()[1])
    few, most = figures[steps[0]], figures[steps[-1]]
    at = {name: f"{small(few[name]['error_mean'])} ± {small(few[name]['error_sd'])}" for name in (deep, "layer 0")}
    first = f"{small(most['layer 0']['error_mean'])} ± {small(most['layer 0']['error_sd'])}"
    adaptive = figures["adaptive 0.001"]
    points = ", ".join(f"{numbers['points_mean']:.0f}" for numbers in adaptive.values())
    rows = [
        (
            "error three quarters up the layers",
            "(5 ± 5)·10⁻³ at N = 50 (layer 9 of 12)",
            f"{at[deep]} at N = 64",
        ),
        (
            "error at the input",
            "MPNet: not falling at N = 2,500; RoBERTa: (1 ± 1)·10⁻²",
            f"{at['layer 0']} at N = 64, {first} at N = {many:,}",
        ),
        ("points for a gap of 10⁻³, adaptive", "no such rule", f"{points} at layers 0 to {last}"),
    ]
    worst = max(numbers["error_mean"] for numbers in figures["gauss-legendre 32"].values())
    ratio = [few[name]["gap_mean"] / most[name]["gap_mean"] for name in most]
    first_order = all(many / 64 / 1.5 < value < many / 64 * 1.5 for value in ratio)
    agree = (
        f"With 64 equal steps the error is {small(few[deep]['error_mean'])} three quarters up the layers, where the "
        "paper has 5·10⁻³ with 50"
        + ("; from there on the gap halves when the steps double, at every layer." if first_order else ".")
    )
    differ = (
        f"The layers near the input converge here too: with {many:,} equal steps to "
        f"{small(most['layer 0']['error_mean'])}, with 32 Gauss–Legendre points to {small(worst)} at the worst "
        "layer. MiniLM has half as many layers as MPNet, so this is not the same integral."
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
        f"there are {share(inner['ignore'])}: every text differs from its reference in one common direction, and that "
        "is left in every pair. The paper's 38 % is for an adjusted model, which was trained with that taken out."
    )
    return rows, agree, differ


def cumulative(figures: Figures, settings: Figures) -> Page:
    """How many pairs make up the score."""
    rows = []
    for what, theirs, show in (
        ("strongest 5 % of token pairs", "77 ± 133 %", lambda numbers: spread(numbers, "top")),
        ("needed for sd below 5 %", "78 %", lambda numbers: share(numbers["needed_sd_5%"])),
        ("needed for sd below 2 %", "92 %", lambda numbers: share(numbers["needed_sd_2%"])),
    ):
        rows.append((what, theirs, "; ".join(f"{show(numbers)} ({view})" for view, numbers in figures.items())))
    needs = [numbers["needed_sd_2%"] for numbers in figures.values() if numbers["needed_sd_2%"] is not None]
    tops = [numbers["top_mean"] for numbers in figures.values()]
    agree = (
        f"Few pairs make up much of the score, {share(min(tops))} to {share(max(tops))} by the strongest 5 %, and it "
        f"takes {share(min(needs))} to {share(max(needs))} of them until the standard deviation is below 2 %."
    )
    sds = [numbers["top_sd"] for numbers in figures.values()]
    varies = "less" if max(sds) < 1.33 else "more" if min(sds) > 1.33 else "more or less, as the method has it,"
    differ = (
        f"The share of the strongest pairs varies {varies} from pair to pair (± "
        f"{share(min(sds))} to {share(max(sds))} instead of ± 133 %), and it takes "
        f"{'fewer' if max(needs) < 0.92 else 'as many'} of them. How many depends on the method, on one and the same "
        "model."
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
        rows.append((what, theirs, "; ".join(f"{spread(numbers[name])} ({view})" for view, numbers in figures.items())))
    tops = {view: numbers["ten"][0] for view, numbers in figures.items()}
    nouns = all(top == "NOUN–NOUN" for top in tops.values())
    agree = (
        "Pairs of nouns are the most frequent relation among the highest contributions, in both ways of explaining."
        if nouns
        else "Nouns and verbs are among the most frequent relations of the highest contributions."
    )
    first, second = (list(figures.values())[i]["nouns_and_verbs"]["mean"] for i in (0, -1))
    wide = max(numbers["nouns_and_verbs"]["sd"] for numbers in figures.values())
    differ = (
        f"How much nouns and verbs rebuild depends on the method: {share(first)} with the default and {share(second)} "
        f"with the papers' settings, with standard deviations of {share(wide)} at most where the paper has 90 %. "
        "Words are sums of tokens here and means there."
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
    scores = {name: numbers["score"] for name, numbers in figures.items()}
    rows = [
        (
            "scores of the pair shown",
            "two examples",
            ", ".join(f"{score:.2f} ({name})" for name, score in scores.items()),
        )
    ]
    strongest = {numbers["strongest"] for numbers in figures.values()}
    agree = (
        "The models see the same pair differently."
        if len(strongest) > 1
        else "The strongest pair of words is the same in all of them."
    )
    differ = (
        "These are a base model and what was trained from it, while the paper compares models of different families."
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
    shared = figures["overlap"]
    rows.append(
        (
            "words that both texts have",
            "not asked",
            ", ".join(f"{share(value)} ({name})" for name, value in shared.items()),
        )
    )
    over, under = figures["over"], figures["under"]
    more = "overestimates more often than it underestimates"
    if over <= under:
        more = "underestimates more often" if over < under else "over- and underestimates equally often"
    lead = (shared["over"] or 0.0) > (shared["under"] or 0.0)
    agree = (
        "Pairs that are rated too high share more words than pairs that are rated too low."
        if lead
        else "Both kinds of failure exist, as in the paper."
    )
    differ = (
        f"MiniLM {more}. It was not trained on these labels, so that part of "
        "every difference is a matter of scale, which the paper's models were trained to fit."
    )
    return rows, agree, differ
