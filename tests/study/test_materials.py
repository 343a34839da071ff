"""What the studies share: materials whose explanations are made once, results with their files, and the report."""

from __future__ import annotations

import json
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text
from sentence_transformers import SentenceTransformer

import zoo
from pairlens import Lens, Riemann, study
from pairlens.adjusted.module import Adjusted
from pairlens.errors import InputError
from pairlens.study import report
from pairlens.study.archive import Archive, pack, unpack
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language import conllu
from pairlens.study.language.annotations import Annotations
from pairlens.study.language.conllu import Sentence, Token, Word
from pairlens.study.materials import CHUNK, Materials
from pairlens.study.papers import convergence
from pairlens.study.result import Lacking, Result
from pairlens.study.views import Choice, View
from pairlens.text import words

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")
PAIRS = [
    ("The coffee here is not good.", "This coffee is bad.", 4.0),
    ("A man is playing the guitar.", "Nobody plays a guitar.", 2.0),
    ("The tea was cold.", "The tea wasn't hot.", 4.5),
    ("I don't think so, do you?", "The trains are late.", 0.0),
]
TEXTS = [text for a, b, _ in PAIRS for text in (a, b)]


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens(zoo.encoder("bert"))


@pytest.fixture(scope="module")
def annotated() -> Annotations:
    """Every word of the texts, with parts of speech and roles that go round."""
    documents = []
    for text in TEXTS:
        found = []
        for number, (start, end) in enumerate(words(text), 1):
            tag, role = ("NOUN", "obj") if number % 3 == 1 else ("VERB", "root") if number % 3 == 2 else ("DET", "det")
            word = Word(number, text[start:end], "", tag, 0, role, (start, end))
            found.append(Token(word.form, [word], word.span))
        documents.append([Sentence(text, found)])
    return Annotations(documents)


def materials(lens: Lens, **options) -> Materials:
    defaults = {"sweep": 2, "points": 4, "progress": False, "pairs": PAIRS}
    return Materials(lens, **(defaults | options))  # pyright: ignore[reportArgumentType]


# Views.


def test_default_views(lens):
    assert [view.label for view in Choice().standard(lens)] == ["shapley, project", "layer 2, ignore"]
    assert [view.label for view in Choice().sweep(lens)][:2] == ["layer 0, project", "layer 1, project"]
    assert len(Choice().sweep(lens)) == 2 * (lens.layers + 1)


def test_views_that_were_asked_for(lens):
    def labels(**asked):
        return [view.label for view in Choice(**asked).standard(lens)]

    assert labels(method="occlusion") == ["occlusion, project"]
    assert labels(layers=(-1,)) == [f"layer {lens.layers}, project"]
    assert labels(layers=(-1, 0, 0)) == ["layer 0, project", f"layer {lens.layers}, project"]
    assert labels(reference_terms="keep") == ["shapley, keep"]
    assert labels(method="integrated-jacobian", reference_terms="shift") == ["layer 0, shift"]
    assert [view.layer for view in Choice(layers=(1,), reference_terms="ignore").sweep(lens)] == [1]


def test_views_of_static_embeddings_and_adjusted_models():
    assert [view.label for view in Choice().standard(Lens(zoo.static()))] == ["layer 0, ignore"]
    adjusted = Lens(adjust(zoo.encoder("bert")))
    assert {view.reference_terms for view in Choice().sweep(adjusted)} == {"shift"}
    assert [view.label for view in Choice().standard(adjusted)] == ["shapley, shift", "layer 2, shift"]


def adjust(model: SentenceTransformer) -> SentenceTransformer:
    """The model, shifted by its reference without any training."""
    *body, normalize = model
    return SentenceTransformer(modules=[Adjusted(body), normalize], device="cpu")


# Materials and their archive.


@pytest.mark.parametrize("terms", ["project", "ignore", "shift", "keep"])
def test_explanations_are_those_of_the_lens(lens, terms):
    view = View("integrated-jacobian", 1, terms)
    found = materials(lens).explain(view)
    expected = lens.explain_many([pair[:2] for pair in PAIRS], layer=1, reference_terms=terms, progress=False)
    for (row, e), other in zip(found, expected, strict=True):
        assert (row.a, row.b) == (e.text_a, e.text_b)
        np.testing.assert_allclose(e.matrix, other.matrix, atol=1e-6)
        assert (e.score, e.base) == pytest.approx((other.score, other.base), abs=1e-6)


