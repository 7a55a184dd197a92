"""Gear pairs: ratios, tooth forces and bearing loads against free bodies and worked examples.

Worked examples are those of R. G. Budynas and J. K. Nisbett, Shigley's Mechanical Engineering
Design, 8th ed., chapter 13.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import formulations, lanes
from jaxmbd.observe import Snapshot, ToothForce

X, Y, Z = np.eye(3)
ALPHA, BETA, LEAD = np.deg2rad(20.0), np.deg2rad(25.0), np.deg2rad(9.0)
TAN = np.tan(ALPHA)
TORQUE = 7.0


def pair_cases():
    """Name to (u_a, x_a, u_b, x_b, P, force on b for a torque of one about +u_a, teeth, numbers).

    Forces are written down for each kind by the rules of text books, in simple axes.
    """
    m, cases = 2e-3, {}
    za, zb = 18, 45
    ra, rb = m * za / 2, m * zb / 2
    cases["spur"] = (
        *(Z, 0 * X, Z, (ra + rb) * X, ra * X, np.array([TAN, 1.0, 0.0]) / ra),
        *((za, zb), {"module": m}),
    )
    ra, rb = ra / np.cos(BETA), rb / np.cos(BETA)
    # A right-handed driver is pushed along its axis in the sense of its rotation.
    cases["helical"] = (
        *(Z, 0 * X, Z, (ra + rb) * X, ra * X),
        *(np.array([TAN / np.cos(BETA), 1.0, -np.tan(BETA)]) / ra, (za, zb)),
        {"module": m, "helix": BETA},
    )
    ra, rb = m * za / 2, m * zb / 2
    internal = np.array([TAN, 1.0, 0.0]) / ra
    cases["internal"] = (
        *(Z, 0 * X, Z, (ra - rb) * X, ra * X, internal, (za, zb)),
        {"module": m, "kind": "internal"},
    )
    # The ring drives: its teeth at P move along +y for +z, and push the pinion towards its axis.
    ring = np.array([-TAN, 1.0, 0.0]) / rb
    cases["ring"] = (
        *(Z, 0 * X, Z, (rb - ra) * X, rb * X, ring, (zb, za)),
        {"module": m, "kind": "internal"},
    )
    # Bevel gears are pushed away from the apex.
    cone = np.arctan2(za, zb)
    bevel = np.array([TAN * np.cos(cone), 1.0, -TAN * np.sin(cone)]) / ra
    p = ra / np.sin(cone) * np.array([np.sin(cone), 0.0, np.cos(cone)])
    cases["bevel"] = (Z, 0 * X, X, 0 * X, p, bevel, (za, zb), {"module": m, "kind": "bevel"})
    # W on the flank of a right-handed worm: W cos α sin λ about it, W cos α cos λ along it.
    ra, rb = 2 * m / 2 / np.sin(LEAD), m * 40 / 2 / np.cos(LEAD)
    w = 1.0 / (ra * np.cos(ALPHA) * np.sin(LEAD))
    worm = np.array([-1.0 / ra, w * np.sin(ALPHA), -w * np.cos(ALPHA) * np.cos(LEAD)])
    cases["worm"] = (
        *(Z, 0 * X, X, (ra + rb) * Y, ra * Y, worm, (2, 40)),
        {"module": m, "helix": np.pi / 2 - LEAD, "kind": "worm"},
    )
    return cases


def pairs(flip=(1.0, 1.0), swap=(False, False), seed=0):
    """All kinds of pairs side by side, each drawn anywhere; and what their bearings should feel."""
    rng, bodies, joints, couplings, inputs, wanted = np.random.default_rng(seed), {}, {}, {}, {}, {}
    for kind, (u_a, x_a, u_b, x_b, p, force, teeth, numbers) in pair_cases().items():
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn *= np.linalg.det(turn)
        shift, force = rng.uniform(-0.2, 0.2, 3), TORQUE * turn @ force
        p = turn @ p + shift
        for gear, u, x, f, i in (("a", u_a, x_a, -force, 0), ("b", u_b, x_b, force, 1)):
            name, u, x = f"{kind} {gear}", turn @ u, turn @ x + shift
            at = x + rng.uniform(-0.05, 0.05) * u  # the bearing is out of the plane of the mesh
            bodies[name] = mbd.Body(0.5, x, np.full(3, 1e-4))
            ends = (name, "ground") if swap[i] else ("ground", name)
            joints[name] = mbd.Revolute(*ends, at=at, axis=flip[i] * u)
            moment = np.cross(p - at, f)
            sense = -1.0 if swap[i] else 1.0
            inputs[name] = -sense * flip[i] * (u @ moment)
            wanted[name] = -sense * np.concatenate([moment - u * (u @ moment), f])
        couplings[kind] = mbd.GearMesh(
            f"{kind} a", f"{kind} b", *teeth, at=p, pressure_angle=ALPHA, **numbers
        )
    mech = mbd.Mechanism(bodies, joints, couplings=couplings, gravity=np.zeros(3))
    return mech, inputs, wanted


@jax.jit
def dynamics(mech, q, v, inputs):
    vdot, lam = mbd.forward_dynamics(mech, q, v, inputs=inputs)
    return vdot, lam, mbd.joint_reactions(mech, q, v, vdot, lam, inputs=inputs)


def test_bearings_of_every_kind_of_pair_feel_the_tooth_force():
    for flip, swap in (((1, 1), (False, False)), ((1, -1), (True, True))):
        mech, inputs, wanted = pairs(flip, swap, seed=sum(flip))
        rest = np.zeros(len(mech.bodies))
        vdot, lam, found = dynamics(mech, rest, rest, inputs)
        np.testing.assert_allclose(vdot, 0.0, rtol=0, atol=1e-9 * TORQUE / 1e-4)
        for name, wrench in wanted.items():
            size = np.linalg.norm(wrench[3:])
            np.testing.assert_allclose(found[name], wrench, rtol=0, atol=1e-9 * size, err_msg=name)
        at = Snapshot(mech, rest, inputs=inputs, multipliers=lam)
        for kind in pair_cases():  # positive where gear a drives along the angle of its joint
            assert np.sign(ToothForce(kind).value(at)) == np.sign(inputs[f"{kind} a"]), kind


def test_gears_are_pushed_apart_whichever_flank_presses():
    mech, inputs, wanted = pairs()
    rest = np.zeros(len(mech.bodies))
    back = {n: -x for n, x in inputs.items()}
    _, lam, found = dynamics(mech, rest, rest, back)
    forward = dynamics(mech, rest, rest, inputs)[2]
    at = Snapshot(mech, rest, inputs=back, multipliers=lam)
    for kind, case in pair_cases().items():
        between = np.asarray(found[f"{kind} b"] + forward[f"{kind} b"])[3:]
        radial = float(ToothForce(kind, "radial").value(at))
        np.testing.assert_allclose(np.linalg.norm(between), 2.0 * radial, rtol=1e-9)
        arm = np.linalg.norm(np.cross(case[0], case[4] - case[1]))
        tangential = float(ToothForce(kind).value(at))
        np.testing.assert_allclose(abs(tangential), TORQUE / arm, rtol=1e-9)
        assert tangential < 0.0


def train(teeth, module, centres, **mesh):
    """Gears about z in a row of meshes, at some centres."""
    names = list(teeth)
    return mbd.Mechanism(
        {n: mbd.Body(1.0, (*centres[n], 0.0), np.full(3, 1e-3)) for n in names},
        {n: mbd.Revolute("ground", n, at=(*centres[n], 0.0), axis=Z) for n in names},
        couplings={
            f"{a}{b}": mbd.GearMesh(a, b, teeth[a], teeth[b], module=module, **mesh)
            for a, b in zip(names, names[1:], strict=False)
        },
        gravity=np.zeros(3),
    )


def test_the_shaft_of_an_idler_as_in_shigley_example_13_7():
    """2.5 kW at 1750 rev/min, 20 teeth drive 30 over an idler of 50, module 2.5 mm, 20°."""
    m = 2.5e-3
    teeth = {"two": 20, "three": 50, "four": 30}
    centres = {"two": (0.0, -35 * m), "three": (0.0, 0.0), "four": (-40 * m, 0.0)}
    mech = train(teeth, m, centres)
    torque = 2500.0 / (1750.0 * 2.0 * np.pi / 60.0)
    rest, load = np.zeros(3), {"two": torque, "four": -1.5 * torque}
    vdot, lam, found = dynamics(mech, rest, rest, load)
    np.testing.assert_allclose(vdot, 0.0, atol=1e-9)
    shaft = np.asarray(found["three"])[3:5]
    printed = np.array([0.347e3, 0.347e3])
    np.testing.assert_allclose(shaft, [1.0, 1.0] * printed, rtol=0, atol=1.0)
    assert round(float(np.linalg.norm(shaft)) / 1e3, 3) == 0.491
    at = Snapshot(mech, rest, inputs=load, multipliers=lam)
    for mesh in ("twothree", "threefour"):
        found = [float(ToothForce(mesh, part).value(at)) for part in ("tangential", "radial")]
        np.testing.assert_allclose(np.abs(found), [546.0, 199.0], rtol=0, atol=0.6)


POUND, INCH = 4.4482216152605, 0.0254


def test_tooth_forces_as_in_shigley_examples_13_8_and_13_9():
    """Bevel gears of 5 hp at 600 rev/min, a helical pinion of 1 hp at 1800 rev/min."""
    r, rate = 1.293 * INCH, 2.0 * np.pi / 60.0
    horsepower = 550.0 * POUND * 12.0 * INCH
    m = INCH / 12.0
    centre = m * (18 + 36) / 2 / np.cos(np.pi / 6)
    mech = mbd.Mechanism(
        {n: mbd.Body(1.0, inertia=np.full(3, 1e-3)) for n in ("p", "g", "h", "w")},
        {
            "p": mbd.Revolute("ground", "p", at=0 * X, axis=Z),
            "g": mbd.Revolute("ground", "g", at=0 * X, axis=X),
            "h": mbd.Revolute("ground", "h", at=X, axis=Z),
            "w": mbd.Revolute("ground", "w", at=X + centre * X, axis=Z),
        },
        couplings={
            "bevel": mbd.GearMesh("p", "g", 15, 45, kind="bevel", at=(r, 0.0, 3 * r)),
            "helical": mbd.GearMesh("h", "w", 18, 36, module=m, helix=np.pi / 6),
        },
        gravity=np.zeros(3),
    )
    torques = {"p": 5.0 * horsepower / (600.0 * rate), "h": horsepower / (1800.0 * rate)}
    inputs = torques | {"g": 3.0 * torques["p"], "w": 2.0 * torques["h"]}
    rest = np.zeros(4)
    vdot, lam, found = dynamics(mech, rest, rest, inputs)
    np.testing.assert_allclose(vdot, 0.0, atol=1e-8)
    bevel, helical = (np.asarray(found[n])[3:] / POUND for n in ("g", "h"))
    np.testing.assert_allclose(np.abs(bevel), [140.0, 406.0, 46.6], rtol=4e-3)
    np.testing.assert_allclose(np.abs(helical), [17.0, 40.4, 23.3], rtol=2e-3)


def planetary(planets=1, space=True, z=(20, 15, 50), m=4e-3):
    """Sun, arm and planets in a ring that is part of the ground, drawn in the plane or in space."""
    a, angles = m * (z[0] + z[1]) / 2, 2.0 * np.pi * np.arange(planets) / planets
    spots = [a * np.array([np.cos(x), np.sin(x), 0.0]) for x in angles]
    n = 3 if space else 2
    axis = {"axis": Z} if space else {}
    inertia = np.full(3, 2e-4) if space else 2e-4
    names = [f"planet{i}" for i in range(planets)]
    centre = np.zeros(n)
    bodies = {
        "sun": mbd.Body(1.0, centre, inertia),
        "carrier": mbd.Body(2.0, 0.4 * spots[0][:n], 3 * inertia),
    }
    joints = {
        "sun": mbd.Revolute("ground", "sun", at=centre, **axis),
        "arm": mbd.Revolute("ground", "carrier", at=centre, **axis),
    }
    couplings = {}
    for name, spot in zip(names, spots, strict=True):
        bodies[name] = mbd.Body(0.3, spot[:n], inertia)
        joints[name] = mbd.Revolute("carrier", name, at=spot[:n], **axis)
        couplings[f"sun {name}"] = mbd.GearMesh("sun", name, z[0], z[1], carrier="arm", module=m)
        couplings[f"ring {name}"] = mbd.GearMesh("arm", name, z[2], z[1], kind="internal", module=m)
    return mbd.Mechanism(bodies, joints, couplings=couplings)


def test_a_planetary_set_turns_as_willis_says_and_balances_in_motion():
    z, m, theta, g = (20, 15, 50), 4e-3, 0.7, 9.81
    mech = planetary(z=z, m=m).replace(gravity=(0.0, -g, 0.0))
    q = mbd.assemble(mech, known={"arm": theta}).q
    top = mbd.topology(mech).layout
    place = {n: top[n].q.start for n in mech.joints}
    ratios = {"sun": 1 + z[2] / z[0], "arm": 1.0, "planet0": -z[2] / z[1]}
    for name, ratio in ratios.items():
        np.testing.assert_allclose(q[place[name]], ratio * theta, rtol=1e-13)
    v = np.zeros(3)
    for name, ratio in ratios.items():
        v[place[name]] = 11.0 * ratio
    inputs = {"sun": 3.0, "arm": -2.0}
    vdot, lam, found = dynamics(mech, q, v, inputs)
    alpha = float(vdot[place["arm"]])
    # Reduced to the arm: J α = power of torques and weights at one rad/s.
    a, e, t = m * (z[0] + z[1]) / 2, np.array([np.cos(theta), np.sin(theta)]), None
    t = np.array([-e[1], e[0]])
    spin = 1.0 + ratios["planet0"]
    total = 2e-4 * ratios["sun"] ** 2 + 6e-4 + 2.0 * (0.4 * a) ** 2 + 0.3 * a**2 + 2e-4 * spin**2
    power = 3.0 * ratios["sun"] - 2.0 - g * e[0] * (2.0 * 0.4 * a + 0.3 * a)
    np.testing.assert_allclose(alpha, power / total, rtol=1e-10)
    # Tangential forces from the planet's and the sun's own rotation, along t on the planet.
    r_s, r_p = m * z[0] / 2, m * z[1] / 2
    sun_force = (3.0 - 2e-4 * ratios["sun"] * alpha) / r_s
    ring_force = (2e-4 * spin * alpha + sun_force * r_p) / r_p
    push = TAN * (abs(sun_force) - abs(ring_force))
    weight = np.array([0.0, -g])
    centre = a * (alpha * t - 121.0 * e)
    pin = 0.3 * (centre - weight) - (sun_force + ring_force) * t - push * e
    size = 1e-9 * abs(sun_force)
    np.testing.assert_allclose(found["planet0"][3:5], pin, rtol=0, atol=size)
    sun = -1.0 * weight + sun_force * t + TAN * abs(sun_force) * e
    np.testing.assert_allclose(found["sun"][3:5], sun, rtol=0, atol=size)
    arm = 2.0 * (0.4 * centre - weight) + pin
    np.testing.assert_allclose(found["arm"][3:5], arm, rtol=0, atol=size)
    for name in ("sun", "arm", "planet0"):
        np.testing.assert_allclose(found[name][2], 0.0, rtol=0, atol=size)
    # the same in a plane drawing, in other declarations, from a file
    flat = planetary(space=False).replace(gravity=(0.0, -g))
    for other in (flat, mbd.in_space(flat)):
        again = dynamics(other, q, v, inputs)
        np.testing.assert_allclose(again[0], vdot, rtol=1e-11)
        for name in found:
            np.testing.assert_allclose(again[2][name], found[name], rtol=0, atol=size)


def test_the_text_book_count_of_gear_pairs():
    one = mbd.mobility(planetary())
    assert (one.kutzbach, one.dof, one.redundant) == (1, 1, ())
    flat = mbd.mobility(planetary(space=False))
    assert (flat.kutzbach, flat.dof) == (1, 1)
    three = mbd.mobility(planetary(3, z=(20, 16, 52)))  # text books count one planet of them
    assert (three.kutzbach, three.dof, len(three.redundant)) == (-1, 1, 2)


def test_three_planets_share_the_load():
    mech = planetary(3, z=(20, 16, 52))
    mech = mech.replace(gravity=np.zeros(3), bodies={"carrier": mbd.Body(2.0, 0 * X)})
    q = np.zeros(5)
    vdot, lam, found = dynamics(mech, q, q, {"sun": 6.0, "arm": -21.6})
    np.testing.assert_allclose(vdot, 0.0, atol=1e-8)
    force = 6.0 / 0.04 / 3.0
    np.testing.assert_allclose(found["sun"], 0.0, rtol=0, atol=1e-9 * force)
    for i in range(3):
        size = np.linalg.norm(found[f"planet{i}"][3:])
        np.testing.assert_allclose(size, 2.0 * force, rtol=1e-9)


def test_the_countershaft_of_a_reverted_train():
    """Helical pairs of 20:40 and 25:35 in two planes: bearing and couple of the middle shaft."""
    m, hand = 2e-3, 0.3
    c = m * 60 / 2 / np.cos(hand)
    shafts = {"in": 0.0, "counter": c, "out": 0.0}
    mech = mbd.Mechanism(
        {n: mbd.Body(1.0, (x, 0, 0), np.full(3, 1e-3)) for n, x in shafts.items()},
        {n: mbd.Revolute("ground", n, at=(x, 0, 0.01), axis=Z) for n, x in shafts.items()},
        couplings={
            "first": mbd.GearMesh("in", "counter", 20, 40, module=m, helix=hand, at=(0, 0, 0.03)),
            "second": mbd.GearMesh("counter", "out", 25, 35, module=m, helix=-hand, at=(c, 0, 0.1)),
        },
        gravity=np.zeros(3),
    )
    rest, torque = np.zeros(3), 5.0
    vdot, lam, found = dynamics(mech, rest, rest, {"in": torque, "out": -torque * 2.0 * 35 / 25})
    np.testing.assert_allclose(vdot, 0.0, atol=1e-9)
    r = m / 2 / np.cos(hand) * np.array([20, 40, 25, 35])
    radial, axial = TAN / np.cos(hand), np.tan(hand)
    first = torque / r[0] * np.array([radial, 1.0, -axial])  # on the counter shaft, at x = r0
    # The counter shaft turns backward and drives at its left: its teeth there move along +y.
    second = -torque * 2.0 / r[2] * np.array([-radial, 1.0, 0.0])
    second += torque * 2.0 / r[2] * np.array([0.0, 0.0, axial])
    middle = np.array([c, 0.0, 0.01])
    moment = np.cross(np.array([r[0], 0, 0.03]) - middle, first)
    moment += np.cross(np.array([c - r[2], 0, 0.1]) - middle, second)
    np.testing.assert_allclose(moment[2], 0.0, atol=1e-12)
    size = np.linalg.norm(first)
    np.testing.assert_allclose(found["counter"][:3], -moment, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(found["counter"][3:], -first - second, rtol=0, atol=1e-9 * size)


def test_transforms_files_and_images_keep_gears():
    mech, inputs, _ = pairs()
    rest = np.zeros(len(mech.bodies))
    vdot, lam, found = dynamics(mech, rest, rest, inputs)
    again = mbd.io.from_dict(mbd.io.to_dict(mech))
    assert again.structure == mech.structure
    assert jax.tree_util.tree_all(jax.tree_util.tree_map(np.array_equal, again, mech))
    image = mbd.mirror(mech, "x")
    other = dynamics(image, rest, rest, inputs)
    np.testing.assert_allclose(other[0], 0.0, rtol=0, atol=1e-5)
    np.testing.assert_allclose(other[1], lam, rtol=1e-9)
    signs = np.array([1.0, -1.0, -1.0, -1.0, 1.0, 1.0])
    for name, wrench in found.items():
        size = 1e-9 * np.linalg.norm(wrench[3:])
        np.testing.assert_allclose(other[2][name], signs * wrench, rtol=0, atol=size)
    small = planetary(space=False)
    q = np.array([0.1, 0.2, 0.3])

    def felt(torque):
        v = np.zeros(3)
        vdot, lam = mbd.forward_dynamics(small, q, v, inputs={"sun": torque})
        return jnp.concatenate([vdot, mbd.joint_reactions(small, q, v, vdot, lam)["planet0"][3:5]])

    torques = np.array([-3.0, 0.0, 3.0])
    np.testing.assert_allclose(
        lanes.vmap(felt)(torques), [felt(x) for x in torques], rtol=1e-10, atol=1e-10
    )
    slopes = jax.jacfwd(felt)(0.0)
    assert np.all(np.isfinite(slopes))
    single = jax.tree_util.tree_map(lambda x: np.asarray(x, np.float32), mech)
    rough = dynamics(single, np.float32(rest), np.float32(rest), inputs)[2]
    for name, wrench in found.items():
        assert rough[name].dtype == np.float32
        size = 2e-4 * np.linalg.norm(wrench[3:])
        np.testing.assert_allclose(rough[name], wrench, rtol=0, atol=size)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"module": 3e-3}, "0.063 m apart, but module and teeth give 0.0945 m"),
        ({"kind": "bevel", "at": X}, "0° apart, which no pair of kind='bevel' has"),
        ({"kind": "planetary"}, "give one of"),
        ({"joint_b": "c", "kind": "bevel", "at": X + Z}, "point of it is .0.482759, 0, 1.2069"),
        ({"helix": 20.0}, "in radians"),
        ({"teeth_a": 0}, "teeth_a is 0; it must be positive"),
        ({"kind": "internal", "teeth_a": 45}, "the ring must have more"),
        ({"joint_a": "ring"}, "have no bodies in common"),
        ({"carrier": "ring"}, "bears its gear on neither|have no bodies in common"),
        ({"joint_b": "slide"}, "must be Revolute joints"),
        ({"at": "nowhere"}, "names the point 'nowhere'"),
        ({"joint_b": "none"}, "'none', which does not exist"),
    ],
)
def test_what_is_no_gear_pair_is_refused(change, text):
    given = {"joint_a": "a", "joint_b": "b", "teeth_a": 18, "teeth_b": 45, "at": 0 * X} | change
    with pytest.raises(ValueError, match=f"coupling 'mesh'.*({text})"):
        mbd.Mechanism(
            {n: mbd.Body(1.0, 0 * X, np.full(3, 1e-3)) for n in ("a", "b", "c", "d", "s")},
            {
                "a": mbd.Revolute("ground", "a", at=0 * X, axis=Z),
                "b": mbd.Revolute("ground", "b", at=0.063 * X, axis=Z),
                "c": mbd.Revolute("ground", "c", at=0 * X, axis=X),
                "ring": mbd.Revolute("c", "d", at=0 * X, axis=X),
                "slide": mbd.Prismatic("ground", "s", at=0 * X, axis=X),
            },
            couplings={"mesh": mbd.GearMesh(**given)},
        )


@pytest.mark.slow
def test_other_formulations_find_the_same_bearing_loads():
    """Newton-Euler in absolute coordinates, and constraint matrices, of a set in motion."""
    mech = planetary().replace(gravity=(0.0, -9.81, 0.0))
    q = np.array([3.5, 1.0, -10.0 / 3.0]) * 0.7
    v, inputs = q * 15.0, {"sun": 3.0, "arm": -2.0}
    vdot, _, found = dynamics(mech, q, v, inputs)
    other, solution = formulations.absolute_forward_dynamics(mech, q, v, inputs=inputs)
    matrices = formulations.constraint_matrix_reactions(mech, q, v, vdot, inputs=inputs)
    np.testing.assert_allclose(other, vdot, rtol=1e-9)
    for name, wrench in found.items():
        size = 1e-9 * np.abs(wrench).max()
        np.testing.assert_allclose(solution.reactions[name], wrench, rtol=0, atol=size)
        np.testing.assert_allclose(matrices.reactions[name], wrench, rtol=0, atol=size)


@pytest.mark.parametrize("torques", [(10.0, 5.0), (-3.0, 0.0), (0.2, -0.3)])
def test_friction_of_the_bearings_feels_the_tooth_force(torques):
    """One root of the free bodies' equations; in the last case friction turns the force round."""
    m, rub, drag, weight = 2.5e-3, 0.1 * 0.01, 0.6, 5.0
    centres = {"p": (0.0, 0.0), "g": (35 * m, 0.0)}
    mech = train({"p": 20, "g": 50}, m, centres).replace(
        forces={
            "rub p": mbd.JointFriction("p", 0.1, radius=0.01, velocity_scale=1e-9),
            "rub g": mbd.JointFriction("g", 0.1, radius=0.01, drag=drag, velocity_scale=1e-9),
        },
        gravity=(weight, 0.0, 0.0),
    )
    load = dict(zip(("p", "g"), torques, strict=True))
    vdot = dynamics(mech, np.zeros(2), np.array([5.0, -2.0]), load)[0]
    ra, rb = 10 * m, 25 * m

    def spins(force):
        p, g = (rub * np.hypot(abs(force) * TAN + s * weight, force) for s in (-1.0, 1.0))
        return (torques[0] - force * ra - p) / 1e-3, (torques[1] - force * rb + g + drag) / 1e-3

    def opening(force):
        a, b = spins(force)
        return ra * a + rb * b

    low, high = -1e4, 1e4
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if opening(middle) > 0.0 else (low, middle)
    np.testing.assert_allclose(vdot, spins(low), rtol=1e-9, atol=1e-7)
