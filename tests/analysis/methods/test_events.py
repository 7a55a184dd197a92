"""Events: times against closed forms, impacts, derivatives, saved times, batches, rest."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.analysis import Occurrences

KINDS = [mbd.DormandPrince, mbd.Rodas, pytest.param(mbd.DormandPrince8, marks=pytest.mark.slow)]
T = np.array([0.0, 1.3, 2.0, 2.5])
FIRST = np.array([0.8, 1.0, 9.81])


def masses(g=9.81, n=1):
    """n masses of 1 kg on vertical slides of their own."""
    axis = (0.0, 0.0, 1.0)
    places = {f"m{i}": (float(i), 0.0, 0.0) for i in range(n)}
    return mbd.Mechanism(
        {k: mbd.Body(1.0, at, np.eye(3)) for k, at in places.items()},
        {f"slide{k}": mbd.Prismatic("ground", k, at, axis) for k, at in places.items()},
        gravity=-g * jnp.array(axis),
    )


def bouncing(p, kind, floor=0.0, t=T):
    """A mass dropped from h onto a floor with restitution e, by p = (e, h, g)."""
    e, h, g = p
    hit = mbd.Event(lambda t, q, v: q[0] - floor, direction=-1, restitution=e)
    return mbd.simulate(
        masses(g), jnp.stack([floor + h]), t=t, method=kind(), events={"hit": hit}, throw=False
    )


@partial(jax.jit, static_argnums=1)
def bounced(p, kind):
    run = bouncing(p, kind)
    return jnp.concatenate([run.events["hit"].t[:4], run.q[1:, 0], run.v[1:, 0]])


def exact_bounces(p):
    """Times of four impacts, heights and speeds at the times T."""
    e, h, g = p
    times, speeds = [jnp.sqrt(2 * h / g)], [jnp.sqrt(2 * h * g)]
    for _ in range(3):
        speeds.append(e * speeds[-1])
        times.append(times[-1] + 2 * speeds[-1] / g)
    q, v = h - g * T[1:] ** 2 / 2, -g * T[1:]
    for when, speed in zip(times, speeds, strict=True):
        s = T[1:] - when
        q, v = (
            jnp.where(s > 0, e * speed * s - g * s**2 / 2, q),
            jnp.where(s > 0, e * speed - g * s, v),
        )
    return jnp.concatenate([jnp.stack(times), q, v])


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize(
    "kind",
    [KINDS[0], *(pytest.param(k, marks=pytest.mark.slow) for k in (mbd.Rodas, mbd.DormandPrince8))],
)
def test_bounces_and_their_derivatives(kind, mode):
    value = partial(bounced, kind=kind)
    np.testing.assert_allclose(value(FIRST), exact_bounces(FIRST), rtol=0, atol=1e-12)
    slopes = jax.jit(jax.jacfwd(exact_bounces))(FIRST)
    np.testing.assert_allclose(jax.jit(mode(value))(FIRST), slopes, rtol=0, atol=1e-9)


def test_a_batch_equals_single_runs():
    p = np.array([FIRST, [0.5, 2.0, 9.0], [0.9, 0.3, 3.0], [0.6, 0.1, 20.0]])
    all_of = jax.jit(lanes.vmap(lambda p: bounced(p, mbd.DormandPrince)))
    batch, order = np.asarray(all_of(p)), [2, 0, 3, 1]
    np.testing.assert_array_equal(all_of(p[order]), batch[order])
    single = [bounced(x, mbd.DormandPrince) for x in p]
    np.testing.assert_allclose(batch, single, rtol=1e-14, atol=1e-14)


def test_a_failed_sample_spoils_no_gradient():
    @jax.jit
    @jax.grad
    def slope(g, heights):
        ends = lanes.vmap(lambda h: bounced(jnp.stack([0.8, h, g]), mbd.DormandPrince)[-1])
        return jnp.nansum(ends(heights))

    found, good = slope(9.81, np.array([1.0, np.nan])), slope(9.81, np.array([1.0, 1.0]))
    np.testing.assert_allclose(found, 0.5 * good, rtol=1e-13)


@pytest.mark.parametrize(
    "kind", [KINDS[0], pytest.param(mbd.Rodas, marks=pytest.mark.slow), KINDS[2]]
)
def test_impacts_that_accumulate_end_the_run(kind):
    """Also where the floor is so far off that its rounding is larger than the last bounces."""
    e, floors = 0.8, np.array([0.0, -0.3, 30.0])

    @jax.jit
    @lanes.vmap
    def runs(floor):
        return bouncing(FIRST, kind, floor, np.arange(0.0, 7.0))

    run = runs(floors)
    rest = np.sqrt(2 / FIRST[2]) * (1 + 2 * e / (1 - e))
    assert np.asarray(run.status).tolist() == [mbd.Status.ZENO] * 3
    np.testing.assert_allclose(run.failed_at, rest, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(run.end.t, run.failed_at)
    np.testing.assert_allclose(run.end.q[:, 0], floors, rtol=0, atol=1e-12)
    assert np.isfinite(run.q[:, :5]).all() and np.isnan(run.q[:, 5:]).all()
    np.testing.assert_array_equal(run.fine[0], np.arange(7) < 5)
    assert np.all(np.abs(run.events["hit"].count - 63 - 10) < 3)


def test_rounding_does_not_keep_a_mass_bouncing():
    """States saved often let impacts be resolved until a bounce is no higher than rounding."""
    run = jax.jit(partial(bouncing, kind=mbd.DormandPrince, t=np.arange(0.0, 4.5, 0.01)))(FIRST)
    rest = np.sqrt(2 / FIRST[2]) * (1 + 2 * FIRST[0] / (1 - FIRST[0]))
    assert run.status == mbd.Status.ZENO and 70 < run.events["hit"].count < 80
    np.testing.assert_allclose(run.failed_at, rest, rtol=0, atol=3e-7)


def test_what_depends_on_speeds_is_no_gap():
    """Its first zero is in mid-air, where nothing bounces: the sample fails there."""
    high = mbd.Event(lambda t, q, v: q[0] + 0.1 * v[0], direction=-1, restitution=0.5)
    run = mbd.simulate(
        masses(), [1.0], t1=1.0, method="dormand_prince", events={"hit": high}, throw=False
    )
    fall = np.roots([-9.81 / 2, -9.81 * 0.1, 1.0]).max()
    assert run.status == mbd.Status.DIVERGED and np.isnan(run.q[-1, 0])
    np.testing.assert_allclose(run.failed_at, fall, rtol=1e-6)


def test_a_mass_at_rest_on_the_floor_is_told():
    hit = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=0.3)
    with pytest.raises(ValueError, match=r"zeno.*same event happened again at once.*'hit': 2"):
        mbd.simulate(masses(), [0.0], t1=1.0, method="rodas", events={"hit": hit})


@jax.jit
def zeros(roots, a):
    """Zeros of a cubic within one step: all, the rising ones, the falling ones; and a swing."""

    def cubic(t, q, v):
        return (t - roots[0]) * (t - roots[1]) * (t - roots[2])

    watched = {str(d): mbd.Event(cubic, direction=d, keep=3) for d in (-1, 0, 1)}
    watched["swing"] = mbd.Event(lambda t, q, v: jnp.sin(t) - a, keep=2)
    return mbd.simulate(
        masses(), [1.0], t1=2.5, method="dormand_prince", events=watched, throw=False
    )


def test_all_zeros_in_a_step():
    roots = np.array([0.31, 0.37, 0.52])
    found = zeros(roots, 0.9).events
    np.testing.assert_allclose(found["0"].t, roots, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found["1"].t, [*roots[::2], np.nan], rtol=0, atol=1e-13)
    np.testing.assert_allclose(found["-1"].t, [roots[1], np.nan, np.nan], rtol=0, atol=1e-13)
    pair = [np.arcsin(0.9), np.pi - np.arcsin(0.9)]
    np.testing.assert_allclose(found["swing"].t, pair, rtol=0, atol=1e-13)
    assert isinstance(found["0"], Occurrences) and found["0"].count == 3
    assert np.isnan(zeros(roots, 1.01).events["swing"].t).all()
    twice = zeros(np.array([0.31, 0.31 + 1e-6, 0.52]), 0.9).events
    assert [int(twice[k].count) for k in ("-1", "0", "1")] == [1, 3, 2]


@pytest.mark.slow
def test_a_grazed_zero_has_no_derivative():
    """``(t − 1)² − a`` touches zero at a = 0: its times go with √a."""

    @jax.jit
    @partial(jax.jacfwd, has_aux=True)
    def slope(a):
        watched = {"near": mbd.Event(lambda t, q, v: (t - 1.0) ** 2 - a, direction=-1)}
        run = mbd.simulate(
            masses(), [1.0], t1=1.7, method="dormand_prince", events=watched, throw=False
        )
        return run.events["near"].t[0], run.events["near"].count

    for a in (0.25, 1e-4):
        np.testing.assert_allclose(slope(a)[0], -0.5 / np.sqrt(a), rtol=1e-7)
    found, count = slope(1e-14)
    assert count == 1 and np.isnan(found)
    assert slope(-1e-4) == (0.0, 0)


@pytest.mark.slow
def test_two_masses_hit_at_the_same_time():
    @jax.jit
    def hits(h):
        watched = {
            f"m{i}": mbd.Event(lambda t, q, v, i=i: q[i], direction=-1, restitution=0.5)
            for i in range(2)
        }
        run = mbd.simulate(
            masses(n=2), h, t1=0.6, method="dormand_prince", events=watched, throw=False
        )
        return jnp.stack([run.events[f"m{i}"].t[0] for i in range(2)]), run

    h = np.array([1.0, 1.0])
    times, run = hits(h)
    when = np.sqrt(2 / 9.81)
    np.testing.assert_allclose(times, when, rtol=0, atol=1e-14)
    np.testing.assert_allclose(run.v[-1], 0.5 * 9.81 * when - 9.81 * (0.6 - when), atol=1e-12)
    slope = jax.jit(jax.jacfwd(hits, has_aux=True))(h)[0]
    np.testing.assert_allclose(slope, 0.5 * when * np.eye(2), rtol=0, atol=1e-9)


HIT = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=FIRST[0])


def hitting(start, t):
    return mbd.simulate(masses(), start, t=t, method="dormand_prince", events={"hit": HIT})


def test_an_event_at_a_saved_time():
    """Neither lost nor counted twice, and a run goes on to the bit."""
    when = float(hitting([1.0], [0.0, 0.3, 1.0]).events["hit"].t[0])
    for s in (np.nextafter(when, 0.0), when, np.nextafter(when, 1.0), when + 1e-12):
        whole, half = hitting([1.0], [0.0, s, 1.0]), hitting([1.0], [0.0, s])
        rest = hitting(half.end, [s, 1.0])
        assert whole.events["hit"].count == rest.events["hit"].count == 1
        np.testing.assert_array_equal(rest.q[-1], whole.q[-1])
        np.testing.assert_allclose(whole.events["hit"].t[0], when, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(rest.events["hit"].t, whole.events["hit"].t)
        np.testing.assert_allclose(whole.q[1], 0.0, rtol=0, atol=1e-11)


def test_an_event_ends_a_sample():
    low = mbd.Event(lambda t, q, v: q[0] - 0.5, stop=True)
    run = mbd.simulate(
        masses(), [1.0], t1=1.0, dt=0.1, method="dormand_prince", events={"low": low}
    )
    when = np.sqrt(1.0 / 9.81)
    assert run.status == mbd.Status.OK and np.isinf(run.failed_at)
    np.testing.assert_allclose([run.end.t, run.events["low"].t[0]], when, rtol=0, atol=1e-14)
    np.testing.assert_allclose(run.end.q, 0.5, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(np.isfinite(run.q[:, 0]), run.t < when)
    np.testing.assert_array_equal(run.fine, run.t < when)
    rest = mbd.simulate(masses(), run.end, t1=1.0, method="dormand_prince", events={"low": low})
    np.testing.assert_allclose(rest.q[-1], 1.0 - 9.81 / 2, rtol=0, atol=1e-12)
    assert rest.events["low"].count == 1


def test_a_jump_of_ones_own():
    """Reversed speeds are an impact; a state put elsewhere is at a new distance from the event."""
    back = mbd.Event(lambda t, q, v: q[0], direction=-1, jump=lambda t, q, v: (q, -FIRST[0] * v))
    lift = mbd.Event(lambda t, q, v: q[0], direction=-1, jump=lambda t, q, v: (q + 1.0, 0.0 * v))
    runs = [
        mbd.simulate(masses(), [1.0], t=T, method="dormand_prince", events={"hit": e}, throw=False)
        for e in (back, lift)
    ]
    np.testing.assert_allclose(runs[0].q[:, 0], [1.0, *exact_bounces(FIRST)[4:7]], atol=1e-12)
    when = np.sqrt(2 / 9.81) * np.arange(1, 6)
    np.testing.assert_allclose(runs[1].events["hit"].t[:5], when, rtol=0, atol=1e-13)


def turning(p):
    """A spatial four-bar at crank speed p[0], whose crank hits a stop at p[1] with e = p[2]."""
    mech = mbd.zoo.rssr()
    q = mbd.neutral(mech)
    v = mbd.assemble_velocity(mech, q, {"crank": p[0]})
    stop = mbd.Event(lambda t, q, v: p[1] - q[0], direction=-1, restitution=p[2])
    times, method = np.array([0.0, 0.3]), mbd.DormandPrince()
    run = mbd.simulate(mech, q, v, t=times, method=method, events={"stop": stop}, throw=False)
    return jnp.concatenate([run.events["stop"].t[:1], run.q[-1], run.v[-1]])


@pytest.mark.slow
def test_an_impact_in_a_closed_loop():
    """Against the run up to the impact, Newton's law by NumPy, and the run after it."""
    mech, p = mbd.zoo.rssr(), np.array([3.0, 0.5, 0.6])
    turn = jax.jit(jax.jacfwd(lambda p: (turning(p),) * 2, has_aux=True))
    slopes, found = (np.asarray(x) for x in turn(p))
    q = mbd.neutral(mech)
    v = mbd.assemble_velocity(mech, q, {"crank": p[0]})
    before = mbd.simulate(mech, q, v, t=[0.0, found[0]], method="dormand_prince").end
    np.testing.assert_allclose(before.q[0], p[1], rtol=0, atol=1e-10)

    rows, mass = (
        np.asarray(mbd.constraint_jacobian(mech, before.q)),
        mbd.mass_matrix(mech, before.q),
    )
    kkt = np.block([[np.asarray(mass), -rows.T], [rows, np.zeros((3, 3))]])
    w = np.linalg.lstsq(kkt, np.eye(8)[0], rcond=None)[0][:5]  # the coupler's spin is idle
    after = before.v - (1.0 + p[2]) * before.v[0] / w[0] * w
    np.testing.assert_allclose(after[0], -p[2] * before.v[0], rtol=1e-12)
    rest = mbd.simulate(mech, before.q, after, t=[found[0], 0.3], method="dormand_prince")
    np.testing.assert_allclose(found[1:], [*rest.q[-1], *rest.v[-1]], rtol=0, atol=1e-8)

    np.testing.assert_allclose(slopes[0, 1], 1.0 / before.v[0], rtol=1e-9)
    h = 1e-4
    apart = [(turn(p + h * x)[1] - turn(p - h * x)[1]) / (2 * h) for x in np.eye(3)]
    np.testing.assert_allclose(slopes, np.transpose(apart), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_what_a_drive_closes_cannot_bounce():
    """Two masses, one moved by a drive: a gap of the other bounces, one of the driven fails."""
    mech = mbd.Mechanism(
        {k: mbd.Body(1.0, (x, 0.0, 0.0), np.eye(3)) for k, x in (("a", 0.0), ("b", 1.0))},
        {f"s{k}": mbd.Prismatic("ground", k, (x, 0.0, 0.0), (0.0, 0.0, 1.0))
         for k, x in (("a", 0.0), ("b", 1.0))},
        drives={"press": mbd.Drive("sa", lambda t, p: -t)},
    )  # fmt: skip

    def run(weights):
        def gap(t, q, v):
            return weights @ q + weights[0] - 0.5

        hit = {"hit": mbd.Event(gap, direction=-1, restitution=0.5)}
        q, v = jnp.array([0.0, 1.0]), jnp.array([-1.0, 0.0])
        found = mbd.simulate(
            mech, q, v, t=[0.0, 0.6], events=hit, method="dormand_prince", throw=False
        )
        return found.status, found.events["hit"].count, found.end.v

    status, count, v = jax.jit(jax.vmap(run))(jnp.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.1]]))
    assert count[0] == 1 and status[0] == 0
    assert status[1] == mbd.Status.DIVERGED and not np.isfinite(v[1]).any()
    np.testing.assert_allclose(v[:1, 0], -1.0, rtol=1e-12)
    # Of both gaps together only the free mass is moved: φ̇⁺ = −e φ̇⁻ by it alone.
    assert status[2] == 0 and count[2] >= 1