def test_a_decomposition_is_made_once(lens, tmp_path, monkeypatch):
    made = []
    decompose = Lens.decompose
    monkeypatch.setattr(
        Lens, "decompose", lambda self, texts, **more: made.append(texts) or decompose(self, texts, **more)
    )
    one, other = View("integrated-jacobian", 1, "ignore"), View("integrated-jacobian", 1, "shift")
    first = materials(lens, archive=Archive(tmp_path)).explain(one)
    assert made == [TEXTS]  # every text once
    again = materials(lens, archive=Archive(tmp_path))
    second, sibling = again.explain(one), again.explain(other)
    assert len(made) == 1  # the treatment that takes the same embedding apart costs nothing more
    for (_, e), (_, same) in zip(first, second, strict=True):
        assert np.array_equal(e.matrix, same.matrix)
        assert e.settings == same.settings
        assert e.units_a == same.units_a
    assert not np.allclose(sibling[0][1].matrix, first[0][1].matrix)
    materials(lens, archive=Archive(tmp_path), tol=1e-2).explain(one)
    assert len(made) == 2  # other settings are other pieces


def test_a_larger_limit_shares_whole_chunks(lens, tmp_path):
    pairs = [(f"one {i}", f"two {i}") for i in range(CHUNK + 3)]
    view = View("output", None, "project")
    materials(lens, pairs=pairs[:CHUNK], archive=Archive(tmp_path)).explain(view)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(materials(lens, pairs=pairs, archive=Archive(tmp_path)).explain(view)) == CHUNK + 3
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(after) == len(before) + 1
    assert {name: after[name] for name in before} == before


def test_pieces_are_the_same_however_many_pairs_are_explained_together(lens, tmp_path):
    pairs = [(f"one {i}", f"two {i}") for i in range(2 * CHUNK + 3)]
    view = View("output", None, "project")
    for folder, together in (("apart", CHUNK), ("joined", 2 * CHUNK)):
        found = materials(lens, pairs=pairs, archive=Archive(tmp_path / folder), together=together).explain(view)
        assert [row.number for row, _ in found] == list(range(1, len(pairs) + 1))
    assert tree(tmp_path / "apart") == tree(tmp_path / "joined")
    # A run that was cut off between two pieces of a group.
    next((tmp_path / "joined").iterdir()).unlink()
    again = materials(lens, pairs=pairs, archive=Archive(tmp_path / "joined"), together=2 * CHUNK).explain(view)
    assert [e.text_a for _, e in again] == [a for a, _ in pairs]
    assert tree(tmp_path / "apart") == tree(tmp_path / "joined")


def test_some_of_the_pairs_are_taken_from_what_is_kept_of_all(lens, tmp_path):
    own = materials(lens, archive=Archive(tmp_path))
    view = View("output", None, "project")
    everything = own.explain(view)
    before = set(tmp_path.iterdir())
    some = own.explain(view, [own.rows[3], own.rows[1]])
    assert set(tmp_path.iterdir()) == before  # nothing was made
    assert [row.number for row, _ in some] == [4, 2]
    for (_, e), place in zip(some, (3, 1), strict=True):
        assert np.array_equal(e.matrix, everything[place][1].matrix)
    # Texts that are not in the data have the same numbers, and are others.
    (new,) = own.of_texts(view, [("Something else.", "Nothing.")])
    assert new is not None
    assert new.text_a == "Something else."
    assert len(set(tmp_path.iterdir())) == len(before) + 1


def test_words_are_sums_or_means(lens):
    with pytest.raises(InputError, match="unknown words 'median'"):
        materials(lens, words="median")


def test_a_text_that_cannot_be_explained_is_left_out_and_noted(lens):
    bad = "\N{ZERO WIDTH SPACE}"
    own = materials(lens, pairs=[*PAIRS[:2], ("Tea.", bad, 1.0)])
    view = View("output", None, "project")
    assert [row.number for row, _ in own.explain(view)] == [1, 2]
    assert list(own.left_out["output, project"]) == [3]
    assert "no token of the text" in own.describe([view], 2)["left_out"]["output, project"]["3"]
    assert np.isnan(own.score([("Tea.", bad)])).all()


def test_options_that_cannot_be_used_are_no_fault_of_a_text(lens):
    with pytest.raises(InputError, match="has no layer"):
        materials(lens).explain(View("shapley", 3, "project"))


def test_plain_scores_are_the_model_s_own(lens):
    model = zoo.encoder("bert")
    found = materials(lens).score([pair[:2] for pair in PAIRS])
    expected = [float(model.similarity(model.encode(a), model.encode(b))) for a, b, _ in PAIRS]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_pieces_come_back_as_they_were(lens, tmp_path):
    entries = [lens.explain(*PAIRS[0][:2], layer=1), "no reason", lens.explain(*PAIRS[1][:2], layer=2)]
    archive = Archive(tmp_path)
    archive.keep({"key": 1}, pack(entries))
    kept = archive.recall({"key": 1})
    assert kept is not None
    back = unpack(kept)
    assert back[1] == "no reason"
    for one, other in ((entries[0], back[0]), (entries[2], back[2])):
        assert np.array_equal(one.matrix, other.matrix)  # pyright: ignore[reportAttributeAccessIssue]
        assert one.settings == other.settings  # pyright: ignore[reportAttributeAccessIssue]
    assert archive.recall({"key": 2}) is None
    (piece,) = tmp_path.iterdir()
    piece.write_bytes(piece.read_bytes()[:100])
    with pytest.raises(InputError, match="Delete it, and start again"):
        archive.recall({"key": 1})


