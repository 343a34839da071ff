"""The sums behind the study of convergence."""

from __future__ import annotations

import pytest

from pairlens.study.papers.totals import Odd


def test_odd_nodes_complete_the_sum_of_half_as_many_steps():
    # ∫₀¹ 2α dα by n right-hand steps is (n + 1) / n: 2, 3/2, 5/4, 9/8.
    total, seen = 0.0, []
    for n in (1, 2, 4, 8):
        table = Odd(n).table()
        total = total / 2 + float(table.weights @ (2 * table.nodes))
        seen.append(total)
    assert seen == pytest.approx([2, 1.5, 1.25, 1.125])
    assert Odd(4).table().nodes.tolist() == [0.25, 0.75]
    assert Odd(1).table().nodes.tolist() == [1.0]
