"""Mechanisms to and from files: nothing is lost, and what cannot be kept is named with its cure."""

import inspect
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.io import (
    UnsupportedConstraint,
    from_dict,
    gt_velocities,
    load,
    read_gt_mech,
    save,
    to_dict,
)
from jaxmbd.model.forces import FORCE_TYPES
from jaxmbd.model.joints import JOINT_TYPES

pytestmark = pytest.mark.filterwarnings("ignore:.*which is negative")  # all numbers are random

RNG = np.random.default_rng(3)


@mbd.register_law("test_io.drag")
def drag(*motion):
    return -0.3 * motion[-1] * jnp.abs(motion[-1])


@mbd.register_law("test_io.ramp")
def ramp(t, p):
    return p["speed"] * t + p["ends"][0]


@mbd.register_law("test_io.mixture")
class Mixture(eqx.Module):
    parts: tuple
    scales: dict
    floor: float
    kind: str = eqx.field(static=True, default="sum")

    def __call__(self, x, rate):
        return sum(part(x, rate) for part in self.parts) * self.scales["all"] + self.floor


@mbd.register_law("test_io.spiral")
def spiral(u, p):
    return p["a"] * jnp.stack([u * jnp.cos(u), u * jnp.sin(u), 0.0 * u])


@mbd.register_law("test_io.differential")
def differential(q, p):
    return q[0] + q[1] - p * q[2]


def numbers(*shape):
    return RNG.normal(size=shape)


def joint_of(cls, a, b):
    """A joint with a random number, point or direction in every field, optional ones too."""
    given = {"a": a, "b": b}
    for name in inspect.signature(cls.__init__).parameters:
        if name in ("at", "at_a", "at_b"):
            given[name] = "hub" if name == "at" else numbers(3)
        elif name in cls.numbers:
            given[name] = abs(numbers())
        elif name in ("curve", "params", "interval", "samples", "pitch"):
            given[name] = {
                "curve": spiral,
                "params": {"a": numbers()},
                "interval": (0.1, 2.0),
                "samples": 7,
                "pitch": True,
            }[name]
        elif name == "axis_b" and "axis" in given and cls is not mbd.Helical:
            given[name] = given["axis"] + 0.01 * numbers(3)
        elif name == "axis" and cls is mbd.Helical:
            given[name] = ("hub", "rim")
        elif name not in ("self", "a", "b"):
            given[name] = numbers(3)
    return cls(**given)


def everything():
    """A mechanism with every joint type, every force type and laws of every kind."""
    bodies, joints = {}, {}
    for i, (name, cls) in enumerate(JOINT_TYPES.items()):
        bodies[f"zz{9 - i} body"] = mbd.Body(abs(numbers()), numbers(3), np.diag(3 + RNG.random(3)))
        if not cls.can_be_in_tree:
            joints[f"carrier of {name}"] = mbd.Free("ground", f"zz{9 - i} body")
        joints[name] = joint_of(cls, "ground", f"zz{9 - i} body")
    first, second = list(bodies)[:2]
    joints["closing"] = mbd.Spherical(first, second, "rim")
    mix = Mixture(
        (mbd.SignedSquare(numbers()), mbd.Table([0, 1], [2, 3])),
        {"all": numbers(2)},
        0.1,
        kind="other",
    )
    forces = {
        "spring": mbd.SpringDamper(first, second, numbers(3), "hub", 1 / 3, 0.1, 2.0, -3.0, mix),
        "soft": mbd.SpringDamper(first, "ground", numbers(3), numbers(3), law=drag),
        "table": mbd.SpringDamper(
            first, "ground", "hub", numbers(3), law=mbd.Table([0, 1.0], [0.1, 7], of_rate=True)
        ),
        "twist": mbd.TorsionSpring(
            "Cylindrical", 1e-3, 2e300, law=mbd.SignedSquare(5e-324), index=1
        ),
        "push": mbd.PointForce(second, "hub", numbers(3), law=drag),
        "turn": mbd.Torque("ground", first, numbers(3)),
        "motor": mbd.JointTorque("Universal", numbers(2)),
        "tyre": mbd.Tyre(first, "hub", 2e5, 100, 0.31, law=drag),
        "bush": mbd.Bushing(
            first,
            second,
            "hub",
            numbers(6),
            np.eye(6) / 3,
            numbers(2, 3),
            "small",
            at_b=numbers(3),
            laws={"rx": mbd.Table([0, 1], [2, 3]), "z": mbd.SignedSquare(1 / 3)},
        ),
        "softened": mbd.SoftJoint(
            mbd.Prismatic(first, second, "hub", ("hub", "rim"), at_b=numbers(3)), numbers(2), 1 / 7
        ),
    }
    forces |= {
        "curve": mbd.SpringDamper(
            first, second, "hub", numbers(3), law=mbd.DamperCurve([0.1, 1], [2, 3], [0.3], [1 / 3])
        ),
        "bump": mbd.BumpStop(first, second, "hub", numbers(3), 0.1, 1e5, 1 / 3, 0.2, rebound=True),
        "end": mbd.JointLimit("Cylindrical", None, 0.7, 1e4, 1 / 7, 0.1, index=1),
        "bar": mbd.AntiRollBar(first, second, "hub", numbers(3), 1e4, 0.1, "ground", numbers(3)),
        "torsion": mbd.TorsionBar("Revolute", "Cylindrical", 1 / 3, 0.2, -1.0, 0.1, index_b=1),
        "rub": mbd.JointFriction("Revolute", 0.1, 0.01, 0.2, 0.03, 1 / 3, 0.1, 0.02),
        "rolling": mbd.PacejkaTyre(
            first, "hub", 2e5, 100, 0.31, numbers(3), law=drag, belt=numbers(3), free_rolling=True
        ),
    }
    forces["rotor"] = mbd.Armature("Universal", numbers(2) ** 2)
    forces["drag"] = mbd.JointDrag("Universal", numbers(2) ** 2, 1 / 7, 1 / 3)
    forces["propeller"] = mbd.BodyActuator(first, "hub", numbers(3), numbers(3), control=0.3)
    forces["servo"] = mbd.Actuator("Cylindrical", 3.0, 1 / 3, numbers(3), 0.1, (-1, 1 / 7), index=1)
    others = {mbd.Belt}  # on parallel axes: tests/model/test_belt.py
    assert {type(f) for f in forces.values()} == set(FORCE_TYPES.values()) - others
    drives = {
        "go": mbd.Drive("Planar", ramp, {"speed": numbers(), "ends": [numbers(2), 1.5]}, index=2),
        "lift": mbd.PointDrive(first, "rim", "y", ramp, {"speed": 0.1, "ends": [1.0]}),
        "shift": mbd.PointDrive(first, numbers(3), "x", ramp, {"speed": 0.1, "ends": [1.0]}),
    }
    couplings = {
        "gear": mbd.Gear("Revolute", "Cylindrical", -1 / 3, 0.2),
        "rack": mbd.RackAndPinion("Universal", "Cylindrical", 1 / 7, 0.3, 1, 1),
        "case": mbd.Coupling((("Planar", 2), "Prismatic", "Revolute"), differential, numbers()),
    }
    return mbd.Mechanism(
        bodies,
        joints,
        forces,
        drives,
        {"rim": numbers(3), "hub": numbers(3)},
        numbers(3),
        cut=("closing",),
        couplings=couplings,
    )


