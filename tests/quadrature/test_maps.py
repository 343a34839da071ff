"""Maps of [0, 1] onto itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlens.quadrature.maps import SinhMap, mapped_gauss
from pairlens.quadrature.smooth import CHARTS, SAMPLED


@given(st.sampled_from([SAMPLED, *CHARTS]), st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_inverse_undoes_the_map(chart, places):
    assert chart.inverse(chart(np.array(places))[0]) == pytest.approx(places, abs=1e-9)


@given(st.floats(0, 1), st.floats(0.02, 5), st.integers(1, 40))
def test_a_mapped_rule_still_integrates_a_constant(centre, width, n):
    chart = SinhMap(centre, width)
    points, slope = chart(np.array([0.0, 1.0]))
    assert points == pytest.approx([0, 1], abs=1e-12)
    assert np.all(slope > 0)
    table = mapped_gauss(n + 40, chart)
    assert table.weights.sum() == pytest.approx(1, rel=1e-3)
