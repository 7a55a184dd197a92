"""Redundant loops near the constraints, where stages of integration and Newton's iterates are."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from accuracy_cases import usd_robot
from repository import REFERENCES

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.kinematics import step_coordinates

AWAY = np.array([0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
STEP = 1e-10


@jax.jit
def accelerations_at(mech, q, v, direction, distances):
    """v̇ at distances along a direction."""

    def at(x):
        return mbd.forward_dynamics(mech, step_coordinates(mech, q, x * direction), v)[0]

    return lanes.vmap(at)(distances)


def accelerations_away(mech, q, v, rng):
    """v̇ at the distances `AWAY` along one direction, and a step of 1e-10 farther."""
    away = np.concatenate([AWAY, AWAY + STEP])
    found = accelerations_at(mech, q, v, rng.normal(size=v.shape[0]), away)
    return np.split(np.asarray(found), 2)


@pytest.mark.parametrize("slip", [0.0, 1.0], ids=["speeds that fit", "speeds off the constraints"])
@pytest.mark.parametrize("name", ["bricard", "agile_wrist", "double_parallel_crank"])
def test_accelerations_change_smoothly_with_the_distance(name, slip):
    """Redundant rows that are off by δ change v̇ by multiples of δ, and nothing jumps."""
    mech = getattr(mbd.zoo, name)()
    rng = np.random.default_rng(0)
    q = mbd.assemble(mech, guess=mbd.neutral(mech) + 0.05).q
    any_speeds = rng.normal(size=mbd.topology(mech).nv)
    v = mbd.assemble_velocity(mech, q, guess=any_speeds)
    v = v + slip * rng.normal(size=v.shape)
    here, farther = accelerations_away(mech, q, v, rng)
    size = np.max(np.abs(here[0]))
    change = np.max(np.abs(here[1:] - here[0]), axis=1) / AWAY[1:]
    slope = np.max(np.abs(farther - here), axis=1) / STEP
    assert np.all(np.concatenate([change, slope]) < 100.0 * size)
    np.testing.assert_allclose(change[:4], change[0], rtol=0.05)


def floating_loops(rng, tilt, count=1):
    """Six bodies and six hinges in a plane, on a free base; `tilt` of the hinges' axes.

    Each of the loops floats by itself.
    """
    bodies, joints = {}, {}
    for k in range(count):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        at = [
            turn @ [np.cos(x) * rng.uniform(0.7, 1.3), np.sin(x) * rng.uniform(0.7, 1.3), 0.0]
            for x in np.arange(6) * np.pi / 3.0
        ]
        names = [f"link{k}.{i}" for i in range(6)]
        for name, x in zip(names, at, strict=True):
            com = x + 0.2 * rng.normal(size=3)
            bodies[name] = mbd.Body(rng.uniform(0.5, 2.0), com, 0.3 * np.eye(3))
        joints[f"free{k}"] = mbd.Free("ground", names[0])
        for i, x in enumerate(at):
            axis = turn[:, 2] + tilt * rng.normal(size=3)
            ends = names[i], names[(i + 1) % 6]
            off = x + tilt * rng.normal(size=3)
            joints[f"hinge{k}.{i}"] = mbd.Revolute(*ends, x, axis, at_b=off)
    return mbd.Mechanism(bodies, joints)


@pytest.mark.parametrize("count", [1, 4], ids=["one", "four, with matrices in blocks"])
def test_floating_planar_loops_that_are_drawn_off_closure(count):
    """Hinges that are off by 1e-3 do not add accelerations of v²/1e-3, off the constraints too."""
    forward = jax.jit(lambda m, q, v: mbd.forward_dynamics(m, q, v)[0])
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        mech, exact = (
            floating_loops(np.random.default_rng(seed), tilt, count) for tilt in (1e-3, 0.0)
        )
        top = mbd.topology(mech)
        nv = top.nv
        bases = [i for k in range(count) for i in range(nv)[top.layout[f"free{k}"].v]]
        turned = jnp.zeros(nv).at[jnp.array(bases)].set(rng.normal(size=6 * count))
        q = step_coordinates(mech, jnp.asarray(mbd.neutral(mech)), turned)
        v = jnp.asarray(rng.normal(size=nv))
        found, wanted = (np.asarray(forward(m, q, v)) for m in (mech, exact))
        errors.append(np.max(np.abs(found - wanted)) / np.max(np.abs(wanted)))
        nearby = [forward(mech, q, v + k * STEP) for k in range(7)]
        fit = np.polynomial.Polynomial.fit
        for x in np.array(nearby).T:
            smooth = fit(np.arange(7.0), x, 2)
            np.testing.assert_allclose(x, smooth(np.arange(7.0)), rtol=0, atol=1e-8 * abs(x).max())
    assert (nv, len(mbd.mobility(exact).redundant)) == (11 * count, 3 * count)
    assert (top.loop_blocks is not None) == (count > 1)
    assert np.max(errors) < 0.02


def test_derivatives_of_runs_in_long_steps_are_those_of_differences():
    """Along servo targets, forward and reverse, where stages open the loops by a thousandth."""
    mech = mbd.zoo.bricard()
    top = mbd.topology(mech)
    q = mbd.assemble(mech, guess=mbd.neutral(mech) + 0.05).q
    v = mbd.assemble_velocity(mech, q, guess=np.full(top.nv, 3.0))
    driven, direction = top.tree[:2], jnp.array([1.0, -0.5])

    @jax.jit
    def last(targets):
        def servo(t, q, v):
            pairs = [(n, top.layout[n], x) for n, x in zip(driven, targets, strict=True)]
            return {n: 3.0 * (x - q[at.q][0]) - 0.3 * v[at.v][0] for n, at, x in pairs}

        run = mbd.simulate(mech, q, v, steps=5, dt=0.03, inputs=servo, throw=False, accuracy=1e3)
        return run.v[-1] @ jnp.arange(1.0, top.nv + 1), run.status

    def value(targets):
        return last(targets)[0]

    targets, h = jnp.array([0.6, 0.3]), 1e-5
    along = jax.jit(lambda x: jax.jvp(last, (x,), (direction,), has_aux=True))
    reverse = jax.jit(jax.grad(value))(targets) @ direction
    (after, _, status), (before, _, same), (_, forward, _) = (
        along(targets + x * direction) for x in (h, -h, 0.0)
    )
    assert status == same == mbd.Status.OK
    np.testing.assert_allclose([forward, reverse], (after - before) / (2.0 * h), rtol=1e-7)


@jax.jit
def turned_motions(mech, level, angles):
    """Coordinates, speeds and accelerations in the loop, its base turned about an axis."""
    nv = mbd.topology(mech).nv
    speeds = jnp.asarray(np.r_[np.zeros(6), np.random.default_rng(1).normal(size=nv - 6)])

    def motion(angle):
        turned = jnp.concatenate([level, np.zeros(nv - 3)]) * angle
        guess = step_coordinates(mech, jnp.asarray(mbd.neutral(mech)), turned)
        found = mbd.assemble(mech, guess=guess, throw=False)
        v = mbd.assemble_velocity(mech, found.q, guess=speeds)
        vdot, _ = mbd.forward_dynamics(mech, found.q, v)
        return jnp.concatenate([found.q[7:], v[6:], vdot[6:]]), found.status

    return lanes.vmap(motion)(angles)


@pytest.mark.parametrize("digits", [0.0, 1e-9, 1e-7])
def test_a_floating_loop_moves_alike_however_it_is_turned(digits):
    """Also where two of the world's axes are parallel in its plane, and rows along them too."""
    exact, mech = (
        floating_loops(np.random.default_rng(0), x).replace(gravity=np.zeros(3))
        for x in (0.0, digits)
    )
    axis = np.asarray(exact.joints["hinge0.0"].axis)
    level = np.cross(axis, [0.0, 0.0, 1.0]) / np.hypot(*axis[:2])
    turn = -np.arctan2(axis[2], np.hypot(*axis[:2]))  # brings the normal into the plane xy
    away = 10.0 ** np.linspace(-9.0, -1.0, 33)
    angles = np.r_[0.0, turn - away, turn, turn + away]
    found, status = turned_motions(mech, level, angles)
    assert np.all(status == mbd.Status.OK)
    np.testing.assert_allclose(found, np.tile(found[0], (68, 1)), rtol=0, atol=1e-11 + 0.1 * digits)