def same(a, b):
    """Same structure, and the same bits in every leaf."""
    assert jax.tree_util.tree_structure(a) == jax.tree_util.tree_structure(b)
    for x, y in zip(jax.tree_util.tree_leaves(a), jax.tree_util.tree_leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nothing_is_lost(tmp_path, dtype):
    mech = everything()
    if dtype == "float32":  # 2e300 and 5e-324 are not float32 numbers
        soft = eqx.tree_at(lambda m: m.forces["twist"].damping, mech, np.asarray(2.0))
        mech = soft.astype(dtype)
    save(mech, tmp_path / "mech.json")
    back = load(tmp_path / "mech.json")
    same(mech, back)
    assert back.structure == mech.structure
    same(mech, from_dict(json.loads(json.dumps(to_dict(mech)))))


def test_points_stay_shared(tmp_path):
    save(everything(), tmp_path / "mech.json")
    data = json.loads((tmp_path / "mech.json").read_text())
    spring = next(f for f in data["forces"] if f["name"] == "spring")
    assert spring["at_b"] == "hub" and data["points"][0]["name"] == "rim"
    assert [b["name"] for b in data["bodies"]] == list(everything().structure.bodies)


@pytest.mark.parametrize("zoo", ["rssr", "double_wishbone", "four_bar"])
def test_zoo_mechanisms_keep_their_dynamics(tmp_path, zoo):
    mech = getattr(mbd.zoo, zoo)()
    save(mech, tmp_path / "mech.json")
    same(mech, load(tmp_path / "mech.json"))


def test_what_cannot_be_saved_is_named_at_once():
    mech = mbd.Mechanism(
        {"arm": mbd.Body(1.0, (1, 0, 0), (1, 1, 1))},
        {"hinge": mbd.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1))},
        {"wind": mbd.PointForce("arm", (1, 0, 0), law=lambda t, x, v: -v)},
        {"crank": mbd.Drive("hinge", lambda t, p: p * t, 2.0)},
    )
    with pytest.raises(ValueError, match="force 'wind'.*register_law") as error:
        to_dict(mech)
    assert "drive 'crank'" in str(error.value)
    batch = jax.tree_util.tree_map(lambda x: jnp.stack([x, x]), mbd.zoo.rssr())
    with pytest.raises(ValueError, match="shape .2, 3.*one by one"):
        to_dict(batch)