def test_what_a_killed_run_left_half_written_goes(tmp_path):
    (tmp_path / ".0123456789ab.tmp").write_text("half")
    (tmp_path / "kept.npz").write_text("whole")
    Archive(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.npz"]


# The studies, on a tiny model.


@pytest.fixture(scope="module")
def everything(lens, annotated) -> Materials:
    adjusted, twin = Lens(adjust(zoo.encoder("bert"))), Lens(zoo.encoder("bert"))
    return materials(lens, annotations=annotated, others=[Lens(zoo.encoder("roberta"))], adjusted=adjusted, twin=twin)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_study_gives_a_table_a_picture_and_a_summary(name, everything, tmp_path):
    result = study.run(name, everything)
    assert not result.skipped
    assert result.table
    assert result.sentences
    assert {path.name for path in result.save(tmp_path)} == {
        "table.csv",
        "pairs.parquet",
        f"{name}.png",
        f"{name}.svg",
        "summary.json",
    }
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert (summary["study"], summary["title"]) == (name, CATALOGUE[name].title)
    assert summary["settings"]["pairs"] >= 1
    parquet = import_module("pyarrow.parquet")
    assert parquet.read_table(tmp_path / "pairs.parquet").num_rows == len(result.raw)
    assert len(result.to_pandas()) == len(result.table)
    shown = " ".join(text.get_text() for text in result.plot().findobj(Text) if isinstance(text, Text))
    assert "pair" in shown, "the picture does not say how many pairs it is made of"
    assert "nan" not in " ".join(result.sentences)


@pytest.mark.parametrize("name", ["convergence", "failures", "lexical-bias"])
@pytest.mark.parametrize("kind", ["adjusted", "dot"])
def test_studies_of_other_kinds_of_models(name, kind):
    plain = zoo.encoder("bert", normalize=kind != "dot", similarity="dot" if kind == "dot" else None)
    own = materials(Lens(adjust(plain) if kind == "adjusted" else plain), choice=Choice(layers=(2,)))
    result = study.run(name, own)
    assert not result.skipped
    assert {view.split(", ")[1] for view in result.settings["explained_by"]} == {
        "shift" if kind == "adjusted" else "project"
    }


def test_equal_steps_are_those_of_the_rule(lens):
    own = materials(lens, pairs=PAIRS[:1], points=8, choice=Choice(layers=(0, 1)))
    raw = convergence.study(own).raw
    for layer in (0, 1):
        row = next(r for r in raw if (r["rule"], r["asked"], r["layer"]) == ("riemann", 8, layer))
        e = lens.explain(*PAIRS[0][:2], layer=layer, rule=Riemann(8))
        assert row["error"] == pytest.approx(abs(e.gap), rel=1e-3, abs=1e-6)
        assert row["gap"] == pytest.approx((e.gap_a + e.gap_b) / 2, rel=1e-3)
    steps = [row["gap"] for row in raw if row["rule"] == "gauss-legendre" and row["layer"] == 1]
    assert all(after < before for before, after in pairwise(steps[:5]))
    assert all(row["gap"] <= row["asked"] for row in raw if row["rule"] == "adaptive")


def test_convergence_of_many_pairs_at_a_time_is_that_of_each(lens, monkeypatch):
    """As on a GPU, where texts of one length are integrated together; those out of reach take no other with them."""
    monkeypatch.setattr(convergence, "TOLERANCES", (1e-2, 1e-9))
    own, view = materials(lens), View("integrated-jacobian", 0, "project")
    many = convergence._rules(own, view, own.rows)
    for row, together in zip(own.rows, many, strict=True):
        (alone,) = convergence._rules(own, view, [row])
        assert isinstance(together, list)
        assert isinstance(alone, list)
        assert [line["points"] for line in together] == [line["points"] for line in alone]
        for name in ("error", "gap"):
            assert [line[name] for line in together] == pytest.approx([line[name] for line in alone], abs=2e-6)
        reached, unreached = together[-2:]
        assert (reached["asked"], unreached["asked"]) == (1e-2, 1e-9)
        assert unreached["gap"] == reached["gap"] > 1e-9


def test_convergence_leaves_out_what_cannot_be_read(lens):
    own = materials(lens, pairs=[("", "b"), *PAIRS[:1]], sweep=2, choice=Choice(layers=(2,)))
    result = convergence.study(own)
    assert {row["pair"] for row in result.raw} == {2}
    assert result.settings["pairs"] == 1
    assert "text a: " in next(iter(result.settings["left_out"].values()))["1"]
    empty = materials(lens, pairs=[("", "b")], choice=Choice(layers=(2,)))
    assert "none of the 1 pairs can be read. The first one: text a: " in study.run("convergence", empty).skipped


def test_an_adjusted_model_without_training_agrees_with_its_twin(everything):
    table = study.run("agreement", everything).table
    rows = [row for row in table if row["comparison"].startswith("“ignore” of the twin")]
    assert len(rows) == everything.lens.layers + 1
    assert all(row["spearman_mean"] == pytest.approx(1.0, abs=1e-3) for row in rows)
    plain = [row for row in table if "“project”, one model" in row["comparison"]]
    assert all(row["spearman_mean"] < 0.999 for row in plain)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("parts-of-speech", {}, "needs parts of speech. Give --annotations"),
        ("syntactic-roles", {}, "needs dependency relations"),
        ("models", {}, "there is one"),
        ("failures", {"pairs": [pair[:2] for pair in PAIRS]}, "no scores by people"),
        ("layers", {"pair": 99}, "pair 99 is not among those of this run; some that are: 1, 2, 3, 4"),
        ("agreement", {"twin": "itself"}, "--adjusted and --twin go together"),
        ("agreement", {"twin": "itself", "adjusted": "another"}, "read pair 1 as different tokens"),
        ("failures", {"pairs": [("Tea.", "Tea.", 5.0)]}, "no pair of texts of at most 12 words is off"),
    ],
)
def test_a_study_says_what_it_lacks(lens, name, options, reason, tmp_path):
    models = {"itself": lens, "another": Lens(zoo.encoder("roberta"))}
    options = {
        key: models.get(value, value) if key in ("twin", "adjusted") else value for key, value in options.items()
    }
    (tmp_path / "table.csv").write_text("of an earlier run")
    result = study.run(name, materials(lens, **options))
    assert reason in result.skipped
    assert [path.name for path in result.save(tmp_path)] == ["summary.json"]
    assert json.loads((tmp_path / "summary.json").read_text())["skipped"] == result.skipped
    assert not (tmp_path / "table.csv").exists()
    with pytest.raises(InputError, match="has no picture"):
        result.plot()


