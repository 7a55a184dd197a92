"""Switches, which events change and inputs read: a relay and a latch against closed forms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

KINDS = [mbd.DormandPrince, pytest.param(mbd.Rodas, marks=pytest.mark.slow)]
T = np.array([0.0, 0.4, 2.0, 4.0, 5.0, 8.0])


def mass():
    """1 kg on a slide, free."""
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"x": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
        gravity=(0.0, 0.0, 0.0),
    )


def relay(p):
    """A force f until the mass has passed high, −f until it has passed low."""
    f, low, high = p
    events = {
        "high": mbd.Event(lambda t, q, v: q[0] - high, direction=1, sets={"on": 0.0}),
        "low": mbd.Event(lambda t, q, v: q[0] - low, direction=-1, sets={"on": 1.0}),
    }

    def inputs(t, q, v, switches):
        return {"x": f * (2.0 * switches["on"] - 1.0)}

    return events, inputs


def relayed(p, start, t, kind, **given):
    events, inputs = relay(p)
    return mbd.simulate(
        mass(), start, t=t, method=kind(), events=events, inputs=inputs, throw=False, **given
    )


@partial(jax.jit, static_argnums=1)
def controlled(p, kind):
    run = relayed(p, [0.0], T, kind, switches={"on": 1.0})
    times = [run.events["high"].t[:2], run.events["low"].t[:1]]
    return jnp.concatenate([*times, run.q[1:, 0], run.v[1:, 0]]), run


def exact_relay(p):
    """Times of the first three switchings, and positions and speeds at the times T."""
    f, low, high = p
    t, q, v, force, times = 0.0, 0.0, 0.0, f, []
    rows_q, rows_v = (jnp.zeros(len(T)) for _ in range(2))
    for level in (high, low, high, None):
        s = T - t
        rows_q = jnp.where(s >= 0.0, q + v * s + 0.5 * force * s**2, rows_q)
        rows_v = jnp.where(s >= 0.0, v + force * s, rows_v)
        if level is not None:  # the later zero of q + v s + force s²/2 = level
            root = jnp.sqrt(v * v + 2.0 * force * (level - q))
            way = jnp.sign(force)
            s = (way * root - v) / force
            t, q, v, force = t + s, level, v + force * s, -force
            times.append(t)
    return jnp.concatenate([jnp.stack([times[0], times[2], times[1]]), rows_q[1:], rows_v[1:]])


FIRST = np.array([1.0, -0.3, 0.5])


@pytest.mark.parametrize("kind", KINDS)
def test_a_relay_with_hysteresis(kind):
    found, run = controlled(FIRST, kind)
    np.testing.assert_allclose(found, exact_relay(FIRST), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(run.switches["on"], [1.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    assert run.status == mbd.Status.OK and run.end.switches["on"] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("mode", [jax.jacfwd, pytest.param(jax.jacrev, marks=pytest.mark.slow)])
def test_derivatives_of_the_times_and_of_the_motion_after_them(mode):
    found = jax.jit(mode(lambda p: controlled(p, mbd.DormandPrince)[0]))(FIRST)
    np.testing.assert_allclose(found, jax.jit(jax.jacfwd(exact_relay))(FIRST), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_a_batch_and_a_run_that_goes_on():
    p = np.array([FIRST, [2.0, -0.1, 0.2], [0.7, -0.5, 0.4]])
    all_of = jax.jit(lanes.vmap(lambda p: controlled(p, mbd.DormandPrince)[0]))
    batch = np.asarray(all_of(p))
    np.testing.assert_array_equal(all_of(p[::-1].copy()), batch[::-1])
    np.testing.assert_allclose(batch[0], exact_relay(p[0]), rtol=0, atol=1e-10)
    whole = relayed(FIRST, [0.0], [0.0, 2.0, 4.0], mbd.DormandPrince, switches={"on": 1.0})
    half = relayed(FIRST, [0.0], [0.0, 2.0], mbd.DormandPrince, switches={"on": 1.0})
    rest = relayed(FIRST, half.end, [2.0, 4.0], mbd.DormandPrince)
    np.testing.assert_array_equal(rest.q[-1], whole.q[-1])
    other = relayed(FIRST, half.end, [2.0, 2.1], mbd.DormandPrince, switches={"on": 1.0})
    np.testing.assert_allclose(other.v[-1] - half.v[-1], 0.1, rtol=1e-9)
    at = np.array([1.8, 2.3])
    q, _ = mbd.states_at(mass(), whole, at, inputs=relay(FIRST)[1])
    assert np.isnan(q[0, 0]) or np.isnan(q[1, 0])  # a switching lies between the rows
    calm = relayed(FIRST, [0.0], [0.0, 0.5, 0.9], mbd.DormandPrince, switches={"on": 1.0})
    q, _ = mbd.states_at(mass(), calm, np.array([0.2, 0.7]), inputs=relay(FIRST)[1])
    np.testing.assert_allclose(q[:, 0], [0.02, 0.245], rtol=1e-12)


@pytest.mark.parametrize("slope", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_latch_that_lets_go(slope):
    """A mass is caught by a spring at x = d, and let go where that would pull it on."""

    @jax.jit
    def caught(p):
        speed, d, k = p
        events = {
            "catch": mbd.Event(lambda t, q, v: q[0] - d, direction=1, sets={"caught": 1.0}),
            "release": mbd.Event(
                lambda t, q, v: q[0] - d, direction=-1, when={"caught": 1.0},
                sets=lambda t, q, v, switches: {"caught": jnp.where(v[0] < 0.0, 0.0, 1.0)},
            ),
            "still": mbd.Event(lambda t, q, v: q[0] - d, direction=-1, when={"caught": 2.0}),
        }  # fmt: skip

        def inputs(t, q, v, switches):
            return {"x": -switches["caught"] * k * (q[0] - d)}

        run = mbd.simulate(
            mass(), [0.0], speed[None], t=[0.0, 1.0, 3.0], method=mbd.DormandPrince(),
            events=events, inputs=inputs, switches={"caught": 0.0}, throw=False,
        )  # fmt: skip
        times = [run.events[n].t[0] for n in ("catch", "release")]
        return jnp.stack([*times, run.q[-1, 0], run.v[-1, 0]]), run.events["still"].count

    def exact(p):
        speed, d, k = p
        begin, end = d / speed, d / speed + jnp.pi / jnp.sqrt(k)
        return jnp.stack([begin, end, d - speed * (3.0 - end), -speed])

    p = np.array([0.9, 0.5, 9.0])
    found, count = caught(p)
    np.testing.assert_allclose(found, exact(p), rtol=0, atol=1e-9)
    assert count == 0
    if slope:
        slopes = jax.jit(jax.jacfwd(lambda p: caught(p)[0]))(p)
        np.testing.assert_allclose(slopes, jax.jit(jax.jacfwd(exact))(p), rtol=0, atol=1e-7)


def test_bad_input_is_told():
    events, inputs = relay(FIRST)
    run = partial(mbd.simulate, mass(), [0.0], t1=0.1, method="dormand_prince")
    with pytest.raises(ValueError, match=r"'high' has a switch 'on'.*give switches="):
        run(events=events)
    with pytest.raises(ValueError, match="switches= without events="):
        run(switches={"on": 1.0})
    with pytest.raises(ValueError, match="a function of switches"):
        run(inputs=inputs)
    with pytest.raises(ValueError, match=r"an event sets \['off'\]"):
        wrong = mbd.Event(lambda t, q, v: q[0], sets=lambda t, q, v, switches: {"off": 1.0})
        run(events={"e": wrong}, switches={"on": 1.0})
    with pytest.raises(ValueError, match=r"'on' has the shape \(2,\)"):
        run(events=events, switches={"on": [1.0, 0.0]})
    with pytest.raises(ValueError, match=r"'e': switch 'on' has the shape \(2,\)"):
        run(events={"e": mbd.Event(lambda t, q, v: t, sets={"on": [1.0, 0.0]})},
            switches={"on": 1.0})  # fmt: skip
    for argument in ("sets", "when"):
        with pytest.raises(ValueError, match=f"{argument}=1.0"):
            mbd.Event(lambda t, q, v: q[0], **{argument: 1.0})


@pytest.mark.slow
def test_they_stay_in_a_run_without_events():
    events, inputs = relay(FIRST)
    half = relayed(FIRST, [0.0], [0.0, 2.0], mbd.DormandPrince, switches={"on": 1.0})
    rest = mbd.simulate(mass(), half.end, t=[2.0, 3.0], method="dormand_prince", inputs=inputs)
    force = 2.0 * half.switches["on"][-1] - 1.0
    np.testing.assert_allclose(rest.v[-1] - half.v[-1], force, rtol=1e-9)
    np.testing.assert_array_equal(rest.switches["on"], half.switches["on"][-1])
    again = mbd.simulate(mass(), rest.end, t=[3.0, 3.1], method="auto", rtol=1e-6, inputs=inputs,
                         events=events)  # fmt: skip
    np.testing.assert_allclose(again.v[-1] - rest.v[-1], 0.1 * force, rtol=1e-9)


def test_a_run_goes_on_where_the_one_before_ended():
    """Given times in a batch contradict the end of a sample that an event has ended earlier."""
    stop = {"stop": mbd.Event(lambda t, q, v: q[0] - 0.35, stop=True)}

    @jax.jit
    @jax.vmap
    def both(v):
        first = mbd.simulate(mass(), [0.0], v[None], t=[0.0, 0.5], method="dormand_prince",
                             events=stop, throw=False)  # fmt: skip
        rest = mbd.simulate(mass(), first.end, t=[0.5, 0.6], method="dormand_prince", throw=False)
        return first.end.t, rest.status, rest.q[:, 0]

    end, status, q = both(np.array([1.0, 0.5]))
    np.testing.assert_allclose(end, [0.35, 0.5])
    assert status[0] != mbd.Status.OK and np.isnan(q[0]).all()
    assert status[1] == mbd.Status.OK
    np.testing.assert_allclose(q[1], [0.25, 0.3])
