from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from explanations import COFFEE, LONG, make
from pairlens.render.terminal.matrix import plan
from terminal_output import show, table


def test_numbers_and_sums_are_those_of_the_matrix():
    e = make(*COFFEE)
    labels, rows = table(show(e))
    text_a, text_b = (np.array([unit.kind == "text" for unit in units]) for units in (e.units_a, e.units_b))
    inside = np.array(rows)[:7, :5]
    assert inside == pytest.approx(e.matrix[np.ix_(text_a, text_b)], abs=5e-4)
    assert rows[7][labels.index("special")] == pytest.approx(e.matrix[np.ix_(~text_a, ~text_b)].sum(), abs=5e-4)
    assert rows[-1][-1] == pytest.approx(e.matrix.sum(), abs=5e-4)
    assert [row[-1] for row in rows[:7]] == pytest.approx(e.row[text_a], abs=5e-4)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("effects", [False, True])
@pytest.mark.parametrize(
    "texts",
    [COFFEE, (COFFEE[0], LONG), (LONG, COFFEE[0]), (LONG, LONG), ("東京は大きい都市です。", "🙂🚀 naïve e\u0301")],
)
def test_matrix_fits_the_width_and_keeps_its_sum(texts, effects, width):
    e = make(*texts, effects=effects)
    shown = show(e, width)
    assert max(cell_len(line) for line in shown.splitlines()) <= width
    labels, rows = table(shown)
    assert rows[-1][-1] == pytest.approx(e.matrix.sum() + e.effects_a.sum() + e.effects_b.sum(), abs=6e-3)
    totals = 2 if effects else 1
    entries = np.array([row[: len(labels) - totals] for row in rows[:-totals]])
    assert entries.size
    assert entries.sum() == pytest.approx(e.matrix.sum(), abs=0.006 * entries.size**0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 5), st.sampled_from([40, 60, 80]), st.floats(1e-3, 1e3))
def test_matrices_of_every_size_fit_the_width(n, m, seed, width, scale):
    e = make("word " * n, "incomprehensibility " * m, seed=seed, scale=scale)
    assert max(cell_len(line) for line in show(e, width).splitlines()) <= width


def test_columns_with_wide_characters_line_up():
    shown = show(make("東京は大きい都市です。", "🙂 naïve é ok"), 80)
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("a \\ b"))
    stop = next(i for i, line in enumerate(lines) if i > start and not line)
    assert len({cell_len(line) for line in lines[start:stop]}) == 1


def test_rows_and_columns_that_are_left_out_are_counted():
    e = make(LONG, LONG)
    shown = show(e, 80, rows=10)
    labels, rows = table(shown)
    assert "rest" in labels
    assert len(rows) == 10 + 3  # special, rest, sum
    texts = sum(unit.kind == "text" for unit in e.units_a)
    shown_columns = len(labels) - 3
    assert f"rest: {texts - 10} weaker units of a, {texts - shown_columns} weaker units of b" in shown


def test_the_longer_text_goes_down_when_it_does_not_fit_across():
    assert "b \\ a" in show(make(COFFEE[0], LONG), 80)
    assert "a \\ b" in show(make(LONG, COFFEE[0]), 80)
    assert "b \\ a" not in show(make(*COFFEE), 80)


def test_first_a_matrix_says_which_text_goes_down_and_when_it_was_turned():
    straight, turned = show(make(*COFFEE), 80), show(make("coffee", LONG), 60)
    assert "every pair  a down, b across\n" in straight
    assert "every pair  b down, a across, turned to fit\n" in turned


def test_special_tokens_are_folded_and_counted():
    e = make(*COFFEE)
    assert table(show(e, special=True))[0][0] == "[CLS]"
    assert "special: 2 tokens of a, 2 tokens of b" in show(e)
    silent = e.matrix.copy()
    silent[[0, -1]] = silent[:, [0, -1]] = 0.0
    shown = show(make(*COFFEE, matrix=silent))
    assert "special" not in table(shown)[0]
    assert "special: 2 tokens of a, 2 tokens of b, all zero" in shown
    assert "special" not in show(make(*COFFEE, special=False))


def test_effects_have_a_row_and_a_column():
    e = make(*COFFEE, effects=True)
    labels, rows = table(show(e, 120))
    assert labels[-2:] == ["effects", "sum"]
    assert rows[-2][-1] == pytest.approx(e.effects_b.sum(), abs=5e-3)
    assert rows[-1][-2] == pytest.approx(e.effects_a.sum(), abs=5e-3)
    assert rows[0][-2] == pytest.approx(e.effects_a[1], abs=5e-3)
    assert rows[0][-1] == pytest.approx(e.matrix[1].sum() + e.effects_a[1], abs=5e-3)
    assert "effects: what a word does by itself" in show(e, 120)


def test_every_word_has_the_score_without_it(guitar):
    shown = show(guitar, 100)
    labels, rows = table(shown)
    assert labels[-1] == "without"
    assert [row[-1] for row in rows[:7]] == pytest.approx(guitar.measured_a[1:-1], abs=5e-3)
    assert rows[-1] == pytest.approx(guitar.measured_b[1:-1], abs=5e-3)
    assert "without: the score without that word, measured" in shown
    forecast = show(replace(guitar, measured_a=None), 100)
    guitar_row = next(line for line in forecast.splitlines() if line.startswith("guitar "))
    assert guitar_row.endswith(f"~{guitar.without(a=[6]):.2f}")


def test_numbers_get_shorter_before_columns_are_hidden():
    e = make(*COFFEE)
    (wide, long, _), (narrow, short, _) = (plan(e, width, False, 24) for width in (77, 52))
    assert wide.across.hidden == narrow.across.hidden == 0
    assert long.decimals == short.decimals + 1
    assert plan(e, 37, False, 24)[0].across.hidden > 0


def test_numbers_that_round_to_zero_are_marks_in_narrow_terminals():
    matrix = np.full((8, 8), 1e-5)
    matrix[0, 0] = 0.5
    shown = show(make("a b c d e f g h", "a b c d e f g h", matrix=matrix, special=False), 48)
    row = next(line for line in shown.splitlines() if line.startswith("b   "))
    assert row.count("·") == 9  # the sum too
    assert show(make("a b c d e f g h", "a b c d e f g h", matrix=matrix, special=False), 48, ascii_only=True).isascii()
