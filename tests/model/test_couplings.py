"""Gears, racks and other couplings; drives on points; the tree keeps what they hold."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.graph.spanning_tree import spanning_tree
from jaxmbd.model.joints import Revolute, Spherical, Universal
from jaxmbd.model.mechanism import Edge, Structure

Z = (0.0, 0.0, 1.0)


def wheels(ratio=-0.5, gears=None):
    """Two wheels about parallel axes in a housing that swings, and a rack beside them."""
    return mbd.Mechanism(
        {
            "housing": mbd.Body(4.0, (0.2, 0.1, 0.0), (0.3, 0.2, 0.4)),
            "small": mbd.Body(1.0, (0.0, 0.0, 0.1), (0.01, 0.01, 0.02)),
            "large": mbd.Body(2.0, (0.3, 0.0, 0.1), (0.04, 0.04, 0.08)),
            "rack": mbd.Body(0.5, (0.0, -0.1, 0.1), (0.001, 0.002, 0.002)),
        },
        {
            "swing": mbd.Revolute("ground", "housing", (0, 0, 0), (0, 1, 0)),
            "first": mbd.Revolute("housing", "small", (0, 0, 0.1), Z),
            "second": mbd.Revolute("large", "housing", (0.3, 0, 0.1), Z),
            "rail": mbd.Prismatic("housing", "rack", (0, -0.1, 0.1), (1, 0, 0)),
        },
        couplings={
            "mesh": mbd.Gear("first", "second", ratio),
            "teeth": mbd.RackAndPinion("first", "rail", radius=0.1),
        }
        if gears is None
        else gears,
    )


def test_a_gear_and_a_rack_move_in_step():
    mech = wheels()
    top = mbd.topology(mech)
    assert top.couplings == ("mesh", "teeth") and top.nc == 2
    assert top.row_names == ("mesh", "teeth") and top.row_kinds == ("moment", "force")
    assert "coupling mesh: rows[0:1]" in str(top)
    driven = mech.replace(drives={"motor": mbd.Drive("first", cam_law)})
    table = str(driven)
    assert "first[0] second[0]" in table and "ratio=-0.5" in table and "cam_law" in table
    assert mbd.mobility(mech).dof == 2
    q = mbd.assemble(mech, known={"first": 0.8}).q
    angles = mbd.joint_coordinates(mech, q)
    np.testing.assert_allclose(angles["second"], [-0.4], rtol=0, atol=1e-14)
    np.testing.assert_allclose(angles["rail"], [0.08], rtol=0, atol=1e-14)


def test_efforts_and_reactions_of_couplings():
    """Each body's balance about its axis, from its own inertia alone."""
    mech = wheels().replace(gravity=np.zeros(3), forces={"motor": mbd.JointTorque("first", 0.7)})
    q, v = mbd.neutral(mech), np.zeros(4)
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    place = mbd.topology(mech).layout
    mesh, teeth = lam[place["mesh"].rows][0], lam[place["teeth"].rows][0]
    first, rail = vdot[place["first"].v][0], vdot[place["rail"].v][0]
    np.testing.assert_allclose(vdot[place["second"].v][0], -0.5 * first, rtol=0, atol=1e-12)
    spin = {n: mbd.body_accelerations(mech, q, v, vdot)[n] for n in ("small", "large", "rack")}
    # joint `second` is declared from the wheel to the housing: its effort is on the housing
    np.testing.assert_allclose(0.08 * spin["large"][2], -mesh, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        0.02 * spin["small"][2], 0.7 + 0.5 * mesh - 0.1 * teeth, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(0.5 * spin["rack"][3], teeth, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rail, 0.1 * first, rtol=0, atol=1e-13)
    # reactions leave the efforts along the coordinates out
    wrench = mbd.joint_reactions(mech, q, v, vdot, lam)
    assert abs(wrench["first"][2]) < 1e-12 and abs(wrench["rail"][3]) < 1e-12
    # all that acts on the housing gives its acceleration about the swing's axis
    moments = np.zeros(3)
    for name, sign in (("first", -1), ("second", 1), ("rail", -1)):
        at = np.asarray(mech.point(mech.joints[name].at))
        w = sign * np.asarray(wrench[name])
        moments += w[:3] + np.cross(at, w[3:])
    com = np.array([0.2, 0.1, 0.0])
    inertia = 0.2 + 4.0 * (com @ com - com[1] ** 2)
    swing = vdot[place["swing"].v][0]
    np.testing.assert_allclose(
        inertia * swing, moments[1] + teeth * 0 - teeth * 0.1, rtol=0, atol=1e-11
    )


def test_energy_is_kept_and_inverse_undoes_forward():
    mech = wheels()
    v = mbd.assemble_velocity(mech, mbd.neutral(mech), {"first": 6.0, "swing": 1.0})

    def energy(t, q, v):
        return mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)

    run = mbd.simulate(mech, mbd.neutral(mech), v, t1=1.0, dt=5e-3, outputs=energy)
    np.testing.assert_allclose(run.outputs, run.outputs[0], rtol=0, atol=1e-6)
    assert float(run.drift) < 1e-13
    q, v = run.q[-1], run.v[-1]
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    tau, again = mbd.inverse_dynamics(mech, q, v, vdot)
    np.testing.assert_allclose(tau, 0.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(again, lam, rtol=0, atol=1e-10)


def cam_law(q, p):
    """A slot of sinusoidal depth: the second coordinate follows the first."""
    return q[1] - p["depth"] * jnp.sin(p["waves"] * q[0])


def test_a_coupling_of_ones_own():
    law = mbd.Coupling(("first", "rail"), cam_law, {"depth": 0.05, "waves": 2.0})
    mech = wheels(gears={"slot": law})
    q = mbd.assemble(mech, known={"first": 0.4}).q
    v = mbd.assemble_velocity(mech, q, {"first": 3.0})
    place = mbd.topology(mech).layout
    np.testing.assert_allclose(q[place["rail"].q], 0.05 * np.sin(0.8), rtol=0, atol=1e-14)
    np.testing.assert_allclose(v[place["rail"].v], 0.1 * np.cos(0.8) * 3.0, rtol=0, atol=1e-13)
    vdot, _ = mbd.forward_dynamics(mech, q, v)
    first, rail = vdot[place["first"].v][0], vdot[place["rail"].v][0]
    wanted = 0.1 * np.cos(0.8) * first - 0.2 * np.sin(0.8) * 9.0
    np.testing.assert_allclose(rail, wanted, rtol=0, atol=1e-12)

    def travel(depth):
        other = wheels(
            gears={"slot": mbd.Coupling(law.joints, cam_law, {"depth": depth, "waves": 2.0})}
        )
        return mbd.assemble(other, known={"first": 0.4}).q[place["rail"].q][0]

    np.testing.assert_allclose(jax.grad(travel)(0.05), np.sin(0.8), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_batches_by_lanes_and_by_vmap():
    ratios = jnp.linspace(-0.8, -0.3, 5)

    def found(ratio):
        mech = wheels(ratio)
        v = jnp.array([0.5, 2.0, 2.0 * ratio, 0.2])
        return mbd.forward_dynamics(
            mech, jnp.array([0.1, 0.2, 0.2 * ratio, 0.02]), v, backend="xla"
        )

    ours, theirs = lanes.vmap(found)(ratios), jax.jit(jax.vmap(found))(ratios)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)


def test_a_differential():
    """Two half shafts and a case: the case turns with their mean, torques are shared equally."""
    axis = (0, 1, 0)
    shafts = ("left", "right", "case")
    mech = mbd.Mechanism(
        {
            "left": mbd.Body(1.0, (0, 1, 0), (0.1, 0.12, 0.1)),
            "right": mbd.Body(1.0, (0, -1, 0), (0.2, 0.22, 0.2)),
            "case": mbd.Body(1.0, (0, 0, 0), (0.1, 0.02, 0.1)),
        },
        {n: mbd.Revolute("ground", n, (0, 0, 0), axis) for n in shafts},
        couplings={"cage": mbd.Coupling(shafts, lambda q, p: q[0] + q[1] - 2.0 * q[2])},
    )
    vdot, lam = mbd.forward_dynamics(mech, np.zeros(3), np.zeros(3), inputs={"case": 3.0})
    np.testing.assert_allclose(vdot[0] + vdot[1], 2.0 * vdot[2], rtol=0, atol=1e-13)
    np.testing.assert_allclose([0.12 * vdot[0], 0.22 * vdot[1]], lam[0], rtol=0, atol=1e-13)


# Drives on points ------------------------------------------------------------------------------


def ellipse_arm(t, p):
    return 0.9 + p * jnp.cos(4.0 * t)


def test_a_point_is_driven():
    """A two-bar arm whose tip is moved along x and y: the driving constraint (3.13) on a point."""
    arm = mbd.zoo.double_pendulum()
    mech = arm.replace(
        points={"tip": np.array([0.0, -2.0, 0.0])},
        drives={
            "x": mbd.PointDrive("bob_2", "tip", "x", ellipse_arm, 0.2),
            "y": mbd.PointDrive(
                "bob_2", (0.0, -2.0, 0.0), "y", lambda t, p: -1.2 + 0.3 * jnp.sin(4.0 * t)
            ),
        },
    )
    assert mbd.topology(mech).layout["y"].rows == slice(1, 2)
    assert "y.at" in mech.points
    t = 0.7

    @jax.jit
    def at(t):
        q = mbd.assemble(mech, t=t, guess=jnp.array([0.1, 1.2]), backend="xla").q
        return mbd.point_position(mech, q, "bob_2", "tip"), q

    x, q = at(t)
    np.testing.assert_allclose(
        x[:2], [0.9 + 0.2 * np.cos(2.8), -1.2 + 0.3 * np.sin(2.8)], rtol=0, atol=1e-13
    )
    v = mbd.assemble_velocity(mech, q, t=t)
    rate = mbd.point_velocity(mech, q, v, "bob_2", "tip")
    np.testing.assert_allclose(
        rate[:2], [-0.8 * np.sin(2.8), 1.2 * np.cos(2.8)], rtol=0, atol=1e-12
    )
    vdot, lam = mbd.forward_dynamics(mech, q, v, t)
    acc = mbd.body_accelerations(mech, q, v, vdot)["bob_2"][3:5]
    wanted = np.array([-3.2 * np.cos(2.8), -4.8 * np.sin(2.8)])
    np.testing.assert_allclose(acc, wanted, rtol=0, atol=1e-11)
    # λ is the force on the body: with the upper rod's pull it moves the bob against its weight
    pull = mbd.joint_reactions(mech, q, v, vdot, lam, t)["hinge_2"][3:5]
    np.testing.assert_allclose(pull + lam, wanted + [0.0, 9.81], rtol=0, atol=1e-10)


def test_a_driven_run_stays_on_its_drive():
    mech = mbd.zoo.double_pendulum().replace(
        drives={
            "x": mbd.PointDrive("bob_2", (0.0, -2.0, 0.0), "x", lambda t, p: 0.3 * jnp.sin(5.0 * t))
        }
    )
    run = mbd.simulate(mech, mbd.neutral(mech), t1=0.4, dt=2e-3)
    tip = mbd.point_position(mech, run.q[-1], "bob_2", (0.0, -2.0, 0.0))
    np.testing.assert_allclose(tip[0], 0.3 * np.sin(2.0), rtol=0, atol=1e-12)


# The tree ----------------------------------------------------------------------------------------


def test_driven_and_coupled_joints_stay_in_the_tree():
    plain = mbd.zoo.four_bar()
    assert mbd.topology(plain).cut == ("C",)
    for joint in ("A", "B", "C", "D"):
        driven = plain.replace(drives={"motor": mbd.Drive(joint, lambda t, p: 0.1 * t)})
        assert joint not in mbd.topology(driven).cut
        other = "D" if joint == "A" else "A"
        coupled = plain.replace(couplings={"mesh": mbd.Gear(joint, other, 0.5)})
        assert not {joint, other} & set(mbd.topology(coupled).cut)
    with pytest.raises(ValueError, match=r"drive 'motor' is on the cut joint 'C'"):
        mbd.topology(plain.replace(cut="C", drives={"motor": mbd.Drive("C", lambda t, p: 0.1 * t)}))


def test_large_graphs_keep_them_too():
    """A ladder of many loops, too large to be searched whole."""
    n, edges = 14, []
    for i in range(n):
        edges.append(Edge(f"stile{i}", Revolute, "ground" if i == 0 else f"b{i - 1}", f"b{i}"))
        edges.append(Edge(f"rung{i}", Spherical if i % 2 else Universal, "ground", f"b{i}"))
    bodies = tuple(f"b{i}" for i in range(n))

    def tree(*held):
        drives = tuple((f"d{j}", j, 0) for j in held)
        s = Structure(bodies, tuple(edges), (), drives, None, (), ())
        return {e.name for e in spanning_tree(s).values()}

    free = tree()
    outside = [e.name for e in edges if e.name not in free and e.kind is not Spherical]
    assert len(outside) > 3
    for some in (outside[:1], outside[1:4]):
        assert set(some) <= tree(*some)


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            {"couplings": {"c": mbd.Gear("first", "gone", 2.0)}},
            "the joint 'gone', which does not exist",
        ),
        ({"couplings": {"c": mbd.Gear("first", "first", 2.0)}}, "name each coordinate once"),
        ({"couplings": {"c": mbd.Gear("first", "rail", np.inf)}}, "ratio"),
        ({"couplings": {"c": mbd.RackAndPinion("first", "rail", np.ones(2))}}, "radius"),
        ({"couplings": {"c": mbd.Gear("first", "rail", 2.0, index_b=1)}}, "index 1 is outside"),
        ({"couplings": {"rail": mbd.Gear("first", "rail", 2.0)}}, "has the name of a joint"),
        ({"couplings": {"c": 3.0}}, "give a Gear, a GearMesh, a RackAndPinion or a Coupling"),
        (
            {"drives": {"mesh": mbd.Drive("first", lambda t, p: t)}},
            "coupling 'mesh' has the name of a drive",
        ),
        ({"drives": {"d": mbd.Drive("first", 3.0)}}, "give a function of (t, params)"),
        (
            {"drives": {"d": mbd.PointDrive("ground", (0, 0, 0), "x", lambda t, p: t)}},
            "does not move",
        ),
        (
            {"drives": {"d": mbd.PointDrive("rack", (0, 0, 0), "w", lambda t, p: t)}},
            "give 'x', 'y' or 'z'",
        ),
        (
            {"drives": {"d": mbd.PointDrive("rack", "gone", "x", lambda t, p: t)}},
            "the point 'gone'",
        ),
        ({"drives": {"d": mbd.PointDrive("rack", (0, 0), "x", lambda t, p: t)}}, "give 3 numbers"),
    ],
)
def test_bad_couplings_and_drives_are_refused(parts, text):
    with pytest.raises(ValueError, match="problem") as error:
        wheels().replace(**parts)
    assert text in str(error.value)


def test_a_ball_has_no_single_coordinate():
    with pytest.raises(ValueError, match="whose q is set as a whole: quaternion"):
        mbd.Mechanism(
            {"a": mbd.Body(1.0, (1, 0, 0), 1.0), "b": mbd.Body(1.0, (1, 0, 0), 1.0)},
            {
                "ball": mbd.Spherical("ground", "a", (0, 0, 0)),
                "hinge": mbd.Revolute("ground", "b", (0, 0, 0), Z),
            },
            couplings={"c": mbd.Gear("hinge", "ball", 1.0)},
        )
