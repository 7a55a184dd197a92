"""The balance of energy of runs: each work against a closed form, and what is truly lost."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from equipped_mechanisms import equipped_mechanism

import jaxmbd as mbd
from jaxmbd.analysis.work_balance import LOBATTO, NODES, WEIGHTS, powers

STEPS, G = 400, 9.81


def test_the_rules_of_integration():
    for weights, order in ((WEIGHTS, 10), (LOBATTO, 6)):
        errors = [weights @ NODES**n - 1.0 / (n + 1) for n in range(order + 1)]
        np.testing.assert_allclose(errors[:order], 0.0, rtol=0, atol=1e-15)
        assert abs(errors[order]) > 1e-8


@pytest.mark.slow
def test_powers_of_all_elements_are_the_rate_of_energy():
    """On a closed loop with every kind of element, two drives, inputs on tree and cut joints."""
    at = equipped_mechanism(5)
    hump = mbd.Tyre("carriage", (0, 0, 0), 90.0, 3.0, road=-0.1, law=lambda t: 0.05 + 0.3 * t)
    motor = mbd.Actuator("elbow", gear=3.0, gain=0.5, bias=(0.1, -0.2, -0.3))
    mech = at.mech.replace(forces={**at.mech.forces, "hump": hump, "servo": motor})
    inputs = {**at.inputs, "servo": 2.0}
    assert any(name in mbd.topology(mech).cut for name in inputs)

    @mbd.lanes.jit
    def rates(q, v):
        t = jnp.zeros(())
        vdot, _ = mbd.forward_dynamics(mech, q, v, t, inputs, backend="xla")

        def energy(t, q, v):
            return mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q, t)

        along = jnp.ones(()), mbd.coordinate_rates(mech, q, v), vdot
        return jax.jvp(energy, (t, q, v), along)[1], powers(mech, inputs, t, q, v)

    rate, found = rates(at.q, at.v)
    each = np.array(jax.tree_util.tree_leaves(found))
    assert set(found["forces"]) == set(mech.forces) and set(found["drives"]) == {"motor", "lift"}
    assert set(found["inputs"]) == set(at.inputs)
    idle = {n for n, x in found["forces"].items() if abs(x) < 1e-12 * abs(each).max()}
    assert {"buffer", "limit", "rotor", "rotors"} <= idle < set(mech.forces) - {"rub", "hump"}
    np.testing.assert_allclose(each.sum(), rate, rtol=0, atol=1e-11 * abs(each).max())


def slide(stiffness=0.0, damping=0.0, stop=0.0, loss=0.0, rub=0.0, slope=0.0):
    """1 kg on a guide along x; the stop is at x = 0."""
    forces = {
        "spring": mbd.TorsionSpring("slide", stiffness, damping),
        "stop": mbd.JointLimit("slide", lower=0.0, stiffness=stop, dissipation=loss),
        "rub": mbd.JointFriction("slide", rub, velocity_scale=5e-3),
    }
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
        forces,
        gravity=jnp.stack([slope, 0.0 * slope, 0.0 * slope - G]),
    )


@jax.jit
@mbd.lanes.vmap
def balances(numbers, pull, q, v, dt):
    """Runs of `STEPS` steps with a force ``pull · sin t``, and their balances."""
    mech = slide(**numbers)
    inputs = lambda t: {"slide": pull * jnp.sin(t)}  # noqa: E731
    run = mbd.simulate(mech, q, v, steps=STEPS, dt=dt, inputs=inputs, throw=False)
    return run, mbd.energy_balance(mech, run, inputs=inputs)


CASES = {
    "vibration": {"stiffness": 1.0, "dt": 2.0 * np.pi / 16.5, "q": 1.0},
    "damped": {"stiffness": 1.0, "damping": 0.2, "dt": 0.05, "q": 1.0},
    "pulled": {"stiffness": 1.0, "pull": 0.3, "dt": 0.05},
    "fallen": {"slope": -G, "dt": 0.01, "q": 1.0},
    "hit": {"stop": 8e6, "dt": 1e-3, "q": 0.1, "v": -1.0},
    "hit finely": {"stop": 8e6, "dt": 1e-5, "q": 1e-3, "v": -1.0},
    "hit softly": {"stop": 1e3, "loss": 0.3, "dt": 5e-4, "q": 0.02, "v": -1.0},
    "rubbed": {"rub": 0.3, "dt": 9e-4, "q": 1.0, "v": 1.0},
    "failed": {"stiffness": 1e9, "dt": 1.0, "q": 0.5, "v": -1.0},
}


@pytest.fixture(scope="module")
def found():
    names = ("stiffness", "damping", "stop", "loss", "rub", "slope", "pull", "q", "v", "dt")
    values = {n: np.array([float(x.get(n, 0.0)) for x in CASES.values()]) for n in names}
    pull, q, v, dt = (values.pop(n) for n in ("pull", "q", "v", "dt"))
    result = balances(values, pull, q[:, None], v[:, None], dt)
    return {n: jax.tree_util.tree_map(lambda x: np.asarray(x)[k], result)  # noqa: B023
            for k, n in enumerate(CASES)}  # fmt: skip


def test_an_undamped_vibration_loses_what_the_steps_lose(found):
    """Kutta's step shrinks it by ``|R(iz)|² = 1 − z⁶/72 + z⁸/576``, at 16.5 steps a period."""
    _, b = found["vibration"]
    z = CASES["vibration"]["dt"]
    left = (1.0 - z**6 / 72.0 + z**8 / 576.0) ** np.arange(STEPS + 1)
    np.testing.assert_allclose(b.missing, 0.5 * (left - 1.0), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(b.share, left - 1.0, rtol=1e-2, atol=1e-15)
    assert left[-1] < 0.99 and max(b.work_error.max(), abs(b.forces["spring"]).max()) < 1e-14


def test_works_in_closed_form(found):
    """Of a damper, an input, gravity and friction, with a balance of almost nothing missing."""
    run, b = found["damped"]
    rate, w = 0.1, np.sqrt(0.99)
    x, speed = np.cos(w * run.t) + rate / w * np.sin(w * run.t), -np.sin(w * run.t) / w
    decay = np.exp(-rate * run.t)
    energy = 0.5 * decay**2 * (x**2 + speed**2)
    np.testing.assert_allclose(b.forces["spring"], energy - 0.5, rtol=0, atol=1e-7)
    assert 1e-9 < abs(b.missing).max() < 1e-7 and b.work_error.max() < 1e-9

    run, b = found["pulled"]  # at resonance: x = 0.15 (sin t − t cos t), power 0.3 sin t · ẋ
    t = run.t
    work = 0.045 * (0.25 * t**2 - 0.25 * t * np.sin(2 * t) + (1 - np.cos(2 * t)) / 8)
    np.testing.assert_allclose(b.inputs["slide"], work, rtol=0, atol=1e-6)
    assert abs(b.share).max() < 1e-6 and b.work_error.max() < 1e-9

    run, b = found["fallen"]
    height = 1.0 - 0.5 * G * run.t**2
    np.testing.assert_allclose(b.kinetic, G * (1.0 - height), rtol=0, atol=1e-10)
    np.testing.assert_allclose(b.potential, G * height, rtol=0, atol=1e-10)
    assert abs(b.missing).max() < 1e-10

    run, b = found["rubbed"]  # 0.3 g as long as it slides much faster than the scale
    slides = run.v[:, 0] > 0.1
    way = run.q[slides, 0] - 1.0
    np.testing.assert_allclose(b.forces["rub"][slides], -0.3 * G * way, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(b.forces["rub"][-1], -0.5, rtol=0, atol=1e-6)
    assert slides.sum() > 250 and abs(b.share).max() < 1e-6


def test_stops_lose_energy_where_they_are_hit_too_coarsely(found):
    """8e6 N/m at 1 m/s takes 1.1 ms: at a step of 1 ms the lossless stop doubles the speed."""
    run, b = found["hit"]
    energy = 0.5 * run.v[-1, 0] ** 2 + 0.5 * 8e6 * max(-run.q[-1, 0], 0.0) ** 2
    np.testing.assert_allclose(b.missing[-1], energy - 0.5, rtol=1e-12)
    assert abs(b.missing[-1]) > 0.1 and b.work_error[-1] < 1e-12 and run.error > 0.1

    run, b = found["hit finely"]
    assert run.v[-1, 0] > 0.999 and abs(b.share[-1]) < 1e-4

    run, b = found["hit softly"]
    np.testing.assert_allclose(b.forces["stop"][-1], b.kinetic[-1] - 0.5, rtol=0, atol=1e-6)
    assert b.forces["stop"][-1] < -0.05 and abs(b.missing[-1]) < 1e-6

    run, b = found["failed"]
    gone = np.isnan(run.q[:, 0])
    assert gone.any() and not gone[0]
    for x in (b.kinetic, b.missing, b.share, b.forces["rub"]):
        assert np.isnan(x[gone]).all() and np.isfinite(x[:5]).all()


def test_a_driven_loop_and_its_reactions():
    """A crank with a given speed gives what energy changes by; reactions and gears nothing."""
    start, speed = 2.0, 8.0  # between the angles π/2 and 3π/2, where all bars lie on one line
    mech = mbd.zoo.n_four_bar(1, planar=True)
    mech = mech.replace(
        drives={"motor": mbd.Drive("ground_0", lambda t, p: p[0] + p[1] * jnp.sin(4 * t),
                                   np.array([start, speed / 4]))},
        forces={"shock": mbd.SpringDamper("ground", "coupler_1", "A_1", "B_0", 30.0, 4.0)},
    )  # fmt: skip
    q = mbd.assemble(mbd.zoo.n_four_bar(1, planar=True), known={"ground_0": start}).q
    run = mbd.simulate(mech, q, t1=0.4, dt=0.01)
    b = mbd.energy_balance(mech, run)
    assert isinstance(b, mbd.EnergyBalance)
    # The parallelogram's cranks and coupler turn and move with the crank's speed.
    angle, rate = start + speed / 4 * np.sin(4 * run.t), speed * np.cos(4 * run.t)
    inertia = 2.0 * b.kinetic[0] / speed**2
    np.testing.assert_allclose(b.kinetic, 0.5 * inertia * rate**2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(run.q[:, 0], angle, rtol=0, atol=1e-10)
    gone = b.kinetic + b.potential - b.kinetic[0] - b.potential[0] - b.forces["shock"]
    np.testing.assert_allclose(b.drives["motor"], gone, rtol=0, atol=1e-11)
    assert abs(b.drives["motor"]).max() > 1.0 and b.forces["shock"][-1] < -0.1
    assert abs(b.share).max() < 1e-12


@pytest.mark.slow
def test_impacts_have_their_own_column():
    """A ball that keeps half its speed loses three quarters of its energy at each impact."""
    mech = slide(slope=-G)
    floor = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=0.5, keep=2)
    options = {"dt": 0.05, "method": mbd.DormandPrince(rtol=1e-8), "events": {"floor": floor}}
    run = mbd.simulate(mech, [1.0], t1=0.85, **options)
    b = mbd.energy_balance(mech, run)
    hits = np.asarray(run.events["floor"].t)
    first, second = (np.searchsorted(run.t, t) for t in hits)
    steps = np.diff(np.asarray(b.impacts))
    np.testing.assert_allclose(steps[first - 1], -0.75 * G, rtol=1e-9)
    assert np.count_nonzero(abs(steps) > 1e-9) == 1 and run.events["floor"].count == 1
    assert abs(b.missing).max() < 1e-9 and second == len(run.t)
    more = mbd.energy_balance(mech, mbd.simulate(mech, [1.0], t1=1.35, **options))
    assert np.isnan(more.missing[-1]) and np.isfinite(more.missing[first + 1])


@pytest.mark.slow
def test_transforms_agree():
    """Alone, under `jax.vmap` and by lanes; derivatives forward, reverse and by differences."""

    def lost(p):
        mech = slide(stiffness=1.0, damping=p, rub=0.0, slope=0.0 * p)
        run = mbd.simulate(mech, jnp.ones(1), steps=8, dt=0.3, throw=False)
        return mbd.energy_balance(mech, run).forces["spring"][-1]

    many = np.array([0.1, 0.2, 0.3])
    batch = mbd.lanes.vmap(lost)(many)
    np.testing.assert_allclose(batch, jax.jit(jax.vmap(lost))(many), rtol=1e-12)
    forward = jax.jit(lambda p: jax.jvp(lost, (p,), (1.0,))[1])(0.2)
    np.testing.assert_allclose(forward, jax.jit(jax.grad(lost))(0.2), rtol=1e-10)
    near = mbd.lanes.vmap(lost)(0.2 + 1e-4 * np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(forward, (near[2] - near[0]) / 2e-4, rtol=1e-6)


def test_states_are_needed():
    mech = mbd.zoo.simple_pendulum()
    run = mbd.simulate(mech, [0.1], t1=0.02, dt=1e-2, outputs_only=False)
    with pytest.raises(ValueError, match="outputs_only"):
        mbd.energy_balance(mech, run._replace(q=run.q[:2]))
