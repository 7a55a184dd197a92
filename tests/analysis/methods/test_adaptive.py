"""Adaptive steps: the tolerances asked for, stiff systems, batches, restarts, derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.analysis.equations import equations_of
from jaxmbd.analysis.methods import chosen

METHODS = [mbd.DormandPrince, mbd.DormandPrince8, mbd.Rodas]
WITH_RODAS_SLOW = [mbd.DormandPrince, pytest.param(mbd.Rodas, marks=pytest.mark.slow)]
TOLERANCES = (1e-4, 1e-7, 1e-10)


def two_masses(stiffness, damping):
    """1 kg on a slide and 0.5 kg on that, each with a spring and a damper."""
    axis = (0.0, 0.0, 1.0)
    slides = {
        "low": mbd.Prismatic("ground", "a", (0.0, 0.0, 0.0), axis),
        "high": mbd.Prismatic("a", "b", (0.0, 0.0, 0.2), axis),
    }
    bodies = {
        "a": mbd.Body(1.0, (0.0, 0.0, 0.1), np.eye(3)),
        "b": mbd.Body(0.5, (0.0, 0.0, 0.3), np.eye(3)),
    }
    springs = {
        n: mbd.TorsionSpring(n, stiffness[i], damping=damping[i]) for i, n in enumerate(slides)
    }
    return mbd.Mechanism(bodies, slides, springs, gravity=(0.0, 0.0, 0.0))


def closed_form(stiffness, damping, q, t):
    """Positions and speeds of `two_masses` from rest at q, by the matrix exponential."""
    (k, l), (c, d) = stiffness, damping
    mass = np.array([[1.5, 0.5], [0.5, 0.5]])
    inverse = np.linalg.inv(mass)
    a = np.zeros((4, 4))
    a[:2, 2:] = np.eye(2)
    a[2:, :2], a[2:, 2:] = -inverse @ np.diag([k, l]), -inverse @ np.diag([c, d])
    return expm(a * t) @ np.concatenate([q, np.zeros(2)])


@partial(jax.jit, static_argnums=0)
def ends(kind, stiffness, damping, q, rtol, t):
    """Where `two_masses` are after times t, one sample after another."""

    def one(stiffness, damping, q, rtol):
        method = kind(rtol=rtol, atol=0.1 * rtol)
        return mbd.simulate(
            two_masses(stiffness, damping), q, t=t, method=method, throw=False, accuracy=1.0
        )

    return lanes.vmap(one)(stiffness, damping, q, rtol)


@pytest.mark.parametrize("kind", METHODS)
def test_steps_are_as_exact_as_asked(kind):
    k, c, q = np.array([100.0, 400.0]), np.array([0.5, 1.0]), np.array([0.1, -0.05])
    n, t = len(TOLERANCES), np.array([0.0, 0.013, 0.5, 2.0])
    each = [np.tile(x, (n, 1)) for x in (k, c, q)]
    run = ends(kind, *each, np.array(TOLERANCES), t)
    exact = np.array([closed_form(k, c, q, s) for s in t])
    speed = np.abs(exact[:, 2:]).max()
    wrong = [np.abs(np.concatenate([run.q[i], run.v[i]], axis=1) - exact).max() for i in range(n)]
    for i, rtol in enumerate(TOLERANCES):
        assert wrong[i] < 100.0 * rtol * speed
        assert wrong[i] / speed < 5.0 * run.error[i]
    assert not run.status.any() and np.all(np.diff(run.steps) > 0)
    assert wrong[0] > 1e3 * wrong[2]


def test_stiff_systems_take_few_steps():
    """A spring of 1e9 N/m that its damper holds still: 1e5 1/s beside 10 1/s."""
    k, c, q = np.array([[100.0, 1e9]]), np.array([[1.0, 1e5]]), np.array([[0.1, 1e-4]])
    t = np.array([0.0, 0.1, 1.0])
    run = ends(mbd.Rodas, k, c, q, np.array([1e-7]), t)
    exact = np.array([closed_form(k[0], c[0], q[0], s) for s in t])
    assert np.abs(run.q[0] - exact[:, :2]).max() < 1e-7
    assert int(run.status[0]) == mbd.Status.OK and run.steps[0] < 400
    explicit = ends(mbd.DormandPrince, k, c, q, np.array([1e-7]), t)
    assert explicit.steps[0] > 10 * run.steps[0] or explicit.status[0] != mbd.Status.OK


@pytest.mark.parametrize("kind", WITH_RODAS_SLOW)
def test_a_sample_does_not_depend_on_its_neighbours(kind):
    k = np.array([[100.0, 400.0], [1e4, 10.0], [1.0, 1.0], [10.0, 3e4], [40.0, 40.0]])
    q, c = np.full_like(k, 0.1), np.full_like(k, 0.3)
    rtol, t = np.full(len(k), 1e-6), np.array([0.0, 0.3, 1.0])
    run = ends(kind, k, c, q, rtol, t)
    other = [4, 1, 3, 0, 2]
    again = ends(kind, k[other], c[other], q[other], rtol, t)
    np.testing.assert_array_equal(np.asarray(run.q)[other], again.q)
    np.testing.assert_array_equal(np.asarray(run.steps)[other], again.steps)
    assert len(set(np.asarray(run.steps).tolist())) > 3


def spinning():
    """A body on a ball at its centre of mass: Euler's equations, with unequal inertias."""
    inertia = np.diag([1.0, 2.0, 2.5])
    return mbd.Mechanism(
        {"body": mbd.Body(1.0, (0.0, 0.0, 0.0), inertia)},
        {"ball": mbd.Spherical("ground", "body", (0.0, 0.0, 0.0))},
    )


