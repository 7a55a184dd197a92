"""The order of the methods: at half the step the error is divided by 2^order.

In coordinates, speeds, and in reactions with multipliers; at saved times and between them.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jaxmbd as mbd

END, SAVED, CHUNK = 4.0, 8, 32
ROWS = np.linspace(0.0, END, SAVED + 1)[1:]
BETWEEN = np.sort(np.r_[ROWS - END / SAVED / 3.0, ROWS - 2.0 * END / SAVED / 3.0])
"""Times that are at the same share of a step as of one a quarter as long."""

LOOSE = {"rtol": 1e9, "atol": 1e9}
"""Tolerances by which a method of adaptive steps takes one to each saved time."""

METHODS = {
    "rk4": (mbd.RK4(), 4, 256),
    "semi_implicit_euler": (mbd.SemiImplicitEuler(), 1, 512),
    "generalized_alpha": (mbd.GeneralizedAlpha(), 2, 512),
    "variational": (mbd.Variational(), 2, 512),
    "variational_4": (mbd.Variational(4), 4, 256),
    "dormand_prince": (mbd.DormandPrince(**LOOSE), 5, 256),
    "dormand_prince_8": (mbd.DormandPrince8(**LOOSE), 8, 32),
    "rodas": (mbd.Rodas(**LOOSE), 5, 128),
}
"""Methods with their order and the least of three numbers of steps, each twice the one before."""


def pendulums():
    """Two, the lower one hanging from the upper."""
    return mbd.zoo.double_pendulum(lengths=(0.7, 1.0), masses=(1.0, 0.5))


def open_chain():
    return pendulums(), [0.4, 0.0], [0.5, 0.5]


def closed_loop():
    """A parallelogram that hangs and never comes near its singular position."""
    mech = mbd.zoo.n_four_bar(1, length=0.5, planar=True)
    return mech, mbd.assemble(mech, known={"ground_0": 2.4}).q, [0.8, -0.8, 0.8]


def ball():
    body = mbd.Body(1.0, (0.08, 0.0, -0.2), np.diag([0.05, 0.08, 0.03]))
    joint = mbd.Spherical("ground", "body", (0.0, 0.0, 0.0))
    return mbd.Mechanism({"body": body}, {"ball": joint}), [1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 1.0]


def drive():
    """The upper of two pendulums moves as is told, the lower one is free."""
    held = mbd.Drive("hinge_1", lambda t, rate: 0.3 * jnp.sin(rate * t), 3.0)
    mech = mbd.zoo.double_pendulum(lengths=(0.5, 0.3))
    return mech.replace(drives={"held": held}), [0.0, 0.3], [0.9, 0.0]


def friction():
    """Two pendulums with friction by the reactions of their bearings."""
    bearings = {
        name: mbd.JointFriction(name, coefficient=0.2, radius=0.1, velocity_scale=5.0)
        for name in ("hinge_1", "hinge_2")
    }
    return pendulums().replace(forces=bearings), [0.4, 0.0], [0.5, 0.5]


CASES = {f.__name__: f for f in (open_chain, closed_loop, ball, drive, friction)}


class Motion(NamedTuple):
    """A mechanism, its start, compiled functions, and the motion by SciPy."""

    mech: Any
    q: np.ndarray
    v: np.ndarray
    loads: Any
    between: Any
    exact: list[np.ndarray]


@cache
def motion(case):
    mech, q, v = CASES[case]()
    q, v = np.asarray(q, float), np.asarray(v, float)

    @jax.jit
    def rates(t, y):
        q, v = jnp.split(y, [mbd.topology(mech).nq])
        vdot, _ = mbd.forward_dynamics(mech, q, v, t)
        return jnp.concatenate([mbd.coordinate_rates(mech, q, v), vdot])

    @jax.jit
    @jax.vmap
    def loads(t, q, v):
        vdot, lam = mbd.forward_dynamics(mech, q, v, t)
        found = mbd.joint_reactions(mech, q, v, vdot, lam, t).values()
        return jnp.concatenate([lam, *(x.reshape(-1) for x in found)])

    def integrated(rates, y, times):
        for begin, end in zip([0.0, *times], times):  # noqa: B905
            y = solve_ivp(rates, (begin, end), y, "DOP853", rtol=3e-14, atol=1e-15).y[:, -1]
            yield y

    times = np.sort(np.r_[ROWS, BETWEEN])
    if case == "closed_loop":
        # 2/3 m l² + m l² turn, of two cranks and a coupler, slender rods of one length l and mass;
        # the weight has the levers l/2, l/2 and l: 5/3 l θ̈ = 2 g sin θ, with θ from upright.
        def turn(_, x):
            return [x[1], 1.2 * 9.81 / 0.5 * np.sin(x[0])]

        angles = np.array(list(integrated(turn, [q[0], v[0]], times)))
        qs, vs = (x[:, None] * [1.0, -1.0, 1.0] for x in angles.T)
    else:
        qs, vs = np.split(np.array(list(integrated(rates, np.r_[q, v], times))), [len(q)], axis=1)
    every = (qs, vs, np.asarray(loads(times, qs, vs)))
    exact = [x[np.searchsorted(times, t)] for t in (ROWS, BETWEEN) for x in every]
    between = jax.jit(lambda run: mbd.states_at(mech, run, BETWEEN))
    return Motion(mech, q, v, loads, between, exact)


def errors(case, method, n):
    """Root mean squares over all times of what n equal steps are wrong by: q, v, and loads.

    At saved times, then between. The number of steps is part of a program, the step is not: a
    longer run is a chain of equal ones.
    """
    mech, q, v, loads, between, exact = motion(case)
    options = {"method": method, "steps": CHUNK, "dt": END / n, "accuracy": 1e9, "throw": False}
    runs = [mbd.simulate(mech, q, v, **options)]
    while len(runs) < n // CHUNK:
        runs.append(mbd.simulate(mech, runs[-1].end, **options))
    q, v = (
        np.concatenate([start[None], *(getattr(run, name)[1:] for run in runs)])
        for name, start in (("q", q), ("v", v))
    )
    t = END / n * np.arange(n + 1)
    after = np.searchsorted(t, BETWEEN)
    around = np.stack([after - 1, after], axis=1).reshape(-1)
    states = between(runs[-1]._replace(t=t[around], q=q[around], v=v[around]))
    rows = slice(n // SAVED, None, n // SAVED)
    found = [q[rows], v[rows], loads(ROWS, q[rows], v[rows])]
    found += [*states, loads(BETWEEN, *states)]
    return np.array([np.sqrt(np.mean((x - y) ** 2)) for x, y in zip(found, exact, strict=True)])


FAST = "rk4", "dormand_prince_8"


@pytest.mark.parametrize(
    ("case", "method"),
    [
        pytest.param(c, m, marks=() if c == "closed_loop" and m in FAST else pytest.mark.slow)
        for c in CASES
        for m in METHODS
    ],
)
def test_errors_fall_with_the_order(case, method):
    """Between saved times q is of sixth order at most, and v, with what follows from it, of fifth.

    Of order 8 there are three digits between terms of ninth order and rounding.
    """
    chosen, order, n = METHODS[method]
    found = np.array([errors(case, chosen, k * n) for k in (1, 2, 4)])
    saved, between = found[:, :3], found[:, 3:]
    assert found.min() > 3e-14, "rounding, not the method's error, would be seen"
    slopes = np.log2(saved[1] / saved[2])
    np.testing.assert_allclose(slopes, order, rtol=0, atol=0.2 if order == 8 else 0.1)
    slopes = np.log2(between[0] / between[2]) / 2.0
    np.testing.assert_allclose(slopes, np.minimum(order, [6, 5, 5]), rtol=0, atol=0.1)


def test_semi_implicit_euler_from_rest():
    """Speeds are of second order, as of coordinates half a step later, which are too."""
    mech, errors = mbd.zoo.simple_pendulum(), []
    for n in (64, 128):
        run = mbd.simulate(
            mech, [0.5], t1=1.0, dt=1 / n, save_every=n, method="semi_implicit_euler"
        )
        times = [0.0, 1.0, 1.0 + 0.5 / n]
        exact = mbd.simulate(mech, [0.5], t=times, method="dormand_prince_8")
        errors.append([run.v[-1, 0] - exact.v[1, 0], run.q[-1, 0] - exact.q[2, 0]])
    np.testing.assert_allclose(np.log2(np.divide(*np.abs(errors))), 2.0, rtol=0, atol=0.1)
