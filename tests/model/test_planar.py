"""Planar mechanisms: the same motion as drawn in space, fewer rows, fewer operations."""

import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.forward import _accelerations
from jaxmbd.io import from_dict, to_dict

FOUR = {"A": (0.0, 0.0), "B": (0.0, 0.3), "C": (0.5, 0.7), "D": (0.7, 0.0)}


def four_bar(points=None, inertia=0.1, **changes):
    parts = {
        "bodies": {
            "crank": mbd.Body(0.9, (0.0, 0.15), 0.01),
            "coupler": mbd.Body(2.4, (0.25, 0.5), inertia),
            "rocker": mbd.Body(1.8, (0.6, 0.35), 0.05),
        },
        "joints": {
            "A": mbd.Revolute("ground", "crank", "A"),
            "B": mbd.Revolute("crank", "coupler", "B"),
            "D": mbd.Revolute("ground", "rocker", "D"),
            "C": mbd.Revolute("coupler", "rocker", "C"),
        },
        "points": {**FOUR, **(points or {})},
    }
    for key, value in changes.items():
        parts[key] = {**parts[key], **value} if key in parts else value
    return mbd.Mechanism(**parts)


@cache  # its laws are functions: built again it would be another structure
def lever():
    """Every joint type that has a form in the plane, in the tree and cut, and force elements."""
    return mbd.Mechanism(
        bodies={
            "carriage": mbd.Body(1.0, (0.3, 0.1), 0.02),
            "arm": mbd.Body(0.8, (0.5, 0.4), 0.03),
            "slide": mbd.Body(0.6, (0.8, 0.6), 0.01),
            "plate": mbd.Body(0.7, (0.9, 0.2), 0.04),
            "bracket": mbd.Body(0.4, (1.0, 0.3), 0.02),
            "puck": mbd.Body(0.5, (0.2, 0.9), 0.015),
        },
        joints={
            "rail": mbd.Prismatic("ground", "carriage", at=(0.2, 0.1), axis=(2.0, 0.5)),
            "hinge": mbd.Revolute("arm", "carriage", at="P"),
            "guide": mbd.Prismatic("arm", "slide", at="Q", axis=("P", "Q")),
            "air": mbd.Free("ground", "plate"),
            "weld": mbd.Fixed("bracket", "plate", at=(0.95, 0.25)),
            "ice": mbd.Planar("ground", "puck", at=(0.2, 0.9), x_axis=(1.0, 1.0)),
            "pin": mbd.Revolute("slide", "plate", at=(0.85, 0.5)),
            "slot": mbd.Prismatic("puck", "carriage", at=(0.25, 0.5), axis=(0.3, -1.0)),
            "rod": mbd.Rod("puck", "bracket", at_a=(0.2, 0.95), at_b=(1.1, 0.35)),
            "pin in slot": mbd.PointOnLine("arm", "bracket", at=(1.0, 0.4), axis=("P", "Q")),
            "loose": mbd.Free("ground", "bracket"),
            "float": mbd.Planar("puck", "arm", at=(0.4, 0.7)),
        },
        forces={
            "spring": mbd.SpringDamper("ground", "plate", (1.2, 0.0), "R", 300.0, 4.0),
            "push": mbd.PointForce("slide", "Q", (3.0, -1.0), law=lambda t, x, v: -0.5 * v[:2]),
            "wind": mbd.PointForce("arm", "P", law=lambda t, x, v: -0.1 * v),
            "torque": mbd.Torque("arm", "slide", 0.7, law=lambda t, w: -0.2 * w[2]),
            "coil": mbd.TorsionSpring("hinge", stiffness=5.0),
            "bush": mbd.Bushing("ground", "puck", (0.1, 0.9), [9, 8, 7, 60, 50, 40]),
            "tyre": mbd.Tyre("plate", "R", stiffness=1e3, radius=0.4, up=(0.0, 1.0)),
        },
        points={"P": (0.4, 0.2), "Q": (0.7, 0.5), "R": (0.9, 0.2)},
        cut=("pin", "slot", "weld", "float"),
    )


