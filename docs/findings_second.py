"""The findings of the second paper's studies beside its abstract's: rows of a table and two sentences for each."""

from __future__ import annotations

from findings_words import Figures, Page, share

from pairlens.study.result import signed


def agreement(figures: Figures, settings: Figures) -> Page:
    """Approximate against exact."""
    rows = []
    for name, numbers in figures.items():
        said = "agree often, reliable when very deep" if "exact" in name else "no such comparison"
        for measure in ("Spearman", "Pearson"):
            values = ", ".join(f"{layer[f'{measure.lower()}_mean']:.2f}" for layer in numbers.values())
            rows.append((f"{measure}, {name}", said, f"{values} at layers 0 to {settings['layers']}"))
    curves = {name: [layer["spearman_mean"] for layer in numbers.values()] for name, numbers in figures.items()}
    plain = next(numbers for name, numbers in curves.items() if "“project”, one model" in name)
    ignored, projected = (
        next(numbers for name, numbers in curves.items() if name.startswith(f"“{terms}” of the twin"))
        for terms in ("ignore", "project")
    )
    deep, shallow = sum(ignored[-2:]) / 2, sum(ignored[:2]) / 2
    agree = (
        f"Approximate contributions (“ignore”) agree with exact ones {'better' if deep > shallow else 'no better'} at "
        f"the last two layers ({deep:.2f}) than at the first two ({shallow:.2f}); their sizes, as Pearson sees them, "
        "agree more than the ranking of all of them."
    )
    nearer = sum(one > other for one, other in zip(projected, ignored, strict=True))
    differ = (
        "Taking the reference's share out exactly (“project”), which the papers do not do, comes nearer to the "
        f"adjusted model than leaving it (“ignore”) at {nearer} of {len(ignored)} layers, and the two agree to "
        f"{min(plain):.2f} only at their worst layer on one and the same model: what is approximate is not small. "
        "“shift” differs from “ignore” by a factor for the whole matrix, so that the two always agree."
    )
    return rows, agree, differ


def syntactic_roles(figures: Figures, settings: Figures) -> Page:
    """Which roles contribute together."""
    rows = []
    for view, numbers in figures.items():
        best = ", ".join(f"{name} ({signed(value)})" for name, value in list(numbers["highest"].items())[:4])
        rows.append((f"highest mean contribution, {view}", "arguments and predicates of main clauses", best))
    best = {name for numbers in figures.values() for name in list(numbers["highest"])[:4]}
    same = sum(name.split("–")[0] == name.split("–")[1] for name in best)
    agree = (
        f"{same} of the {len(best)} relations on top join a role with itself: objects with objects, subjects with "
        "subjects, predicates with predicates."
    )
    differ = (
        "What stands beside ours is what the first paper recalls of synthetic sentences (§ 3.4); the second paper's "
        "figures we do not have. Roles have the names of the parser that was used."
    )
    return rows, agree, differ


def negation(figures: Figures, settings: Figures) -> Page:
    """What a negation does."""
    words = figures["words"]
    view = words[0]["view"]
    data = {row["kind"]: row for row in words if row["part"] == "data" and row["view"] == view}
    added = {row["kind"]: row for row in words if row["part"] == "sentences" and row["view"] == view}
    rows = [
        (
            "deleting the word moves the score by",
            "mostly ignored",
            f"cue {data['cue']['moved_absolute']:.3f}, function word {data['function']['moved_absolute']:.3f}, "
            f"content word {data['content']['moved_absolute']:.3f}",
        ),
        (
            "one word more lowers the score by",
            "mostly ignored",
            f"negation {added['cue']['moved_mean']:.3f}, “also”, “still”, “now” {added['function']['moved_mean']:.3f}",
        ),
        (
            "the word's own pairs",
            "mostly ignored",
            f"negation {signed(added['cue']['own_mean'])}, others {signed(added['function']['own_mean'])}",
        ),
    ]
    if figures["labels"] is not None and figures["labels"]["one_text"]["off"] is not None:
        labels = figures["labels"]
        rows.append(
            (
                "score less label",
                "not asked",
                f"{signed(labels['one_text']['off'], 2)} with one text negated ({labels['one_text']['pairs']} "
                f"pairs), {signed(labels['none']['off'], 2)} with none",
            )
        )
    other, content = (data["cue"]["moved_absolute"] / data[kind]["moved_absolute"] for kind in ("function", "content"))
    agree = (
        f"In the data a negation moves the score by {data['cue']['moved_absolute']:.3f} only, {other:.1f} times as "
        f"much as another function word and {content:.1f} times as much as a content word."
    )
    times = added["cue"]["moved_mean"] / added["function"]["moved_mean"]
    differ = (
        f"It is not ignored: in short sentences a negation lowers the score by {added['cue']['moved_mean']:.2f}, "
        f"{times:.1f} times as much as a word that changes little, and its own pairs are "
        f"{'negative' if added['cue']['own_mean'] < 0 else 'positive'} with the default method."
    )
    return rows, agree, differ


def adjectives(figures: Figures, settings: Figures) -> Page:
    """Synonyms and antonyms."""
    means, told = figures["means"], figures["told_apart"]
    view = means[0]["view"]
    rows = []
    for source in dict.fromkeys(row["source"] for row in means):
        relations = {row["relation"]: row for row in means if row["source"] == source and row["view"] == view}
        rows.append(
            (
                f"mean score, adjectives from {source}",
                "explored, no figure at hand",
                ", ".join(f"{row['score_mean']:.2f} {relation}" for relation, row in relations.items()),
            )
        )
        areas = told[view][source]
        rows.append(
            (
                f"synonyms above antonyms, {source}",
                "explored, no figure at hand",
                f"{share(areas['score'])} by score, {share(areas['own'])} by the adjectives' own pair",
            )
        )
    areas = [area["score"] for area in told[view].values() if area["score"] is not None]
    agree = (
        f"Opposites score almost like synonyms: a synonym is above an antonym {share(min(areas))} to "
        f"{share(max(areas))} of the time, where a coin gives 50 %."
    )
    differ = (
        "The abstract names the question and no figure, so that nothing can be compared but that; and the answer "
        "depends on the list of adjectives, as the rows above show."
    )
    return rows, agree, differ


def lexical_bias(figures: Figures, settings: Figures) -> Page:
    """Equal words."""
    rows = []
    for view, numbers in figures.items():
        parts = ", ".join(f"{share(part['of_all'])} {kind}" for kind, part in numbers["shares"].items())
        rows.append((f"share of the scores, {view}", "lexical bias", parts))
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
    top = first["highest_fifth"]
    both = top["synonyms"] is not None and top["same content word"] is not None
    differ = f"Measured against people, the model {word} pairs that share many words." + (
        f" In the fifth with the highest scores a pair of synonyms contributes {signed(top['synonyms'])} and one "
        f"of the same word {signed(top['same content word'])}."
        if both
        else ""
    )
    return rows, agree, differ
