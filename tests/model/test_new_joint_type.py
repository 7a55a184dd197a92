"""A joint type from outside the package does all that the built-in ones do.

`BarrelCam` (its own file) stands as a tree joint and as a cut one in a spatial slider-crank whose
crank slides as it turns. A cylindrical joint with a coupling of its two coordinates is the same
mechanism of built-in parts.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from barrel_cam import BarrelCam

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.formulations import absolute_forward_dynamics, particle_accelerations_of_state

X, LIFT = (1.0, 0.0, 0.0), 0.03
RUB = {"rub": mbd.JointFriction("crank", 0.3, radius=0.02, velocity_scale=1e-2)}


def built_in(lift=LIFT):
    mech = mbd.zoo.spatial_slider_crank()
    return mech.replace(
        joints={"crank": mbd.Cylindrical("ground", "crank", "pivot", X)},
        couplings={"groove": mbd.Coupling(("crank", ("crank", 1)), groove, lift)},
        forces={"spring": mbd.TorsionSpring("slide", 300.0, 2.0)},
        cut="B",
    )


def groove(q, lift):
    return q[1] - lift * jnp.sin(q[0])


def new(cut="B", lift=LIFT, **parts):
    return mbd.zoo.spatial_slider_crank().replace(
        joints={"crank": BarrelCam("ground", "crank", "pivot", X, lift)},
        forces={"spring": mbd.TorsionSpring("slide", 300.0, 2.0), **parts.pop("forces", {})},
        cut=cut,
        **parts,
    )


@pytest.fixture(scope="module")
def mechs():
    return {"tree": new(), "cut": new("crank"), "built-in": built_in()}


@pytest.fixture(scope="module")
def states(mechs):
    """The same state of all three: the crank at 0.7 rad, 6 rad/s."""
    q = {"tree": mbd.assemble(mechs["tree"], {"crank": 0.7}).q}
    v = {"tree": mbd.assemble_velocity(mechs["tree"], q["tree"], {"crank": 6.0})}
    slide = mbd.topology(mechs["tree"]).layout["slide"]
    known = {"slide": q["tree"][slide.q][0]}, {"slide": v["tree"][slide.v][0]}
    q["cut"] = mbd.assemble(mechs["cut"], known[0]).q
    v["cut"] = mbd.assemble_velocity(mechs["cut"], q["cut"], known[1])
    q["built-in"] = mbd.assemble(mechs["built-in"], {("crank", 0): 0.7}).q
    v["built-in"] = mbd.assemble_velocity(mechs["built-in"], q["built-in"], {("crank", 0): 6.0})
    return {n: (q[n], v[n]) for n in mechs}


@pytest.fixture(scope="module")
def motions(mechs, states):
    return {n: mbd.forward_dynamics(mechs[n], *states[n]) for n in mechs}


def same(values, **tolerance):
    first, *others = values.values()
    for other in others:
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **tolerance), other, first)


def test_it_stands_where_it_should(mechs):
    tops = {n: mbd.topology(m) for n, m in mechs.items()}
    assert (tops["tree"].cut, tops["cut"].cut) == (("B",), ("crank",))
    assert tops["cut"].row_names[:3] == ("crank force 1", "crank force 2", "crank force 3")
    freedom = [mbd.mobility(mechs[n]) for n in ("tree", "cut")]
    assert [(m.dof, m.kutzbach, m.idle, m.redundant) for m in freedom] == [(1, 1, (), ())] * 2
    assert "BarrelCam" in str(mechs["tree"])


def test_assembly_and_speeds_are_those_of_the_built_in_one(mechs, states):
    same({n: mbd.poses(mechs[n], states[n][0]) for n in mechs}, atol=1e-12)
    same({n: mbd.body_velocities(mechs[n], *states[n]) for n in mechs}, atol=1e-11)
    angle = mbd.joint_coordinates(mechs["cut"], states["cut"][0])["crank"]
    np.testing.assert_allclose(angle, [0.7], rtol=0, atol=1e-12)


def test_accelerations_and_reactions_are_too(mechs, states, motions):
    acc = {n: mbd.body_accelerations(mechs[n], *states[n], motions[n][0]) for n in mechs}
    same(acc, rtol=1e-9, atol=1e-9)
    forces = {n: mbd.joint_reactions(mechs[n], *states[n], *motions[n]) for n in mechs}
    # The groove pushes along the axis and, as it climbs, turns: what the coupling's efforts do.
    effort = motions["built-in"][1][mbd.topology(mechs["built-in"]).layout["groove"].rows][0]
    along = effort * np.array([-LIFT * np.cos(0.7), 0, 0, 1.0, 0, 0])
    forces["built-in"]["crank"] = forces["built-in"]["crank"] + along
    same(forces, rtol=1e-9, atol=1e-9)


def test_inverse_dynamics_undoes_forward_dynamics(mechs, states):
    """A torque on the joint, in the tree or cut, gives the motion that needs it."""
    torque = {"crank": 2.5}
    both = {n: mechs[n] for n in ("tree", "cut")}
    vdot = {n: mbd.forward_dynamics(m, *states[n], inputs=torque)[0] for n, m in both.items()}
    acc = {n: mbd.body_accelerations(m, *states[n], vdot[n]) for n, m in both.items()}
    same(acc, rtol=1e-9, atol=1e-9)
    tau, _ = mbd.inverse_dynamics(mechs["tree"], *states["tree"], vdot["tree"], actuated=("crank",))
    at = mbd.topology(mechs["tree"]).layout["crank"].v
    np.testing.assert_allclose(tau[at], [2.5], rtol=1e-9)


@pytest.mark.slow
def test_an_independent_formulation_agrees(mechs, states, motions):
    """Absolute coordinates take its rows alone; particles have no conditions for it."""
    for n in ("tree", "cut"):
        vdot, _ = absolute_forward_dynamics(mechs[n], *states[n])
        np.testing.assert_allclose(vdot, motions[n][0], rtol=1e-7, atol=1e-7)


def test_formulations_of_their_own_refuse_it(mechs, states):
    with pytest.raises((TypeError, ValueError), match="BarrelCam"):
        particle_accelerations_of_state(mechs["tree"], *states["tree"])


def test_a_simulation_keeps_its_energy_in_the_tree_and_cut(mechs, states):
    runs = {}
    for n in ("tree", "cut"):
        m = mechs[n]
        free = m.replace(forces={"spring": mbd.TorsionSpring("slide", 300.0, 0.0)})
        q, v = states[n]
        run = mbd.simulate(free, q, v, t1=0.1, dt=2.5e-4, save_every=400)
        first, last = (
            mbd.kinetic_energy(free, *x) + mbd.potential_energy(free, x[0])
            for x in ((q, v), (run.q[-1], run.v[-1]))
        )
        np.testing.assert_allclose(last, first, rtol=1e-8)
        runs[n] = mbd.poses(free, run.q[-1])
    same(runs, atol=1e-9)


@pytest.mark.slow
def test_driven_by_a_function_or_a_drive(mechs):
    def turn(t):
        return 0.7 + 6.0 * t + jnp.sin(t)

    times = jnp.linspace(0.0, 0.3, 4)
    free = mbd.simulate_driven(mechs["tree"], {"crank": turn}, t=times)
    twin = mbd.simulate_driven(mechs["built-in"], {("crank", 0): turn}, t=times)
    np.testing.assert_allclose(free.q[:, 0], twin.q[:, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(free.effort[:, 0], twin.effort[:, 0], rtol=1e-8)
    drive = new(drives={"motor": mbd.Drive("crank", lambda t, p: turn(t))})
    led = mbd.simulate_driven(drive, t=times)
    np.testing.assert_allclose(led.q, free.q, rtol=0, atol=1e-11)
    row = mbd.topology(drive).layout["motor"].rows
    np.testing.assert_allclose(led.lam[:, row], free.effort, rtol=1e-8)


@pytest.mark.slow
def test_equilibrium_and_its_vibrations(mechs):
    mechs = {n: mechs[n] for n in ("tree", "built-in")}
    rest = {n: mbd.equilibrium(m) for n, m in mechs.items()}
    same({n: mbd.poses(mechs[n], r.q) for n, r in rest.items()}, atol=1e-9)
    states = {n: mbd.linearize(mechs[n], r.q) for n, r in rest.items()}
    same({n: s.frequencies() for n, s in states.items()}, rtol=1e-7)
    same({n: s.damping_ratios() for n, s in states.items()}, rtol=1e-6)


@pytest.mark.slow
def test_friction_takes_power_from_the_turning_drum(mechs, states):
    """The journal feels ``|f⊥|`` of its reaction, in the tree and cut alike."""
    powers = {}
    for n in ("tree", "cut"):
        m, (q, v) = mechs[n].replace(forces=RUB), states[n]
        vdot, lam = mbd.forward_dynamics(m, q, v)
        torque = mbd.friction_efforts(m, q, v, vdot, lam)["crank"][0]
        across = mbd.joint_reactions(m, q, v, vdot, lam)["crank"][4:]
        np.testing.assert_allclose(torque, -0.3 * 0.02 * np.linalg.norm(across), rtol=1e-9)
        powers[n] = torque * 6.0
    same(powers, rtol=1e-9)


def test_derivatives_to_its_own_numbers(states):
    """Of accelerations and of an assembly with respect to the lift."""

    def slide(make, name):
        def acceleration(lift):
            m = make(lift=lift)
            vdot, _ = mbd.forward_dynamics(m, *states[name])
            return vdot[mbd.topology(m).layout["slide"].v][0]

        return acceleration

    lift = jnp.asarray(LIFT)
    rate = jax.grad(slide(new, "tree"))(lift)
    _, forward = jax.jvp(slide(built_in, "built-in"), (lift,), (jnp.ones(()),))
    np.testing.assert_allclose(rate, forward, rtol=1e-8)
    at = mbd.topology(new()).layout["slide"].q

    def place(lift):
        return mbd.assemble(new(lift=lift), {"crank": 0.7}).q[at]

    _, climb = jax.jvp(place, (lift,), (jnp.ones(()),))
    up, down = place(lift + 1e-5), place(lift - 1e-5)
    np.testing.assert_allclose(climb, (up - down) / 2e-5, rtol=1e-7)


@pytest.mark.parametrize("name", ["tree", "cut"])
def test_compiled_batches(mechs, states, motions, name):
    m, (q, v) = mechs[name], states[name]
    vdot = lanes.vmap(lambda w: mbd.forward_dynamics(m, q, w)[0])(jnp.stack([v, 0.5 * v]))
    np.testing.assert_allclose(vdot[0], motions[name][0], rtol=1e-9, atol=1e-9)


def test_saved_and_softened_by_its_name(mechs, tmp_path):
    mbd.save(mechs["tree"], tmp_path / "cam.json")
    again = mbd.load(tmp_path / "cam.json")
    assert (
        isinstance(again.joints["crank"], BarrelCam) and again.structure == mechs["tree"].structure
    )
    assert json.loads((tmp_path / "cam.json").read_text())["joints"][0]["lift"] == LIFT
    soft = mbd.soften(mechs["cut"], "crank", stiffness=1e7)
    assert soft.forces["crank"].replaced.rows == BarrelCam.rows


def test_its_numbers_are_checked():
    with pytest.raises(ValueError, match="joint 'crank': lift is"):
        new(lift=np.inf)
    with pytest.raises(ValueError, match="axis and axis_b point apart"):
        crank = BarrelCam("ground", "crank", "pivot", X, LIFT, axis_b=(-1, 0, 0))
        new().replace(joints={"crank": crank})
    flat = mbd.Body(1.0, (1.0, 0.0), 0.1)
    with pytest.raises(ValueError, match="BarrelCam, which has no form in a planar mechanism"):
        mbd.Mechanism({"arm": flat}, {"cam": BarrelCam("ground", "arm", (0.0, 0.0), X, LIFT)})


def test_a_type_without_a_name_is_not_saved(mechs, tmp_path):
    class Nameless(BarrelCam):
        pass

    crank = Nameless("ground", "crank", "pivot", X, LIFT)
    with pytest.raises(ValueError, match="'crank' is a Nameless.*register_type"):
        mbd.save(mechs["tree"].replace(joints={"crank": crank}), tmp_path / "x.json")
    with pytest.raises(ValueError, match="'Revolute' is taken"):
        mbd.register_type(type("Revolute", (BarrelCam,), {}))
    with pytest.raises(TypeError, match="no joint type"):
        mbd.register_type(dict)
