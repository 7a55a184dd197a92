"""Numbers by path: each path sets its own number and no other, under every transformation."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from equipped_mechanisms import equipped_mechanism

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.model.coupling import COUPLING_TYPES
from jaxmbd.model.forces import FORCE_TYPES
from jaxmbd.model.joints import JOINT_TYPES
from jaxmbd.variables import Variable, Variables
from jaxmbd.variables.units import in_si, unit_of


@pytest.fixture(scope="module")
def everything():
    return equipped_mechanism(3).mech.replace(
        forces={
            "curve": mbd.SpringDamper(
                "arm",
                "rider",
                (0, 0, 1),
                (0, 1, 0),
                law=mbd.DamperCurve([0.1], [9], [0.2, 1], [8, 9]),
            ),
            "table": mbd.TorsionSpring("elbow", law=mbd.Table([0, 1], [0, 2], of_rate=True)),
            "square": mbd.TorsionSpring("rail", 5.0, law=mbd.SignedSquare(3.0)),
            "pull": mbd.JointTorque("elbow", 0.5),
            "rubber": mbd.Bushing(
                "arm",
                "rider",
                (0, 1, 0),
                np.eye(6),
                frame=np.eye(3)[:2],
                laws={"rz": mbd.Table([0, 1], [0, 2]), "z": mbd.SignedSquare(3.0)},
            ),
        },
        joints={"link": mbd.Rod("arm", "rider", (0, 0, 0.5), (1, 0, 0.5))},
    )


def numbers(mech):
    return jax.tree_util.tree_leaves(mech)


def test_every_number_has_a_path_and_a_path_sets_one_number(everything):
    table = mbd.variables(everything)
    before = numbers(everything)
    assert len(table) == len(before)
    seen = set()
    for path, x in table.items():
        bigger = np.asarray(x.value) * 1.01 + (1e-3 if path.startswith("points") else 0.0)
        after = numbers(mbd.set_variables(everything, {path: bigger}))
        moved = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if np.any(a != b)]
        if np.any(bigger != x.value):
            assert len(moved) == 1
            np.testing.assert_array_equal(after[moved[0]], bigger)
            seen.add(moved[0])
    assert len(seen) > 0.8 * len(before)  # the others are zeros
    again = mbd.set_variables(everything, table.nominal)
    assert again.structure == everything.structure
    jax.tree.map(np.testing.assert_array_equal, again, everything)


def test_components_are_those_of_the_whole(everything):
    for path, x in mbd.variables(everything).items():
        if x.components:
            values = mbd.get_variables(everything, [f"{path}/{c}" for c in x.components])
            whole = mbd.set_variables(everything, values)  # components set the whole again
            np.testing.assert_allclose(mbd.get_variables(whole, [path])[path], x.value, rtol=1e-13)
    mech = mbd.set_variables(everything, {"bodies/arm/inertia/xy": 0.01, "bodies/arm/com/z": 7.0})
    inertia = mech.bodies["arm"].inertia
    assert inertia[0, 1] == inertia[1, 0] == 0.01
    np.testing.assert_array_equal(mech.bodies["arm"].com[:2], everything.bodies["arm"].com[:2])
    assert mech.bodies["arm"].com[2] == 7.0


def test_units_follow_the_coordinate_acted_on(everything):
    units = mbd.variables(everything, ["*"], implied=True).units
    assert units["forces/torsion/stiffness"] == "N m/rad"
    assert units["forces/square/stiffness"] == "N/m"
    assert units["forces/square/law/coefficient"] == "N/m²"
    assert units["forces/table/law/x"] == "rad/s"
    assert units["forces/rubber/laws/rz/x"] == "rad"
    assert units["forces/rubber/laws/rz/y"] == "N m"
    assert units["forces/rubber/laws/z/coefficient"] == "N/m²"
    assert units["forces/curve/law/bump_forces"] == "N"
    assert units["forces/bushing/stiffness"] == "N m/rad; N/m"
    assert units["forces/rub/velocity_scale"] == "rad/s"
    assert units["couplings/gear/ratio"] == ""
    assert units["joints/link/length"] == "m"
    assert units["gravity"] == "m/s²"
    parts = mbd.variables(everything, "forces/bushing/stiffness/*").units
    assert parts["forces/bushing/stiffness/rx"] == "N m/rad"
    assert parts["forces/bushing/stiffness/x"] == "N/m"


LAWS = (mbd.SignedSquare, mbd.DamperCurve, mbd.Body)
FREE = {"params", "law", "laws", "replaced"}  # pytrees of the user's


TYPES = [*JOINT_TYPES.values(), *FORCE_TYPES.values(), *COUPLING_TYPES.values(), *LAWS]


@pytest.mark.parametrize("cls", TYPES, ids=lambda cls: cls.__name__)
def test_every_field_of_every_type_has_a_unit(cls):
    if not cls.__module__.startswith("jaxmbd."):
        pytest.skip("a type that another test registered")
    known = {*cls.units, *getattr(cls, "directions", ()), "at", "at_a", "at_b", "markers", *FREE}
    given = [f.name for f in dataclasses.fields(cls) if not f.metadata.get("static")]
    assert not [name for name in given if name not in known]
    assert not [name for name in cls.units if name not in given]


def test_all_units_are_units(everything):
    for unit in set(mbd.variables(everything).units.values()):
        for part in unit.split("; "):
            unit_of(part)


class Magnet(mbd.SpringDamper):
    """A user's type, which says the units of its own fields."""

    pole: float = eqx.field(converter=np.asarray, default=2.0)
    units = {**mbd.SpringDamper.units, "pole": "A m"}