def _euler(_, y):
    """Quaternion and angular velocity in the body's axes."""
    (a, b, c, d), (x, y_, z) = y[:4], y[4:]
    rate = 0.5 * np.array(
        [-b * x - c * y_ - d * z, a * x + c * z - d * y_, a * y_ - b * z + d * x,
         a * z + b * y_ - c * x]
    )  # fmt: skip
    turn = np.array(
        [(2.0 - 2.5) * y_ * z / 1.0, (2.5 - 1.0) * z * x / 2.0, (1.0 - 2.0) * x * y_ / 2.5]
    )
    return np.concatenate([rate, turn])


@pytest.mark.parametrize("kind", WITH_RODAS_SLOW)
def test_order_with_quaternions(kind):
    """Halving a step divides its error by 2⁶ or more; SciPy integrates Euler's equations."""
    mech, w = spinning(), np.array([1.0, 2.0, -0.7])
    q = jnp.array([1.0, 0.0, 0.0, 0.0])
    method = kind()
    equations = equations_of(mech, None)

    @jax.jit
    def attempt(h):
        return method.attempt(equations, jnp.zeros(()), q, jnp.asarray(w), h)

    wrong = []
    for h in (0.1, 0.05, 0.025):
        exact = solve_ivp(_euler, (0.0, h), [1, 0, 0, 0, *w], "DOP853", rtol=1e-13, atol=1e-14)
        tried = attempt(jnp.asarray(h))
        found = equations.normalised(tried.q, tried.v)
        wrong.append(np.abs(np.asarray(found) - exact.y[:4, -1]).max())
    orders = np.log2(np.array(wrong[:-1]) / wrong[1:])
    assert np.all(orders > 5.7)


@pytest.mark.slow
@pytest.mark.parametrize("kind", METHODS)
def test_closed_loops_stay_closed(kind):
    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"crank": 10.0})
    run = mbd.simulate(mech, q, v, t1=0.2, method=kind(rtol=1e-9, atol=1e-11))
    best = mbd.simulate(mech, q, v, t1=0.2, dt=2e-4, save_every=1000)
    crank = mbd.topology(mech).layout["crank"].q
    np.testing.assert_allclose(run.q[-1][crank], best.q[-1][crank], rtol=0, atol=2e-7)
    assert run.drift < 1e-14


@pytest.mark.parametrize("kind", WITH_RODAS_SLOW)
def test_derivatives_in_both_modes(kind):
    """With respect to stiffness and start, against central differences of exact motions.

    There are more than 64 steps, those of the inner of two loops.
    """
    k, c, q = np.array([100.0, 400.0]), np.array([0.5, 1.0]), np.array([0.1, -0.05])

    @jax.jit
    def end(k, q):
        mech = two_masses(k, c)
        run = mbd.simulate(mech, q, t1=0.5, method=kind(rtol=1e-11, atol=1e-13), throw=False)
        return jnp.concatenate([run.q[-1], run.v[-1]])

    assert mbd.simulate(two_masses(k, c), q, t1=0.5, method=kind(rtol=1e-11, atol=1e-13)).steps > 70
    dk, dq = np.array([10.0, -3.0]), np.array([0.01, 0.02])
    _, slope = jax.jit(lambda k, q: jax.jvp(end, (k, q), (dk, dq)))(k, q)
    h = 1e-4
    exact = [closed_form(k + s * h * dk, c, q + s * h * dq, 0.5) for s in (1.0, -1.0)]
    np.testing.assert_allclose(slope, (exact[0] - exact[1]) / (2 * h), rtol=1e-5, atol=1e-7)
    weights = np.array([1.0, -2.0, 0.5, 0.1])
    pulled = jax.jit(jax.grad(lambda k, q: weights @ end(k, q), argnums=(0, 1)))(k, q)
    np.testing.assert_allclose(pulled[0] @ dk + pulled[1] @ dq, weights @ slope, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("build", "t1", "rtol"), [("rssr", 6.0, 1e-12), ("five_bar", 0.5, 1e-10)])