def four_bar_in_space(rng, digits):
    """A planar four-bar in any plane, its points and axes off by `digits`."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    drawn = np.array([[0.0, 0.0, 0.0], [0.3, 0.1, 0.0], [1.1, 0.6, 0.0], [1.2, 0.0, 0.0]]) @ turn.T
    links = "ground", "crank", "coupler", "rocker", "ground"
    bodies = {
        n: mbd.Body(1.0, (drawn[i] + drawn[i + 1]) / 2.0, 0.1 * np.eye(3))
        for i, n in enumerate(links[1:4])
    }
    joints = {
        name: mbd.Revolute(
            *links[i : i + 2],
            drawn[i],
            turn[:, 2] + digits * rng.normal(size=3),
            at_b=drawn[i] + digits * rng.normal(size=3),
        )
        for i, name in enumerate("ABCD")
    }
    return mbd.Mechanism(bodies, joints)


@jax.jit
def motion(mech):
    """A motion of `four_bar_in_space`, its statuses, and that of closing its loop to rounding."""
    at = mbd.assemble(mech, {"A": 2.0}, throw=False)
    v = mbd.assemble_velocity(mech, at.q, {"A": 1.0})
    run = mbd.simulate(mech, at.q, v, dt=1e-3, steps=100, throw=False)
    ends = [mbd.check_state(mech, q, v).status for q, v in ((at.q, v), (run.q[-1], run.v[-1]))]
    states = [at.q, v, mbd.forward_dynamics(mech, at.q, v)[0], run.q[-1], run.v[-1]]
    strict = mbd.assemble(mech, guess=at.q, throw=False, contradiction=1e-12).status
    return jnp.stack(states), jnp.stack([at.status, run.status, *ends]), strict


@pytest.mark.parametrize("digits", [1e-9, 3e-8])
def test_a_planar_loop_in_space_moves_with_the_digits_of_a_file(digits):
    """What is parallel but for rounding does not lock it: all is as with exact numbers."""
    exact, mech = (four_bar_in_space(np.random.default_rng(0), x) for x in (0.0, digits))
    found, wanted = mbd.mobility(mech), mbd.mobility(exact)
    assert found[1:5] == wanted[1:5] and wanted.dof == 1
    assert 0.3 * digits < found.contradiction < 3.0 * digits

    (found, status, strict), (wanted, _, closes) = motion(mech), motion(exact)
    assert np.all(status == mbd.Status.OK)
    assert (strict, closes) == (mbd.Status.NOT_ASSEMBLED, mbd.Status.OK)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=100.0 * digits * np.abs(wanted).max())


BIPED = json.loads((REFERENCES / "six_loop_biped.json").read_text(encoding="utf-8"))


def test_a_biped_with_the_digits_of_a_file_closes():
    """Its redundant rows contradict each other by 2e-9 m, which is told, and bounded."""
    mech = usd_robot.build(BIPED, stored=True)
    found = mbd.mobility(mech)
    assert (found.dof, len(found.redundant)) == (18, 12)
    assert 1e-10 < found.contradiction < 1e-8
    assert "they contradict each other by" in str(found)
    rng = np.random.default_rng(0)
    states = [usd_robot.state_of(mech, s) for s in BIPED["states"]]
    guesses = np.stack([q + 1e-3 * rng.normal(size=q.shape) for q, _ in states for _ in range(10)])

    def closed(q):
        assembly = mbd.assemble(mech, guess=q, throw=False)
        return assembly, mbd.check_state(mech, assembly.q)

    assembly, check = jax.jit(lanes.vmap(closed))(jnp.asarray(guesses))
    assert np.all(assembly.status == mbd.Status.OK) and np.all(check.status == mbd.Status.OK)
    assert np.max(assembly.residual) < 1e-8
    np.testing.assert_allclose(check.contradiction, assembly.residual, rtol=1e-3)