def test_bad_input_is_told():
    m = masses()
    with pytest.raises(ValueError, match="'hit' is no event"):
        mbd.simulate(m, [1.0], t1=0.1, method="rodas", events={"hit": lambda t, q, v: q[0]})
    for wrong, match in [
        ({"direction": 2}, "direction=2"),
        ({"restitution": 1.5}, "restitution=1.5"),
        ({"restitution": 0.5, "jump": lambda t, q, v: (q, v)}, "not both"),
        ({"keep": 0}, "keep=0"),
        ({"jump": 1.0}, "jump=1.0"),
    ]:
        with pytest.raises(ValueError, match=match):
            mbd.Event(lambda t, q, v: q[0], **wrong)
    assert mbd.simulate(m, [1.0], t1=0.1, method="rodas", events={}).events is None


@pytest.mark.slow
def test_a_gap_that_is_zero_at_the_start_and_closing_is_an_impact():
    """From the ground, and after a stop there, of the same name or another."""
    mech, fall = masses(), {"t1": 0.15, "method": "dormand_prince"}
    floor = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=0.8)
    stop = mbd.Event(lambda t, q, v: q[0], direction=-1, stop=True)
    for speed, count, up in ((-1.0, 1, 0.8), (1.0, 0, 1.0)):
        run = mbd.simulate(mech, [0.0], [speed], events={"floor": floor}, **fall)
        assert run.events["floor"].count == count
        np.testing.assert_allclose(run.q[-1], up * 0.15 - 0.5 * 9.81 * 0.15**2, rtol=1e-9)
    down = mbd.simulate(mech, [1.0], t1=2.0, method="dormand_prince", events={"floor": stop})
    speed = np.sqrt(2.0 * 9.81)
    for name in ("floor", "other"):
        run = mbd.simulate(mech, down.end, t=down.end.t + np.array([0.0, 0.5]),
                           method="dormand_prince", events={name: floor})  # fmt: skip
        np.testing.assert_allclose(run.q[-1], 0.4 * speed - 0.5 * 9.81 * 0.25, rtol=1e-9)


