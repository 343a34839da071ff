import csv
import json
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError, MissingExtra
from pairlens.io import documents
from pairlens.text import Unit

SUFFIXES = (".json", ".npz", ".csv", ".parquet")
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=12)  # control characters, quotes, commas, newlines and emoji among them
PLACES = st.integers(0, 99)
UNITS = st.builds(Unit, TEXTS, PLACES, PLACES, st.sampled_from(["text", "special", "rest"])) | st.builds(
    Unit, TEXTS, PLACES, PLACES, st.sampled_from(["compound", "sentence"]), st.tuples(st.tuples(PLACES, PLACES))
)
SETTINGS = st.dictionaries(TEXTS, st.none() | NUMBERS | TEXTS | st.lists(st.integers()) | st.booleans(), max_size=3)


def rows(size: int):
    return st.lists(NUMBERS, min_size=size, max_size=size).map(np.array)


@st.composite
def explanations(draw):
    units_a, units_b = (tuple(draw(st.lists(UNITS, min_size=1, max_size=3))) for _ in "ab")
    n, m = len(units_a), len(units_b)
    return Explanation, {
        "text_a": draw(TEXTS),
        "text_b": draw(TEXTS),
        "score": draw(NUMBERS),
        "matrix": draw(rows(n * m)).reshape(n, m),
        "units_a": units_a,
        "units_b": units_b,
        "tokens_a": tuple(draw(st.lists(TEXTS, max_size=3))),
        "tokens_b": tuple(draw(st.lists(TEXTS, max_size=3))),
        "base": draw(NUMBERS),
        "effects_a": draw(rows(n)),
        "effects_b": draw(rows(m)),
        "gap": draw(NUMBERS),
        "gap_a": draw(NUMBERS),
        "gap_b": draw(NUMBERS),
        "entry_error": draw(rows(n * m)).reshape(n, m),
        "truncated_a": draw(st.booleans()),
        "truncated_b": draw(st.booleans()),
        "unknown_a": tuple(draw(st.lists(TEXTS, max_size=2))),
        "unknown_b": tuple(draw(st.lists(TEXTS, max_size=2))),
        "settings": draw(SETTINGS),
    }


@st.composite
def contributions(draw):
    units = tuple(draw(st.lists(UNITS, min_size=1, max_size=3)))
    dim = draw(st.integers(1, 3))
    return Contributions, {
        "text": draw(TEXTS),
        "units": units,
        "tokens": tuple(draw(st.lists(TEXTS, max_size=3))),
        "values": draw(rows(len(units) * dim)).reshape(len(units), dim),
        "error": draw(rows(len(units))),
        "reference": draw(rows(dim)),
        "embedding": draw(rows(dim)),
        "output": draw(rows(dim)),
        "gap": draw(NUMBERS),
        "truncated": draw(st.booleans()),
        "unknown": tuple(draw(st.lists(TEXTS, max_size=2))),
        "settings": draw(SETTINGS),
    }


def example() -> Explanation:
    units = Unit("[CLS]", 0, 0, "special"), Unit('naïve, "café"\r\n', 0, 14), Unit("[SEP]", 14, 14, "special")
    return Explanation(
        text_a='naïve, "café"\r\n',
        text_b="🙂",
        score=0.1 + 0.2,
        matrix=np.array([[0.1, -1e-300], [1 / 3, -0.0], [5e-324, 2.0]]),
        units_a=units,
        units_b=units[:2],
        tokens_a=("[CLS]", "\x00", "NA"),
        tokens_b=(),
        base=0.0,
        effects_a=np.array([0.1, 0.2, 0.3]),
        effects_b=np.zeros(2),
        gap=-1e-9,
        gap_a=1e-4,
        gap_b=2e-4,
        entry_error=np.full((3, 2), 1e-5),
        truncated_b=True,
        settings={"layer": 0, "level": [[0, 5]], "roles": [None, "query"], "rule": "Adaptive(tol=0.001)"},
    )


def same(one, other) -> bool:
    """Whether two objects agree in everything, numbers to the bit."""
    if type(one) is not type(other):
        return False
    for field in fields(one):
        x, y = getattr(one, field.name), getattr(other, field.name)
        if isinstance(x, np.ndarray):
            if x.shape != y.shape or y.dtype != np.float64 or x.tobytes() != y.tobytes():
                return False
        elif isinstance(x, float):
            if not isinstance(y, float) or np.float64(x).tobytes() != np.float64(y).tobytes():
                return False
        elif type(x) is not type(y) or x != y:
            return False
    return True


def test_same_fails_on_any_difference():
    e = example()
    assert same(e, example())
    assert not same(e, replace(e, gap=np.nextafter(e.gap, 0)))
    assert not same(e, replace(e, matrix=e.matrix + 0.0))  # -0.0 became 0.0
    assert not same(e, replace(e, truncated_b=False))


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=explanations() | contributions())
def test_every_format_round_trips_to_the_same_bits(made, suffix, tmp_path):
    cls, values = made  # made here: the check of its types draws random numbers, which a strategy must not
    obj = cls(**values)
    path = documents.save(obj, tmp_path / f"x{suffix}")
    assert same(documents.load(type(obj), path), obj)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_save_and_load_methods_accept_upper_case_suffixes(suffix, tmp_path):
    e = example()
    assert same(Explanation.load(e.save(str(tmp_path / f"why{suffix.upper()}"))), e)