def motion(mech, seed=0):
    """A state on the constraints, near the drawn one."""
    rng = np.random.default_rng(seed)
    guess = mbd.neutral(mech) + rng.uniform(-0.1, 0.1, mbd.topology(mech).nq)
    q = mbd.assemble(mech, guess=guess).q
    return q, mbd.assemble_velocity(mech, q, guess=rng.normal(size=mbd.topology(mech).nv))


def same_in_space(mech):
    """The mechanism in space, with the same cuts: a free body turns about z."""
    space = mbd.in_space(mech.replace(cut=mbd.topology(mech).cut))
    joints = {
        n: mbd.Planar(j.a, j.b, at=mech.com(j.b), normal=(0, 0, 1))
        for n, j in mech.joints.items()
        if isinstance(j, mbd.Free)
    }
    return space.replace(joints=joints) if joints else space


@jax.jit
def everything(mech, q, v):
    """All that the two descriptions must agree on, and what is the plane's alone."""
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    same = {
        "mass": mbd.mass_matrix(mech, q),
        "bias": mbd.bias(mech, q, v),
        "energies": (mbd.kinetic_energy(mech, q, v), mbd.potential_energy(mech, q)),
        "vdot": vdot,
        "reactions": mbd.joint_reactions(mech, q, v, vdot, lam),
        "poses": mbd.poses(mech, q),
    }
    errors = mbd.constraint_residual(mech, q), mbd.constraint_jacobian(mech, q) @ v
    return same, errors


@pytest.mark.parametrize("build", [four_bar, pytest.param(lever, marks=pytest.mark.slow)])
def test_planar_equals_spatial(build):
    mech = build()
    space = same_in_space(mech)
    assert mech.structure.planar and not space.structure.planar
    assert mbd.topology(mech).tree == mbd.topology(space).tree
    for seed in range(3):
        q, v = motion(mech, seed)
        flat, _ = everything(mech, q, v)
        full, errors = everything(space, q, v)
        assert all(abs(x).max() < 1e-12 for x in errors)
        for key in flat:
            ones, others = jax.tree.leaves(flat[key]), jax.tree.leaves(full[key])
            # A joint that carries nothing carries the rounding of those that carry 400 N.
            size = max(1.0, *(float(abs(x).max()) for x in others))
            for one, other in zip(ones, others, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * size, err_msg=key)
        for wrench in flat["reactions"].values():
            assert np.all(np.asarray(wrench)[[0, 1, 5]] == 0.0)


def test_rows_of_the_plane_alone():
    mech = lever()
    top = mbd.topology(mech)
    assert set(top.cut) == {"pin", "slot", "weld", "float", "rod", "pin in slot"}
    kinds = {n: top.row_kinds[top.layout[n].rows] for n in top.cut}
    assert kinds["pin"] == ("force", "force") and kinds["slot"] == ("force", "moment")
    assert kinds["weld"] == ("force", "force", "moment") and kinds["rod"] == kinds["pin in slot"]
    assert kinds["float"] == ()
    q, v = motion(mech)
    found = mbd.mobility(mech, q)
    # Six bodies: 18, less 2 each of rail, hinge, guide, pin and slot, 3 of the weld, 1 of the rod
    # and of the pin in its slot.
    assert (found.kutzbach, found.dof, found.redundant) == (3, 3, ())
    assert mbd.mobility(same_in_space(mech), q).redundant
    flat = mbd.mobility(four_bar())
    assert (flat.kutzbach, flat.dof, flat.redundant) == (1, 1, ())


@pytest.mark.parametrize("build", [four_bar, lever])
def test_jacobian_and_gamma_are_derivatives_of_the_residual(build):
    mech = build()
    q, v = motion(mech, 5)
    slope = jax.jacfwd(lambda x: mbd.constraint_residual(mech, x))(q)
    np.testing.assert_allclose(slope, mbd.constraint_jacobian(mech, q), rtol=0, atol=1e-12)
    _, drift = jax.jvp(lambda x: mbd.constraint_jacobian(mech, x) @ v, (q,), (v,))
    np.testing.assert_allclose(mbd.gamma(mech, q, v), -drift, rtol=0, atol=1e-11)


