"""`minimize` from designs of the user's choice."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import Between

VARY = {"a": Between(-4.0, 4.0, start=1.0), "b": Between(-4.0, 4.0, start=0.0)}


def wells(x):
    """Minima at a = ±2, b = 1."""
    return (x["a"] ** 2 - 4.0) ** 2 + (x["b"] - 1.0) ** 2


def test_each_given_design_is_a_start():
    found = mbd.minimize(wells, None, VARY, starts=np.array([[-3.0, 0.0], [1.8, 3.0], [2.2, 0.0]]))
    assert found.designs == pytest.approx(np.array([[-2, 1], [2, 1], [2, 1]]), abs=1e-4)
    assert found.status == "optimal"


def test_rows_must_fit():
    with pytest.raises(ValueError, match=r"shape \(1, 3\).*'a', 'b'"):
        mbd.minimize(wells, None, VARY, starts=np.zeros((1, 3)))
