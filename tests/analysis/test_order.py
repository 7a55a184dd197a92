"""The order of the integrators in a closed loop: halving the step divides the error by 2^order."""

import numpy as np
import pytest
from chained_runs import chain
from scipy.integrate import solve_ivp

import jaxmbd as mbd

START, END = 1.0, 1.0


@pytest.fixture(scope="module")
def exact():
    """Angle and speed of a parallelogram's cranks: ``5/3 l θ̈ = 2 g sin θ``, θ from upright.

    Two cranks and a coupler, slender rods of one length l and mass: 2/3 m l² + m l² turn, and the
    weight has the levers l/2, l/2 and l.
    """
    found = solve_ivp(
        lambda t, x: [x[1], 2.0 * 9.81 / (5.0 / 3.0) * np.sin(x[0])],
        (0.0, END),
        [START, 0.0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    return found.y[:, -1]


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [
        ("rk4", 4, (40, 80, 160)),
        ("semi_implicit_euler", 1, (200, 400, 800)),
        ("generalized_alpha", 2, (40, 80, 160)),
    ],
)
def test_the_error_falls_with_its_order(exact, method, order, steps):
    mech = mbd.zoo.n_four_bar(1, planar=True)
    q0, v0 = mbd.assemble(mech, known={"ground_0": START}).q, np.zeros(3)

    def error(n):
        once = {"steps": steps[0], "save_every": steps[0], "method": method}
        *_, run = chain(mech, q0, v0, runs=n // steps[0], dt=END / n, **once)
        return np.abs(np.array([run.q[-1, 0], run.v[-1, 0]]) - exact).max()

    errors = np.array([error(n) for n in steps])
    seen = np.log2(errors[:-1] / errors[1:])
    assert errors[-1] > 1e-12, "rounding, not the method's error, would be seen"
    np.testing.assert_allclose(seen, order, rtol=0, atol=0.25)