def test_halves_drawn_apart_and_turned():
    mech = mbd.Mechanism(
        bodies={"a": mbd.Body(1.0, (0.5, 0.0), 0.1), "b": mbd.Body(1.0, (1.0, 1.0), 0.1)},
        joints={
            "hinge": mbd.Revolute("ground", "a", at=(0, 0)),
            "slide": mbd.Prismatic(
                "a", "b", at=(1.0, 0.0), axis=(1, 0), at_b=(1.0, 1.0), axis_b=(1, 1)
            ),
            "stop": mbd.Prismatic(
                "ground", "b", at=(2, 0), at_b=(1.2, 1.1), axis=(0, 1), axis_b=(-1, 3)
            ),
        },
    )  # fmt: skip
    for cut in ("stop", "slide"):
        flat = mech.replace(cut=(cut,))
        q = mbd.assemble(flat, guess=mbd.neutral(flat) + 0.3).q
        assert abs(mbd.constraint_residual(mbd.in_space(flat), q)).max() < 1e-13


def test_operations_are_several_times_fewer():
    """In a batch, where every number is an argument and nothing of the design folds."""

    def count(mech):
        mech = jax.tree.map(jnp.asarray, mech)
        q, v = jnp.zeros(3), jnp.ones(3)
        run = lambda m, q, v: _accelerations(m, q, v, 0.0, None)[0]  # noqa: E731
        return lanes.explain(run, mech, q, v)

    flat, space = count(four_bar()), count(mbd.in_space(four_bar()))
    assert flat.unsupported is None and space.unsupported is None
    assert 4 * flat.operations < space.operations


def test_results_are_in_space():
    mech = four_bar()
    q = mbd.assemble(mech, known={mbd.PointCoordinate("crank", "B", "x"): 0.05}).q
    place = mbd.point_position(mech, q, "crank", "B")
    assert place.shape == (3,) and float(place[0]) == pytest.approx(0.05) and float(place[2]) == 0.0
    drawn = mbd.point_position(mech, q, "crank", (0.0, 0.3))
    np.testing.assert_array_equal(drawn, place)
    assert mbd.poses(mech, q)["coupler"].position.shape == (3,)
    assert mech.points["B"].shape == (2,) and mech.gravity.tolist() == [0.0, -9.81]
    assert "(0, 0.3)" in str(mech) and "Revolute" in str(mech) and "InPlane" not in str(mech)


def test_a_batch_of_designs_and_gradients():
    base, rng = four_bar(), np.random.default_rng(0)
    shifts = jnp.asarray(0.02 * rng.normal(size=(5, 2)))

    @jax.jit
    def swing(shift):
        mech = four_bar({"C": jnp.array(FOUR["C"]) + shift})
        q = mbd.assemble(mech, known={"A": 0.2}, throw=False).q
        v = mbd.assemble_velocity(mech, q, {"A": 3.0})
        return mbd.forward_dynamics(mech, q, v)[0]

    found = lanes.vmap(swing)(shifts)
    one = jnp.stack([swing(x) for x in shifts[:2]])
    np.testing.assert_allclose(found[:2], one, rtol=0, atol=1e-11)
    slope = jax.jacfwd(swing)(shifts[0])
    h = 1e-6
    for i, step in enumerate(np.eye(2)):
        difference = (swing(shifts[0] + h * step) - swing(shifts[0] - h * step)) / (2 * h)
        np.testing.assert_allclose(slope[:, i], difference, rtol=1e-6, atol=1e-5)
    assert base.structure == four_bar({"C": (0.51, 0.7)}).structure