@pytest.mark.slow
def test_there_are_no_states_between_rows_with_an_impact_between():
    mech, times = masses(), [0.0, 0.2, 0.4, 0.6, 0.8]
    floor = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=0.8)
    seen = mbd.Event(lambda t, q, v: q[0] - 0.9, direction=-1)
    run = mbd.simulate(mech, [1.0], t=times, method="dormand_prince",
                       events={"floor": floor, "seen": seen})  # fmt: skip
    q, _ = mbd.states_at(mech, run, [0.1, 0.3, 0.5, 0.6, 0.7])
    np.testing.assert_array_equal(np.isnan(q[:, 0]), [False, False, True, False, False])
    np.testing.assert_allclose(q[:2, 0], 1.0 - 0.5 * 9.81 * np.array([0.01, 0.09]), rtol=1e-9)


@pytest.mark.slow
def test_a_restitution_that_is_none_spoils_no_derivative_of_others():
    def height(e, g):
        mech = masses(g)
        hit = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=e)
        run = mbd.simulate(mech, [0.5], t=[0.0, 0.4], method=mbd.DormandPrince(rtol=1e-9),
                           events={"hit": hit}, throw=False)  # fmt: skip
        return run.q[-1, 0]

    @jax.jit
    @jax.grad
    def slope(g, e):
        found = jax.vmap(height, (0, None))(e, g)
        return jnp.sum(jnp.where(jnp.isfinite(found), found, 0.0))

    alone = slope(9.81, np.array([0.5, 0.5])) / 2.0
    np.testing.assert_allclose(slope(9.81, np.array([0.5, np.nan])), alone, rtol=1e-12)
