"""The published straight lines are what is printed of them, by the follower that judges ours."""

import numpy as np
import pytest
from synthesis_cases.published import HOEKEN, hoeken, path


@pytest.mark.parametrize("degrees", HOEKEN)
def test_printed_lines_are_those_of_the_printed_ratios(degrees):
    ground, coupler, travel, percent = HOEKEN[degrees]
    found = hoeken(ground, coupler, degrees)
    assert found == pytest.approx((travel, percent), abs=6e-4)


def test_the_follower_tells_what_does_not_close():
    points = {"A": 0j, "B": 1j, "C": 2.0 + 1.5j, "D": 4.0 + 0j, "P": 1.0 + 2j}
    _, room = path(points, np.linspace(0.0, 2.0 * np.pi, 181))
    assert room[0] > 0.0 > room.min()  # at 4 + 1 the two links are too short