def test_round_trip_through_a_file():
    mech = four_bar(
        forces={
            "push": mbd.PointForce("coupler", "C", (1.0, 2.0)),
            "turn": mbd.Torque("ground", "crank", 0.5),
        }
    )
    data = to_dict(mech)
    back = from_dict(data)
    assert back.structure == mech.structure and back.structure.planar
    assert to_dict(back) == data
    assert data["points"][1]["at"] == [0.0, 0.3] and data["joints"][0]["type"] == "Revolute"
    data["joints"][0]["type"] = "Revolut"
    with pytest.raises(ValueError) as error:
        from_dict(data)
    assert str(error.value).count("\n") == 1 and "did you mean 'Revolute'" in str(error.value)
    del data["gravity"]
    data["joints"][0]["type"] = "Revolute"
    assert from_dict(data).gravity.tolist() == [0.0, -9.81]
    again = mech.replace(points={"C": (0.4, 0.7)}, gravity=(1.0, 0.0))
    assert again.structure.planar and again.gravity.tolist() == [1.0, 0.0]


def test_single_precision():
    small = {"gravity": np.array([0, -9.81], "float32")}
    mech = four_bar(**small)
    q = jnp.zeros(3, "float32")
    vdot, lam = mbd.forward_dynamics(mech, q, q)
    assert mech.dtype == np.float32 and vdot.dtype == lam.dtype == jnp.float32
    exact = mbd.forward_dynamics(four_bar(), np.zeros(3), np.zeros(3))[0]
    np.testing.assert_allclose(vdot, exact, rtol=1e-4)
    assert mbd.in_space(mech).dtype == np.float32