def test_json_is_readable_and_versioned(tmp_path):
    path = example().save(tmp_path / "why.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["format"], document["version"]) == ("pairlens.explanation", 1)
    assert document["score"] == 0.1 + 0.2
    assert "🙂" in path.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == documents.to_json(example())


def test_first_pandas_reads_the_pairs_of_a_saved_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    e = example()
    expected = e.to_pandas()
    names = list(expected.columns)
    for table in (
        pandas.read_csv(e.save(tmp_path / "why.csv")),
        pandas.read_parquet(e.save(tmp_path / "why.parquet")),
    ):
        assert list(table.columns)[: len(names)] == names
        pandas.testing.assert_frame_equal(table[names], expected, check_dtype=False)


def test_tables_of_contributions_have_a_row_for_every_number(tmp_path):
    pandas = pytest.importorskip("pandas")
    units, vector = (Unit("a", 0, 1), Unit("b", 2, 3)), np.ones(3)
    values = np.arange(6.0).reshape(2, 3)
    c = Contributions("a b", units, ("a", "b"), values, np.array([0.1, 0.2]), vector, vector, vector, 0.0)
    table = pandas.read_csv(c.save(tmp_path / "c.csv"))
    assert table["unit"].tolist() == ["a"] * 3 + ["b"] * 3
    assert table["dim"].tolist() == [0, 1, 2] * 2
    assert table["value"].tolist() == values.ravel().tolist()
    assert table["error"].tolist() == [0.1] * 3 + [0.2] * 3


def test_npz_holds_arrays_without_pickle(tmp_path):
    e = example()
    with np.load(e.save(tmp_path / "why.npz"), allow_pickle=False) as parts:
        assert np.array_equal(parts["matrix"], e.matrix)


@pytest.mark.parametrize(("name", "hint"), [("why.jsn", ".json"), ("why.parket", ".parquet"), ("why", "Valid")])
def test_unknown_suffixes_name_the_valid_ones(name, hint, tmp_path):
    with pytest.raises(InputError, match=hint):
        example().save(tmp_path / name)
    with pytest.raises(InputError, match=hint):
        Explanation.load(tmp_path / name)


def test_missing_folders_and_files_raise(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        example().save(tmp_path / "nowhere" / "why.json")
    with pytest.raises(InputError, match="no file"):
        Explanation.load(tmp_path / "why.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="folder"):
        example().save(tmp_path / "folder.json")
    with pytest.raises(InputError, match="not a file"):
        Explanation.load(tmp_path / "folder.json")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_cut_off_anywhere_raise(suffix, tmp_path):
    path = example().save(tmp_path / f"why{suffix}")
    whole = path.read_bytes()
    for size in {0, 1, len(whole) // 4, len(whole) // 2, len(whole) - 20, len(whole) - 3}:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"why\."):
            Explanation.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_loading_the_other_class_raises(suffix, tmp_path):
    units = (Unit("a", 0, 1),)
    vector = np.ones(2)
    c = Contributions("a", units, ("a",), np.ones((1, 2)), np.zeros(1), vector, vector, vector, 0.0)
    path = c.save(tmp_path / f"c{suffix}")
    assert same(Contributions.load(path), c)
    with pytest.raises(InputError, match=r"pairlens\.contributions.*not.*pairlens\.explanation"):
        Explanation.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2"),
        ({"version": "x"}, "version x"),
        ({"format": "else"}, "else"),
        ({"matrix": [[1.0]]}, "matrix"),
        ({"matrix": [[1.0, 2.0], [3.0]]}, "not a whole"),
        ({"score": "high"}, "score"),
        ({"units_a": [["a", 0, 1, "odd"]] * 3}, "odd"),
    ],
)
def test_changed_documents_raise(change, message, tmp_path):
    path = example().save(tmp_path / "why.json")
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Explanation.load(path)


def test_files_of_other_programs_raise(tmp_path):
    (tmp_path / "x.json").write_text("[1, 2]")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "x.npz", matrix=np.ones(2))
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(sys.modules["pyarrow"].table({"a": [1]}), tmp_path / "x.parquet")
    for suffix in SUFFIXES:
        with pytest.raises(InputError, match="not written by pairlens"):
            Explanation.load(tmp_path / f"x{suffix}")


def test_a_missing_field_is_named(tmp_path):
    path = example().save(tmp_path / "why.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    document.pop("gap")
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="gap"):
        Explanation.load(path)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_never_saved_or_loaded(bad, tmp_path):
    e = example()
    for broken in (replace(e, matrix=np.full((3, 2), bad)), replace(e, gap=bad), replace(e, settings={"x": bad})):
        for suffix in SUFFIXES:
            with pytest.raises(InputError):
                broken.save(tmp_path / f"why{suffix}")
    path = e.save(tmp_path / "why.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"gap": -1e-09', '"gap": NaN'), encoding="utf-8")
    with pytest.raises(InputError, match="NaN"):
        Explanation.load(path)


def test_settings_outside_json_raise(tmp_path):
    with pytest.raises(InputError, match="JSON"):
        replace(example(), settings={"x": object()}).save(tmp_path / "why.json")


def test_missing_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pairlens\[study\]"):
        example().save(tmp_path / "why.parquet")
    (tmp_path / "why.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtra, match=r"pairlens\[study\]"):
        Explanation.load(tmp_path / "why.parquet")


def test_csv_holds_texts_longer_than_the_module_limit(tmp_path):
    limit = csv.field_size_limit()
    e = replace(example(), text_a="long " * 100_000)
    assert same(Explanation.load(e.save(tmp_path / "why.csv")), e)
    assert csv.field_size_limit() == limit