def test_the_reverse_sweep_takes_the_same_steps_again(build, t1, rtol):
    """Closed loops in a kernel, of more than 64 steps: those of the inner of two loops.

    Rounding errors of the start grow in the five-bar until its derivatives keep eleven digits.
    """
    mech = getattr(mbd.zoo, build)()
    q, nv = mbd.neutral(mech), mbd.topology(mech).nv
    v = mbd.assemble_velocity(mech, q, guess=jnp.ones(nv))

    def last(share):
        method = mbd.DormandPrince(rtol=1e-9, atol=1e-11)
        run = mbd.simulate(mech, q, share * v, t=jnp.array([0.0, t1]), method=method, throw=False)
        return run.v[-1] @ jnp.arange(1.0, nv + 1.0), run.steps

    shares = jnp.linspace(0.8, 1.2, 8)
    (_, steps), reverse = lanes.vmap(jax.value_and_grad(last, has_aux=True))(shares)
    _, forward = lanes.vmap(lambda x: jax.jvp(lambda y: last(y)[0], (x,), (1.0,)))(shares)
    assert np.min(steps) > 70
    np.testing.assert_allclose(reverse, forward, rtol=rtol)


@pytest.mark.slow
def test_a_run_goes_on_to_the_bit():
    mech = mbd.zoo.double_pendulum()
    method = mbd.DormandPrince(rtol=1e-6)
    whole = mbd.simulate(mech, [0.5, 0.2], t=[0.0, 0.25, 0.5], method=method)
    half = mbd.simulate(mech, [0.5, 0.2], t=[0.0, 0.25], method=method)
    rest = mbd.simulate(mech, half.end, t=[0.25, 0.5], method=method)
    np.testing.assert_array_equal(rest.q[-1], whole.q[-1])
    assert rest.steps == whole.steps > half.steps > 0


def test_too_many_steps_are_told():
    mech = mbd.zoo.double_pendulum()
    method = mbd.DormandPrince(most=5)
    run = mbd.simulate(mech, [0.5, 0.2], t1=1.0, method=method, throw=False)
    assert run.status == mbd.Status.DIVERGED and np.isnan(run.q[-1]).all()
    assert 0.0 < run.failed_at < 0.1 and run.steps + run.rejected == 5
    late = mbd.simulate(mech, [0.5, 0.2], t=[0.0, 0.001, 1.0], method=method, throw=False)
    assert 0.001 < late.failed_at < 0.1 and np.isfinite(late.q[1]).all()
    with pytest.raises(ValueError, match="gives up after 5 between two saved times"):
        mbd.simulate(mech, [0.5, 0.2], t1=1.0, method=method)


@pytest.mark.slow
def test_single_precision():
    mech = mbd.zoo.double_pendulum()
    run = mbd.simulate(mech, [0.5, 0.2], t1=0.5, method="dormand_prince")
    small = jax.tree.map(lambda x: np.asarray(x, np.float32), mech)
    single = mbd.simulate(small, np.array([0.5, 0.2], np.float32), t1=0.5, method="dormand_prince")
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q[-1], run.q[-1], rtol=0, atol=1e-4)


def test_a_method_is_chosen_by_name_or_given():
    assert isinstance(chosen("rodas", float, rtol=1e-5), mbd.Rodas)
    assert isinstance(chosen("semi_implicit_euler", float), mbd.SemiImplicitEuler)
    assert isinstance(chosen(mbd.RK4(), float), mbd.RK4)
    with pytest.raises(ValueError, match="give the tolerances to the method"):
        chosen(mbd.Rodas(), float, rtol=1e-3)
    with pytest.raises(ValueError, match="rtol beside a method of fixed steps"):
        chosen("rk4", float, rtol=1e-3)
    with pytest.raises(ValueError, match="atol=-1: give a positive number"):
        chosen("rodas", float, atol=-1)
    with pytest.raises(ValueError, match="mbd.DormandPrince"):
        chosen("ode45", float)