WRONG = {
    "one point in space": (
        lambda: four_bar({"C": (0.5, 0.7, 0.0)}),
        r"point 'C' has shape \(3,\).*planar",
    ),
    "a point in the plane": (
        lambda: mbd.zoo.four_bar().replace(points={"A": (0.0, 0.0)}),
        r"point 'A' has shape \(2,\); give 3 numbers",
    ),
    "gravity in space": (lambda: four_bar(gravity=(0, 0, -9.81)), r"gravity has shape \(3,\)"),
    "an axis": (
        lambda: four_bar(joints={"A": mbd.Revolute("ground", "crank", "A", (0, 0, 1))}),
        "joint 'A': a Revolute of a planar mechanism turns about z; leave out",
    ),
    "no axis in space": (
        lambda: mbd.zoo.four_bar().replace(joints={"A": mbd.Revolute("ground", "crank", "A")}),
        "joint 'A': axis is missing",
    ),
    "a slider's axis in space": (
        lambda: four_bar(joints={"A": mbd.Prismatic("ground", "crank", "A", (1, 0, 0))}),
        r"joint 'A': axis has shape \(3,\)",
    ),
    "no slider axis": (
        lambda: four_bar(joints={"A": mbd.Prismatic("ground", "crank", "A", None)}),
        "joint 'A': axis is missing",
    ),
    "a joint without a form": (
        lambda: four_bar(joints={"A": mbd.Spherical("ground", "crank", "A")}),
        "joint 'A' is a Spherical, which has no form in a planar mechanism",
    ),
    "a normal": (
        lambda: four_bar(joints={"A": mbd.Planar("ground", "crank", "A", (0, 0, 1))}),
        "leave it out",
    ),
    "no normal in space": (
        lambda: mbd.zoo.four_bar().replace(joints={"A": mbd.Planar("ground", "crank", "A")}),
        "joint 'A': normal is missing",
    ),
    "an inertia in space": (
        lambda: four_bar(inertia=(0.1, 0.1, 0.1)),
        "body 'coupler': inertia must be one number, about z",
    ),
    "a force in space": (
        lambda: four_bar(forces={"push": mbd.PointForce("crank", "B", (0, 0, 1.0))}),
        r"force 'push': force has shape \(3,\)",
    ),
    "a torque across": (
        lambda: four_bar(forces={"turn": mbd.Torque("ground", "crank", (0, 0, 1.0))}),
        "force 'turn': torque must be one number, about z",
    ),
    "a tyre on a road below the plane": (
        lambda: four_bar(forces={"tyre": mbd.Tyre("crank", "B", 1e3)}),
        r"force 'tyre': up has shape \(3,\)",
    ),
    "a soft joint": (
        lambda: four_bar(forces={"soft": mbd.SoftJoint(mbd.Revolute("crank", "rocker", "C"), 1e3)}),
        "force 'soft' is a SoftJoint",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_descriptions_are_named(case):
    build, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        build()


def test_all_problems_come_in_one_message():
    with pytest.raises(ValueError) as error:
        four_bar({"C": (0.5, 0.7, 0.0), "D": (np.nan, 0.0)}, gravity=(0, 0, 0, 1.0))
    text = str(error.value)
    assert re.search("point 'C' has shape", text) and "point 'D' is" in text and "gravity" in text


def test_two_bodies_of_the_lecture_text():
    """Nikravesh's planar example drawn in the plane; the print is rounded to 1 %."""
    phi_i, phi_j = np.deg2rad([34.32, 11.47])
    w = np.sqrt([0.000502, 0.001037])  # they give the printed γ = (0.0017, −0.0002)

    def turned(phi, x, y):
        return np.array([x * np.cos(phi) - y * np.sin(phi), x * np.sin(phi) + y * np.cos(phi)])

    com_i, com_j = -turned(phi_i, 0.9, 0.7), -turned(phi_j, -1.3, 1.0)
    mech = mbd.Mechanism(
        bodies={"i": mbd.Body(1.2, com_i, 2.5), "j": mbd.Body(2.0, com_j, 4.0)},
        joints={
            "i": mbd.Free("ground", "i"),
            "j": mbd.Free("ground", "j"),
            "pin": mbd.Revolute("j", "i", at=(0, 0)),
        },
        forces={
            "on i": mbd.PointForce("i", com_i, (-10.0, 0)),
            "on j": mbd.PointForce("j", com_j, (10.0, 0)),
        },
        cut=("pin",),
    )
    assert mbd.topology(mech).nc == 2 and mbd.topology(mech).nv == 6
    q = mbd.neutral(mech)
    # The arms of the printed Jacobian: (1, 0, −(y_P − y)), (0, 1, x_P − x) for each body.
    rows = np.asarray(mbd.constraint_jacobian(mech, q))
    np.testing.assert_allclose(
        rows[:, :3], [[com_i[1], 1, 0], [-com_i[0], 0, 1]], rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(
        rows[:, 3:], [[-com_j[1], -1, 0], [com_j[0], 0, -1]], rtol=0, atol=1e-15
    )
    v = mbd.assemble_velocity(
        mech, q, {("i", 0): w[0], ("j", 0): w[1], ("j", 1): 0.0, ("j", 2): 0.0}
    )
    np.testing.assert_allclose(mbd.gamma(mech, q, v), [0.0017, -0.0002], rtol=0, atol=2e-5)
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    np.testing.assert_allclose(vdot[:3], [-3.061, -2.571, -10.154], rtol=0.01)
    np.testing.assert_allclose(vdot[3:], [1.096, 1.543, -9.604], rtol=0.01)
    np.testing.assert_allclose(lam, [6.915, -0.413], rtol=0.01)


def lecture_slider_crank():
    """Section 3.4 in its own coordinates (x, y, φ of each body), all joints as constraints."""
    points = {"O": (0.0, 0.0), "B": (-0.2, 0.0), "A": (-0.7, 0.0)}
    coms = {"crank": (-0.1, 0.0), "rod": (-0.5, 0.0), "slider": (-0.7, 0.0)}
    joints = {name: mbd.Planar("ground", name, at=com) for name, com in coms.items()}
    joints |= {
        "A": mbd.Revolute("rod", "slider", at="A"),
        "B": mbd.Revolute("crank", "rod", at="B"),
        "O": mbd.Revolute("ground", "crank", at="O"),
        "T": mbd.Prismatic("ground", "slider", at="A", axis=(1, 0)),
    }
    return mbd.Mechanism(
        bodies={name: mbd.Body(1.0, com, 0.01) for name, com in coms.items()},
        joints=joints,
        drives={"driver": mbd.Drive("crank", lambda t, p: 5.76 - 1.2 * t)},
        points=points,
        cut=("A", "B", "O", "T"),
    )


def test_appended_driver_analysis_of_the_slider_crank():
    """Φ and Φ^(d) square, so q, q̇ and q̈ follow from (3.14), (3.16) and (3.18)."""
    mech = lecture_slider_crank()
    top = mbd.topology(mech)
    assert (top.nv, top.nc) == (9, 9) and mbd.mobility(mech).kutzbach == 1
    q = np.zeros(9)
    q[top.layout["crank"].q] = (5.76, 0.0, -0.05)
    q[top.layout["rod"].q] = (0.2, 0.0, 0.0)
    for t in np.linspace(0.0, 5.0, 6):
        q = mbd.assemble(mech, guess=q, t=t).q
        phi = {n: float(q[top.layout[n].q][0]) for n in ("crank", "rod", "slider")}
        jacobian = np.asarray(mbd.constraint_jacobian(mech, q))
        check_printed_entries(jacobian, top, phi["crank"], phi["rod"])
        rate = np.zeros(9)
        rate[top.layout["driver"].rows] = -1.2
        v = np.linalg.solve(jacobian, rate)
        vdot = np.linalg.solve(jacobian, mbd.gamma(mech, q, v, t))
        np.testing.assert_allclose(mbd.assemble_velocity(mech, q, t=t), v, rtol=0, atol=1e-13)
        np.testing.assert_allclose(
            mbd.assemble_acceleration(mech, q, v, t=t), vdot, rtol=0, atol=1e-12
        )
        place, speed, acceleration = slider(5.76 - 1.2 * t)
        assert phi["slider"] == pytest.approx(0.0, abs=1e-13)
        x = top.layout["slider"].q.start + 1
        found = [float(q[x]) - 0.7, v[x], vdot[x]]
        np.testing.assert_allclose(found, [place, speed, acceleration], rtol=0, atol=1e-12)


def check_printed_entries(jacobian, top, phi2, phi3):
    """The entries 4–27 of the lecture text's Jacobian, in metres; φ before x and y here."""
    entry = lambda joint, body: jacobian[top.layout[joint].rows, top.layout[body].v]  # noqa: E731
    s2, c2, s3, c3 = np.sin(phi2), np.cos(phi2), np.sin(phi3), np.cos(phi3)
    np.testing.assert_allclose(
        entry("A", "rod"), [[-0.2 * s3, -1, 0], [0.2 * c3, 0, -1]], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(entry("A", "slider"), [[0, 1, 0], [0, 0, 1]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        entry("B", "rod"), [[-0.3 * s3, 1, 0], [0.3 * c3, 0, 1]], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        entry("B", "crank"), [[-0.1 * s2, -1, 0], [0.1 * c2, 0, -1]], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        entry("O", "crank"), [[-0.1 * s2, 1, 0], [0.1 * c2, 0, 1]], rtol=0, atol=1e-12
    )
    zeros = np.isclose(jacobian, 0.0, atol=1e-12).mean()
    assert zeros > 0.6


def slider(phi, rate=-1.2):
    """Place, speed, acceleration: B = −0.2 u(φ), sin φ3 = −0.4 sin φ, A = B − 0.5 u(φ3)."""

    def place(angle):
        return -0.2 * jnp.cos(angle) - 0.5 * jnp.sqrt(1.0 - (0.4 * jnp.sin(angle)) ** 2)

    speed = jax.grad(place)(phi) * rate
    return float(place(phi)), float(speed), float(jax.grad(jax.grad(place))(phi) * rate**2)


def test_a_free_body_keeps_its_coordinates_in_space():
    flat = mbd.Mechanism(
        bodies={"puck": mbd.Body(2.0, com=(0.3, 0.1), inertia=0.1)},
        joints={"free": mbd.Free("ground", "puck")},
    )
    q, v = np.array([0.4, 0.2, -0.3]), np.array([1.0, 2.0, 3.0])
    for mech in (flat, mbd.in_space(flat)):
        vdot, _ = mbd.forward_dynamics(mech, q, v)
        np.testing.assert_allclose(vdot, [0.0, 0.0, -9.81], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        mbd.poses(mbd.in_space(flat), q)["puck"].position, mbd.poses(flat, q)["puck"].position
    )
