"""Functions of users are run anew in every trace of what calls them.

Public functions are programs, traced once for a structure as by `jax.jit`, so these tests call what
is inside.
"""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import (
    closure_gamma,
    closure_jacobian,
    closure_residual,
    closure_velocity,
)
from jaxmbd.kinematics.propagation import propagate_accelerations
from jaxmbd.lanes.caching import nothing, traced_once

BODY = mbd.Body(1.0, (0.5, 0, 0), np.eye(3) * 0.1)
HINGE = mbd.Revolute("ground", "a", (0, 0, 0), (0, 0, 1.0))
now = SimpleNamespace(rate=2.0)


class Screw(mbd.Revolute):
    """A user's own joint, whose slope is read when it runs."""

    def translation(self, q):
        return now.rate * q[0] * self.unit_axis()

    def subspace(self, q):
        axis = self.unit_axis()[:, None]
        return axis, now.rate * axis


DRIVEN = mbd.Mechanism(
    {"a": BODY}, {"h": HINGE}, drives={"d": mbd.Drive("h", lambda t, p: now.rate * t**2)}
)
COUPLED = mbd.Mechanism(
    {"a": BODY, "b": BODY},
    {"h": HINGE, "k": mbd.Revolute("ground", "b", (0, 1, 0), (0, 0, 1.0))},
    couplings={"c": mbd.Coupling((("h", 0), ("k", 0)), lambda q, p: q[1] - now.rate * q[0] ** 2)},
)
ON_CURVE = mbd.Mechanism(
    {"a": BODY},
    {
        "h": HINGE,
        "c": mbd.PointOnCurve(
            "ground", "a", (1.0, 0, 0), (1.0, 0, 0),
            lambda u, p: jnp.stack([now.rate * u**2, u, 0.0 * u]),
            interval=(-1.0, 1.0), samples=5,
        ),
    },
)  # fmt: skip
SCREWED = mbd.Mechanism({"a": BODY}, {"h": Screw("ground", "a", (0, 0, 0), (0, 0, 1.0))})


def gamma_of(t):
    m = motion_state(DRIVEN, jnp.zeros(1), jnp.zeros(1), t)
    acc = propagate_accelerations(DRIVEN, m.q, m.pos, m.vel, m.v)
    return closure_gamma(m, acc) + closure_velocity(m)


USES = {
    "drive": (lambda t: closure_residual(motion_state(DRIVEN, jnp.zeros(1), t=t)), 1.0),
    "drive, rates": (gamma_of, 1.0),
    "coupling": (lambda x: closure_residual(motion_state(COUPLED, x * jnp.ones(2))), 0.3),
    "coupling, Jacobian": (lambda x: closure_jacobian(motion_state(COUPLED, x * jnp.ones(2))), 0.3),
    "curve": (lambda x: closure_residual(motion_state(ON_CURVE, x * jnp.ones(1))), 0.3),
    "joint": (lambda x: motion_state(SCREWED, x * jnp.ones(1)).pos.com[0], 0.3),
}


@pytest.mark.parametrize("name", USES)
def test_what_they_read_may_change(name):
    fn, x = USES[name]

    def found(rate):
        now.rate = rate
        return jax.jvp(fn, (x,), (1.0,))

    first, then = found(2.0), found(5.0)
    np.testing.assert_allclose(then[0], fn(x), rtol=1e-14, atol=1e-14)
    step = 1e-5
    difference = (fn(x + step) - fn(x - step)) / (2 * step)
    np.testing.assert_allclose(then[1], difference, rtol=1e-7, atol=1e-8)
    assert not np.allclose(first[0], then[0]) or not np.allclose(first[1], then[1])


def test_which_functions_are_traced_once():
    runs = []

    def fn(x, *, thing):
        runs.append(thing)
        return 2.0 * x

    def count(once, thing):
        runs.clear()
        jax.make_jaxpr(lambda x: once(once(x, thing=thing), thing=thing))(1.0)
        return len(runs)

    assert [count(traced_once(fn), x) for x in (DRIVEN, SCREWED, {"a": [HINGE]})] == [2, 2, 1]
    assert count(partial(traced_once, runs=nothing)(fn), DRIVEN) == 1