def test_types_of_ones_own():
    magnet = Magnet("ground", "bob", (0, 0, 1), "tip")
    mech = pendulum().replace(forces={"magnet": magnet})
    assert mbd.variables(mech).units["forces/magnet/pole"] == "A m"
    mech = mbd.set_variables(mech, {"forces/magnet/pole": "3 kA mm", "forces/magnet/damping": 4.0})
    assert (mech.forces["magnet"].pole, mech.forces["magnet"].damping) == (3.0, 4.0)
    drive = mbd.variables(mbd.zoo.rsrrp(), "forces/drive/law/*").units
    assert [*drive.values()] == ["N m", "s", "rad/s"]


def test_what_is_not_given_can_be_set():
    corner = mbd.zoo.multi_link()
    table = mbd.variables(corner, "joints/tierod/*", implied=True)
    length = table["joints/tierod/length"]
    ends = corner.points["tierod_inboard"], corner.points["tierod_outboard"]
    np.testing.assert_allclose(length.value, np.linalg.norm(ends[1] - ends[0]), rtol=1e-14)
    assert length.implied and "joints/tierod/length" not in mbd.variables(corner)
    longer = mbd.set_variables(corner, {"joints/tierod/length": length.value + 1e-3})
    assert not mbd.variables(longer)["joints/tierod/length"].implied
    assert longer.joints["tierod"].length == length.value + 1e-3


def toe_at_drawn_height(mech):
    """Of the corner with its wheel centre as high as drawn."""
    height = mbd.PointCoordinate("upright", "wheel_centre", "z")
    found = mbd.assemble(mech, known={height: mech.point("wheel_centre")[2]})
    return mbd.zoo.toe_angle(mbd.poses(mech, found.q)["upright"].rotation @ jnp.array([0, 1.0, 0]))


def test_transformations_agree():
    """A longer track rod turns the wheel: by jit, derivatives and batches the same."""
    corner = mbd.zoo.multi_link()
    nominal = float(mbd.variables(corner, "joints/tierod/length")["joints/tierod/length"].value)

    def toe(change):
        values = {"joints/tierod/length": nominal + change, "points/lateral_ball/z": 0.01 + change}
        return toe_at_drawn_height(mbd.set_variables(corner, values))

    changes = np.array([-1e-3, 0.0, 2e-3])
    one_by_one = [float(toe(x)) for x in changes]
    assert np.ptp(one_by_one) > 1e-3
    np.testing.assert_allclose(lanes.jit(jax.vmap(toe))(changes), one_by_one, rtol=0, atol=1e-12)
    np.testing.assert_allclose(jax.jit(lanes.vmap(toe))(changes), one_by_one, rtol=0, atol=1e-12)
    slope, h = lanes.jit(jax.grad(toe))(0.0), 1e-5
    np.testing.assert_allclose(slope, (toe(h) - toe(-h)) / (2 * h), rtol=1e-6)


def pendulum(**parts):
    return mbd.Mechanism(
        {"bob": mbd.Body(2.0, "tip", (0.1, 0.1, 0.1))},
        {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), ("tip", "top"))},
        {"stop": mbd.JointLimit("hinge", lower=-1.0, stiffness=3.0)},
        points={"tip": (1.0, 0.0, 0.0), "top": (1.0, 0.0, 2.0)},
        **parts,
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"points/tpi": 0.0}, ["'points/tpi'", "did you mean", "'points/tip'"]),
        ({"stiffness": 1.0}, ["'stiffness'", "'forces/stop/stiffness'"]),
        ({"points/tip/w": 1.0}, ["'points/tip/w'", "['x', 'y', 'z']"]),
        ({"bodies/bob/com": (0, 0, 0)}, ["'bodies/bob/com'", "set 'points/tip'"]),
        ({"joints/hinge/axis/x": 1.0}, ["'points/tip' to 'points/top'"]),
        ({"forces/stop/upper": 1.0}, ["'forces/stop/upper'", "not given"]),
        ({"bodies/bob/mass": (1.0, 2.0)}, ["'bodies/bob/mass'", "one number", "(2,)"]),
        ({"points/tip": 1.0}, ["'points/tip'", "(3,)"]),
        ({"bodies/bob/mass": -1.0}, ["body 'bob'", "-1 kg"]),
        ({"bodies/bob/mass": float("nan")}, ["body 'bob'", "nan"]),
        ({"points/tip": (1, 2, 3), "points/tip/x": 2.0}, ["'points/tip'", "twice", "'x'"]),
        ({"bodies/bob/mass": "1 mm"}, ["bodies/bob/mass", "in kg", "[length]"]),
        ({"bodies/bob/mass": "much"}, ["bodies/bob/mass", "'much'", "no quantity"]),
    ],
)
def test_what_cannot_be_set_is_told(values, words):
    with pytest.raises(ValueError) as error:
        mbd.set_variables(pendulum(), values)
    assert not [word for word in words if word not in str(error.value)], str(error.value)