def test_static_embeddings_have_no_layers_to_study():
    own = materials(Lens(zoo.static()))
    for name in ("convergence", "layers"):
        assert "static embeddings" in study.run(name, own).skipped
    assert not study.run("cumulative", own).skipped


def test_annotations_without_what_a_study_needs(lens, tmp_path):
    path = tmp_path / "f.conllu"
    sentences = [Sentence(TEXTS[0], [Token(w, [Word(1, w, "", "NOUN", None, "", None)]) for w in TEXTS[0].split()])]
    path.write_text("\n".join(conllu.write(sentences, "1")), encoding="utf-8")
    other = Annotations([[Sentence("Something else.", [])]])
    assert "hold none of the pairs' texts" in study.run("parts-of-speech", materials(lens, annotations=other)).skipped
    with pytest.raises(Lacking, match="hold no dependency relations"):
        import_module("pairlens.study.papers.syntactic_roles").study(
            materials(lens, annotations=_untagged(), pairs=[("tea time", "tea time")])
        )


def _untagged() -> Annotations:
    tokens = [Token(w, [Word(n, w, "", "", None, "")]) for n, w in enumerate(("tea", "time"), 1)]
    return Annotations([[Sentence("tea time", tokens)]])


# The report.


def test_the_report_shows_what_texts_say_and_runs_none_of_it(lens, tmp_path):
    evil = '<script>alert(1)</script> & "quotes" <img src=x onerror=alert(2)>'
    about = CATALOGUE["cumulative"]
    from matplotlib.figure import Figure

    settings = {**materials(lens).describe([], 2), "data": evil, "explained_by": ["v"], "model": "m<b>"}
    result = Result(about, [{"view": evil, "x": 0.123456}], [{"x": 1}], {}, [evil], settings, draw=Figure)
    folder = tmp_path / "cumulative"
    folder.mkdir()
    result.save(folder)
    (tmp_path / "models").mkdir()
    Result(CATALOGUE["models"], settings=settings, skipped=evil).save(tmp_path / "models")
    text = report.write(tmp_path).read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot;") >= 3
    assert "data:image/svg+xml;base64," in text
    assert "m&lt;b&gt;" in text
    assert "0.1235" in text
    with pytest.raises(InputError, match="holds no study"):
        report.write(folder)


def test_pictures_and_tables_are_the_same_bytes_every_time(everything, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        study.run("cumulative", everything).save(folder)
    assert tree(folders[0]) == tree(folders[1])


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