def test_all_problems_of_a_file_in_one_message(tmp_path):
    data = to_dict(mbd.zoo.four_bar())
    bodies, joints = data["bodies"], data["joints"]
    bodies.append({**bodies[0], "mass": 2.0})
    bodies[1]["mass"] = -1.0
    bodies[2]["com"] = [0, 0]
    joints[0]["type"] = "Revolut"
    joints[1]["axes"] = [0, 0, 1]
    joints[2]["axis"] = [0, 0, True]
    joints[3]["b"] = "nobody"
    data["forces"] = [
        {"name": "s", "type": "SpringDamper", "a": "ground", "at_a": "nowhere", "at_b": [0, 0, 1]},
        {"name": "t", "type": "TorsionSpring", "joint": joints[3]["name"], "law": {"law": "tabel"}},
    ]
    data["colour"] = "red"
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(ValueError) as error:
        load(tmp_path / "bad.json")
    text = str(error.value)
    for part in (
        "bad.json",
        f"body '{bodies[0]['name']}' is given twice",
        "rename",
        f"body '{bodies[1]['name']}': mass is -1",
        f"body '{bodies[2]['name']}': com has shape (2,)",
        "did you mean 'Revolute'",
        "has no 'axes'",
        "holds True where a number belongs",
        "'nobody', which does not exist",
        "SpringDamper needs b",
        "did you mean 'table'",
        "register_law",
        "unknown entry 'colour'",
    ):
        assert part in text, part
    assert "not connected" not in text  # nothing that only follows from the unreadable entries
    assert text.count("\n") == 10


def test_repeated_keys_and_foreign_files_are_told(tmp_path):
    text = json.dumps(to_dict(mbd.zoo.four_bar())).replace('"mass":', '"mass": 1.0, "mass":', 1)
    (tmp_path / "twice.json").write_text(text)
    with pytest.raises(ValueError, match="gives 'mass' twice"):
        load(tmp_path / "twice.json")
    (tmp_path / "gt.json").write_text('{"mechanism": {}, "format": "gt-mech-1: ..."}')
    with pytest.raises(ValueError, match="read_gt_mech"):
        load(tmp_path / "gt.json")
    (tmp_path / "torn.json").write_text('{"format": ')
    with pytest.raises(ValueError, match="torn.json is not JSON"):
        load(tmp_path / "torn.json")


# gt-mech-1 -------------------------------------------------------------------------------------


def gt_file():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    return {
        "format": "gt-mech-1",
        "mechanism": {
            "gravity": [0, 0, -9.81],
            "bodies": [
                {
                    "name": "arm",
                    "mass": 2.0,
                    "inertia": np.diag([1.0, 2, 3]).tolist(),
                    "com0": [1, 0, 0],
                    "R0": turn.tolist(),
                    "w0": [0, 0, 2],
                    "v0": [0, 2, 0],
                },
                {"name": "ball", "mass": 1.0, "inertia": np.eye(3).tolist(), "com0": [3, 0, 0]},
            ],
            "joints": [
                {
                    "name": "hinge",
                    "type": "revolute",
                    "A": "ground",
                    "B": "arm",
                    "point": [0, 0, 0],
                    "axis": [0, 0, 1],
                },
                {
                    "name": "link",
                    "type": "distance",
                    "A": "arm",
                    "B": "ball",
                    "pA": [2, 0, 0],
                    "pB": [3, 0, 0],
                },
            ],
            "springs": [
                {"A": "ground", "B": "ball", "pA": [5, 0, 0], "pB": [3, 0, 0], "k": 2, "k2abs": 3}
            ],
            "forces": [{"B": "arm", "point": [1, 0, 0], "F": [1, 2, 3]}],
            "torques": [{"B": "arm", "T": [0, 0, 3]}],
        },
    }


def test_read_gt_mech():
    mech = read_gt_mech(gt_file())
    assert mech.structure.bodies == ("arm", "ball")
    assert [(e.name, e.kind.__name__) for e in mech.structure.joints] == [
        ("hinge", "Revolute"),
        ("link", "Rod"),
        ("free_ball", "Free"),
    ]
    np.testing.assert_allclose(mech.bodies["arm"].inertia, np.diag([2.0, 1, 3]))
    assert mech.forces["spring_0"].law.coefficient == 3.0
    np.testing.assert_array_equal(gt_velocities(gt_file())["arm"], [0, 0, 2, 0, 2, 0])
    same(mech, from_dict(to_dict(mech)))


def test_read_gt_mech_names_what_it_does_not_build():
    data = gt_file()
    data["mechanism"]["joints"][1].update(type="screw", axis=[1, 0, 0], point=[2, 0, 0])
    with pytest.raises(UnsupportedConstraint, match="joint 'link' is of type 'screw'"):
        read_gt_mech(data)


@pytest.mark.parametrize(
    ("kind", "cls", "rows"),
    [("pointline", "PointOnLine", 2), ("parallel", "ParallelAxes", 2), ("perp", None, 1)],
)
def test_read_gt_mech_builds_constraint_rows(kind, cls, rows):
    data = gt_file()
    row = dict(type=kind, axis=[1, 0, 0], axis2=[1, 0, 0], point=[2, 0, 0])
    if kind == "perp":
        row["axis2"] = [0, 1, 0]
    data["mechanism"]["joints"][1].update(row)
    mech = read_gt_mech(data)
    assert type(mech.joints["link"]).__name__ == (cls or "PerpendicularAxes")
    assert mbd.topology(mech).layout["link"].rows == slice(0, rows)
    assert np.abs(mbd.constraint_residual(mech, mbd.neutral(mech))).max() < 1e-15
