"""Events by steps of equal length: orders, impacts, derivatives; nothing else changes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

G, DT = 9.81, 0.02
ROWS = np.array([30, 65, 80])
FIRST = np.array([0.8, 1.0])
EXACT = [mbd.RK4, mbd.GeneralizedAlpha]
KINDS = [*EXACT, mbd.SemiImplicitEuler]
FIRST_KINDS = [mbd.RK4, *(pytest.param(k, marks=pytest.mark.slow) for k in KINDS[1:])]
"""A fast representative of `KINDS`."""
ORDERS = dict(zip([*KINDS, mbd.Variational], (4.0, 2.0, 1.0, 2.0), strict=True))


def masses(n=1):
    """n masses of 1 kg on vertical slides of their own."""
    names = [f"m{i}" for i in range(n)]
    return mbd.Mechanism(
        {k: mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3)) for k in names},
        {f"slide{k}": mbd.Prismatic("ground", k, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)) for k in names},
        gravity=(0.0, 0.0, -G),
    )


@partial(jax.jit, static_argnums=1)
def bounced(p, kind=mbd.RK4):
    """A mass dropped from h onto a floor with restitution e, by p = (e, h)."""
    hit = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=p[0])
    run = mbd.simulate(masses(), p[1:], dt=DT, t1=2.0, method=kind(), events={"hit": hit},
                       accuracy=np.inf, throw=False)  # fmt: skip
    return jnp.concatenate([run.events["hit"].t[:2], run.q[ROWS, 0], run.v[ROWS, 0]]), run


def exact(p):
    e, h = p
    first = jnp.sqrt(2.0 * h / G)
    speed, times = e * G * first, jnp.stack([first, (1.0 + 2.0 * e) * first])
    s = DT * ROWS - jnp.where(DT * ROWS > times[1], times[1], times[0])
    v = jnp.where(DT * ROWS > times[1], e, 1.0) * speed
    falls = DT * ROWS < first
    q = jnp.where(falls, h - 0.5 * G * (DT * ROWS) ** 2, v * s - 0.5 * G * s**2)
    return jnp.concatenate([times, q, jnp.where(falls, -G * DT * ROWS, v - G * s)])


@pytest.mark.parametrize(
    "kind",
    [mbd.RK4, *(pytest.param(k, marks=pytest.mark.slow) for k in (EXACT[1], mbd.Variational))],
)
def test_bounces(kind):
    found, run = bounced(FIRST, kind)
    np.testing.assert_allclose(found, exact(FIRST), rtol=0, atol=1e-12)
    assert run.status == mbd.Status.OK and run.steps < 100 + 10 and run.error < 1e-9


@pytest.mark.parametrize("kind", FIRST_KINDS)
def test_impacts_that_accumulate_end_the_run(kind):
    """Semi-implicit Euler loses flights shorter than a step, and half a step at each impact."""
    run = bounced(np.array([0.5, 1.0]), kind)[1]
    assert run.status == mbd.Status.ZENO and run.events["hit"].count > 4
    late = 1e-6 if kind in EXACT else 15 * DT
    np.testing.assert_allclose(run.failed_at, np.sqrt(2.0 / G) * 3.0, rtol=0, atol=late)
    np.testing.assert_allclose([run.end.q, run.end.v], 0.0, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivatives(mode):
    slopes = jax.jit(mode(lambda p: bounced(p)[0]))(FIRST)
    np.testing.assert_allclose(slopes, jax.jit(jax.jacfwd(exact))(FIRST), rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_the_steps(kind):
    """At steps far too long they are what differences of runs give, not those of the motion.

    A pendulum with a stop at an angle, by p = (restitution, angle, first angle).
    """

    def swung(p):
        stop = mbd.Event(lambda t, q, v: q[0] - p[1], direction=1, restitution=p[0])
        run = mbd.simulate(mbd.zoo.simple_pendulum(), p[2:], dt=0.05, t1=1.0, method=kind(),
                           events={"stop": stop}, accuracy=np.inf, throw=False)  # fmt: skip
        return jnp.concatenate([run.events["stop"].t[:1], run.q[-1], run.v[-1]])

    @jax.jit
    def found(p):
        return swung(p), jax.jacfwd(swung)(p), jax.jacrev(swung)(p)

    p, h = np.array([0.8, 1.2, 0.1]), 1e-3
    value, forward, reverse = found(p)
    near = [[found(p + k * h * x)[0] for k in (-2, -1, 1, 2)] for x in np.eye(3)]
    differences = np.transpose([(8.0 * (c - b) - (d - a)) / (12.0 * h) for a, b, c, d in near])
    assert np.isfinite(value).all() and value[0] > 0.0
    np.testing.assert_allclose(forward, differences, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_single_runs(kind):
    many = np.stack([FIRST, [0.85, 1.2]])
    batch = jax.jit(lanes.vmap(lambda p: bounced(p, kind)[0]))(many)
    single = np.stack([bounced(p, kind)[0] for p in many])
    np.testing.assert_allclose(batch, single, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "kind", [*FIRST_KINDS, pytest.param(mbd.Variational, marks=pytest.mark.slow)]
)
def test_times_have_the_order_of_the_method_and_errors_are_those_of_the_run(kind):
    """Of a function of speeds, of an impact, and of the motion after it.

    From rest on the speeds of semi-implicit Euler are of second order, its places of first.
    """
    mech = mbd.zoo.simple_pendulum()
    watched = {
        "fast": mbd.Event(lambda t, q, v: v[0] - 2.0, direction=1),
        "stop": mbd.Event(lambda t, q, v: q[0] - 0.8, direction=1, restitution=0.8),
    }
    given = {"t1": 0.6, "accuracy": np.inf}
    best = mbd.simulate(
        mech, [0.1], method=mbd.DormandPrince8(1e-13, 1e-14), events=watched, **given
    )
    given, wrong = {**given, "method": kind()}, []
    steps = 2.5e-3 if kind is mbd.SemiImplicitEuler else 0.0125
    for dt in (steps, 0.5 * steps):
        run = mbd.simulate(mech, [0.1], dt=dt, events=watched, **given)
        assert all(run.events[k].count == best.events[k].count == 1 for k in watched)
        times = [run.events[k].t[0] - best.events[k].t[0] for k in watched]
        wrong.append(np.abs([*times, *(run.v[-1] - best.v[-1])]))
    slopes = np.log2(wrong[0] / wrong[1])[1 if kind is mbd.SemiImplicitEuler else 0 :]
    assert np.all(np.abs(slopes - ORDERS[kind]) < 0.1), slopes


@pytest.mark.parametrize("kind", FIRST_KINDS)
def test_without_an_event_the_steps_are_those_of_the_method(kind):
    mech, never = mbd.zoo.simple_pendulum(), mbd.Event(lambda t, q, v: t + 1.0)
    given = {"t1": 0.5, "dt": 0.01, "method": kind(), "accuracy": 1.0}
    plain = mbd.simulate(mech, [0.1], **given)
    run = mbd.simulate(mech, [0.1], events={"never": never}, **given)
    np.testing.assert_allclose(run.q, plain.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.error, plain.error, rtol=1e-9)
    assert run.steps == 50 and run.rejected == 0


@pytest.mark.parametrize("kind", FIRST_KINDS)
def test_two_events_at_once_and_one_that_ends_the_run(kind):
    watched = {
        f"m{i}": mbd.Event(lambda t, q, v, i=i: q[i], direction=-1, restitution=0.5)
        for i in range(2)
    }
    watched["end"] = mbd.Event(lambda t, q, v: t - 0.715, stop=True)
    run = mbd.simulate(masses(2), [1.0, 1.0], t1=0.8, dt=DT, method=kind(), events=watched,
                       accuracy=1.0)  # fmt: skip
    when = run.events["m0"].t[0]
    assert [int(run.events[k].count) for k in watched] == [1, 1, 1] and run.status == 0
    np.testing.assert_allclose(run.events["m1"].t[0], when, rtol=0, atol=1e-14)
    np.testing.assert_allclose([run.end.t, run.events["end"].t[0]], 0.715, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(np.isfinite(run.q[:, 0]), run.t < 0.715)
    np.testing.assert_allclose(run.end.q[0], run.end.q[1], rtol=0, atol=1e-13)
    if kind in EXACT:
        after = 0.715 - np.sqrt(2.0 / G)
        np.testing.assert_allclose(when, np.sqrt(2.0 / G), rtol=0, atol=1e-14)
        up = 0.5 * np.sqrt(2.0 * G)
        np.testing.assert_allclose(run.end.q, up * after - 0.5 * G * after**2, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [mbd.GeneralizedAlpha, mbd.SemiImplicitEuler])
def test_a_run_goes_on_to_the_bit_also_from_an_event_at_a_saved_time(kind):
    """The memories of methods are handed on; the impact counts once."""
    mech, method = mbd.zoo.simple_pendulum(), kind()
    reached = mbd.simulate(mech, [0.1], dt=0.01, t1=0.3, method=method, accuracy=1.0).q[-1, 0]
    for angle in (0.8, reached):
        way = jax.tree_util.Partial(lambda a, t, q, v: q[0] - a, jnp.asarray(angle))
        stop = mbd.Event(way, direction=1, restitution=0.8)
        given = {"dt": 0.01, "method": method, "events": {"stop": stop}, "accuracy": np.inf}
        whole = mbd.simulate(mech, [0.1], t1=0.6, **given)
        half = mbd.simulate(mech, [0.1], t1=0.3, **given)
        rest = mbd.simulate(mech, half.end, t1=0.6, **given)
        np.testing.assert_array_equal(rest.q[-1], whole.q[-1])
        np.testing.assert_array_equal(rest.events["stop"].t, whole.events["stop"].t)
        assert whole.events["stop"].count == rest.events["stop"].count == 1


@pytest.mark.parametrize(
    ("kind", "within"),
    [
        (mbd.RK4, 1e-8),
        pytest.param(mbd.SemiImplicitEuler, 0.01, marks=pytest.mark.slow),
        pytest.param(mbd.GeneralizedAlpha, 1e-4, marks=pytest.mark.slow),
    ],
)
def test_a_stop_of_the_crank_of_a_four_bar(kind, within):
    mech = mbd.zoo.n_four_bar(1, planar=True)
    start = mbd.assemble(mech, {"ground_0": 0.3})
    v = mbd.assemble_velocity(mech, start.q, {"ground_0": 2.0})
    stop = mbd.Event(lambda t, q, v: q[0] - 0.8, direction=1, restitution=0.6)
    given = {"t1": 0.3, "events": {"stop": stop}, "accuracy": 1.0}
    best = mbd.simulate(mech, start.q, v, method=mbd.DormandPrince8(1e-12, 1e-13), **given)
    more = {"constraints": "stages"} if kind is mbd.RK4 else {}
    run = mbd.simulate(mech, start.q, v, method=kind(), dt=2.5e-3, **given, **more)
    assert run.events["stop"].count == best.events["stop"].count == 1
    np.testing.assert_allclose(
        run.events["stop"].t[0], best.events["stop"].t[0], rtol=0, atol=within
    )
    np.testing.assert_allclose(run.v[-1], best.v[-1], rtol=0, atol=50.0 * within)
    assert run.drift < 1e-12


def test_a_solver_of_diffrax_cannot():
    diffrax = pytest.importorskip("diffrax")
    hit = {"hit": mbd.Event(lambda t, q, v: q[0])}
    with pytest.raises(ValueError, match="Tsit5.*cannot look for them: give 'dormand_prince'"):
        mbd.simulate(masses(), [1.0], t1=0.1, dt=0.1, method=diffrax.Tsit5(), events=hit)
