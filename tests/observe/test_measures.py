"""Forces of elements by name: they do the work that the element's loads do, with the sign said."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from equipped_mechanisms import equipped_mechanism

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.model.forces import FORCE_TYPES, ForceElement, Load
from jaxmbd.observe import Snapshot, element_measures

CURVE = mbd.DamperCurve([0.1, 0.5, 1.0], [300, 500, 600], [0.2, 1.0], [900, 1500])


class Wind(ForceElement):
    """A user's element, which says nothing of its forces."""

    b: str

    def loads(self, motion):
        x, _ = motion.point(self.b, np.array([0.1, 0.2, 0.3]))
        y, _ = motion.point(self.b, np.array([0.4, 0.2, 0.3]))
        force = jnp.array([1.0, 2.0, 3.0])
        return [Load(self.b, p, f, 0.0 * force) for p, f in ((x, force), (y, -force))]


@pytest.fixture(scope="module")
def rig():
    """A mechanism with an element of each kind, moving, and its measures."""
    e = equipped_mechanism(3)
    ends: dict[str, Any] = dict(a="arm", b="rider", at_a=(0, 0, 0.5), at_b=(0.3, 0, 0))
    mech = e.mech.replace(
        forces={
            "damper": mbd.SpringDamper(**ends, stiffness=50.0, preload=3.0, law=CURVE),
            "torsion bar": mbd.TorsionBar("shoulder", "elbow", 9.0, 0.5, offset=0.1),
            "gust": mbd.PointForce("rider", (0.1, 0, 0), (1.0, -2.0, 3.0)),
            "twist": mbd.Torque("arm", "rider", (0.3, 0.1, -0.2), lambda t, w: -0.1 * w),
            "motor": mbd.JointTorque("elbow", 0.7, lambda t, q, v: -0.2 * v),
            "stop": mbd.BumpStop(**ends, gap=-0.9, stiffness=40.0, rebound=True),
        }
    )
    return SimpleNamespace(**lanes.jit(lambda q, v: facts(mech, q, v))(e.q, e.v))


def facts(mech, q, v):
    """Measures of all elements, and what they are compared with."""
    at, bare = Snapshot(mech, q, v), mech.replace(gravity=np.zeros(3))
    names = mech.structure.forces
    values = {n: {k: x.value for k, x in at.measures(n).items()} for n in names}
    expected = {n: f(at, values[n]) for n, f in POWERS.items()}
    expected |= {n: elastic_power(at, values[n], n) for n in ("bushing", "soft")}
    return {
        "values": values,
        "expected": expected,
        "powers": {n: power(at, mech.forces[n]) for n in expected},
        "wheel": mech.forces["wheel"].loads(at.motion)[0].force,
        "friction": mbd.friction_efforts(mech, q, v, at.vdot, at.lam)["shoulder"][0],
        "potential": mbd.potential_energy(bare, q),
    }


def power(at, element):
    """Power of an element's loads, without that of dry friction."""
    m, total = at.motion, jnp.zeros(())
    for item in element.loads(m):
        if isinstance(item, Load):
            total += item.force @ m.velocity_at(item.body, item.point)
            total += item.moment @ m.angular_velocity(item.body)
        else:
            total += item.value @ m.joint(item.joint)[1]
    return total


def speed(at, joint):
    return at.motion.joint(joint)[1][0]


POWERS = {
    "damper": lambda at, x: -x["force"] * x["rate"],
    "torsion": lambda at, x: x["effort"] * speed(at, "shoulder"),
    "buffer": lambda at, x: -x["force"] * x["rate"],
    "stop": lambda at, x: -x["force"] * x["rate"],
    "limit": lambda at, x: x["effort"] * speed(at, "elbow"),
    "tyre": lambda at, x: -x["normal"] * x["rate"],
    "bar": lambda at, x: -x["force"] * x["rate"],
    "torsion bar": lambda at, x: -x["torque"] * x["rate"],
    "gust": lambda at, x: x["force"] @ at.motion.point("rider", np.array([0.1, 0, 0]))[1],
    "twist": lambda at, x: (
        x["torque"] @ (at.motion.angular_velocity("rider") - at.motion.angular_velocity("arm"))
    ),
    "motor": lambda at, x: x["effort"] * speed(at, "elbow"),
    "rub": lambda at, x: x["viscous"] * speed(at, "shoulder"),
}


def elastic_power(at, x, name):
    rate = at.mech.forces[name].deformation(at.motion)[1]
    if name == "bushing":
        return x["moment"] @ rate[:3] + x["force"] @ rate[3:]
    return sum(x[f"force_{i + 1}"] * rate[i] for i in range(3))


def test_measured_forces_do_the_work_of_the_loads(rig):
    for name, expected in rig.expected.items():
        assert expected != 0.0, f"{name} does nothing here"
        assert float(expected) == pytest.approx(float(rig.powers[name]), rel=1e-9), name


def test_a_tyres_forces_are_those_on_the_wheel(rig):
    x = rig.values["wheel"]
    assert x["normal"] == pytest.approx(float(rig.wheel[2])) and x["normal"] > 0.0
    horizontal = np.hypot(x["longitudinal"], x["lateral"])
    assert horizontal == pytest.approx(np.hypot(*rig.wheel[:2]), rel=1e-9)
    assert x["lateral"] * x["slip_angle"] > 0.0, "a positive slip angle pushes left"


def test_parts_add_up_and_energies_are_those_of_the_elements(rig):
    for name, whole, parts in (
        ("damper", "force", ("spring", "damper")),
        ("torsion", "effort", ("spring", "damper")),
        ("rub", "effort", ("dry", "viscous")),
    ):
        x = rig.values[name]
        assert x[whole] == pytest.approx(float(sum(x[p] for p in parts))), name
    assert rig.values["rub"]["effort"] == pytest.approx(float(rig.friction))
    total = sum(float(x["energy"]) for x in rig.values.values() if "energy" in x)
    assert total == pytest.approx(float(rig.potential), rel=1e-9)


def test_every_built_in_element_names_its_forces():
    silent = [n for n, t in FORCE_TYPES.items() if t.measures is ForceElement.measures]
    assert not silent


def test_a_users_element_shows_its_resultants():
    mech = mbd.zoo.simple_pendulum().replace(forces={"wind": Wind("bob")})
    x = element_measures(mech, mbd.neutral(mech))["wind"]
    assert x["force_on_bob"].value.tolist() == [0.0, 0.0, 0.0]
    couple = np.cross([0.3, 0.0, 0.0], [-1.0, -2.0, -3.0])
    np.testing.assert_allclose(x["moment_on_bob"].value, couple, rtol=0, atol=1e-12)
    assert x["moment_on_bob"].unit == "N m"


def test_units_of_a_joint_are_those_of_its_coordinate():
    slider = mbd.zoo.slider_crank()
    for joint, unit in (("O", "N m"), ("T", "N")):
        mech = slider.replace(forces={"it": mbd.TorsionSpring(joint, 1.0)})
        found = jax.eval_shape(lambda m=mech: Snapshot(m, jnp.zeros(3)).measures("it"))
        assert found["effort"].unit == unit