def test_what_looks_wrong_is_told():
    with pytest.warns(UserWarning, match="negative") as seen:
        mbd.set_variables(
            mbd.zoo.multi_link(),
            {"forces/spring/stiffness": -1.0, "points/tierod_inboard/x": "1 cm"},
        )
    assert len(seen) == 1 and seen[0].filename == __file__


def test_names_may_hold_slashes_and_dots_but_not_mislead():
    mech = pendulum().replace(
        points={"a/b.c": (0.0, 1.0, 0.0)},
        forces={"f/1": mbd.SpringDamper("ground", "bob", "a/b.c", "tip", 5.0)},
    )
    moved = mbd.set_variables(mech, {"points/a/b.c/y": 2.0, "forces/f/1/stiffness": 6.0})
    assert moved.points["a/b.c"][1] == 2.0 and moved.forces["f/1"].stiffness == 6.0
    misleading = mech.replace(
        forces={"g": mbd.PointForce("bob", "tip/x")}, points={"tip/x": (0, 0, 1)}
    )
    with pytest.raises(ValueError, match="2 numbers.*rename"):
        mbd.get_variables(misleading, ["points/tip/x"])


def test_selection_and_print():
    mech = pendulum()
    assert list(mbd.variables(mech, ["*/mass", "points/*/z"])) == [
        "points/tip/z",
        "points/top/z",
        "points/hinge.at/z",
        "bodies/bob/mass",
    ]
    assert list(mbd.variables(mech).select("gravity")) == ["gravity"]
    for select in (mbd.variables(mech).select, lambda p: mbd.variables(mech, p)):
        with pytest.raises(ValueError, match="no variable fits.*'x/\\*'"):
            select("x/*")
    assert "forces/stop/lower" in str(mbd.variables(mech)) and "rad" in str(mbd.variables(mech))


def test_a_table_of_ones_own_variables():
    end = Variable("end", np.array([1.0, 2.0]), "m", "end", ("x", "y"))
    table = Variables([end, Variable("rate", np.array(3.0), "N/m", "rate")])
    assert list(table) == ["end", "rate"] and table.units == {"end": "m", "rate": "N/m"}
    assert table["end"] is end and float(table.nominal["rate"]) == 3.0
    assert list(table.select("r*")) == ["rate"]
    [(path, half)] = table.components("end/y").items()
    assert (path, half.value, half.unit, half.text) == ("end/y", 2.0, "m", "y of the end")
    with pytest.raises(ValueError, match="'end'"):
        table.select("ende")


def test_a_batch_is_refused():
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), pendulum())
    with pytest.raises(ValueError, match="batch of 2.*vmap"):
        mbd.variables(batch)


def test_quantities_with_units():
    mech = mbd.set_variables(
        pendulum(),
        {
            "points/tip/x": "800 mm",
            "forces/stop/stiffness": "2 N m/deg",
            "forces/stop/lower": "-30°",
        },
    )
    np.testing.assert_allclose(mech.points["tip"][0], 0.8)
    np.testing.assert_allclose(mech.forces["stop"].stiffness, 360 / np.pi)
    np.testing.assert_allclose(mech.forces["stop"].lower, -np.pi / 6)


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("0,3 mm", "m", "'0,3 mm' has a comma"),
        ("1,000 mm", "m", "has a comma"),
        ("10 Hz", "rad/s", "counts cycles"),
        ("10 rad/s", "Hz", "counts cycles"),
    ],
)
def test_quantities_that_may_mean_two_things_are_refused(text, unit, says):
    with pytest.raises(ValueError, match=says):
        in_si(text, unit, "it")


def test_turns_are_angles_and_cycles_are_not():
    np.testing.assert_allclose(in_si("60 rpm", "rad/s"), 2.0 * np.pi, rtol=1e-14)
    assert in_si("2 kHz", "Hz") == 2000.0
