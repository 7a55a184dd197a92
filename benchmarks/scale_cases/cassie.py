"""The robot Cassie, its four loops closed by balls, from the package example-robot-data.

Poses of links are those of the SDF file, which draws the robot assembled; an angle of 1.5708 there
is π/2, so that the axes of a plantar rod's loop are parallel. The pelvis floats, without springs
and dampers. The loops are cut at the balls that end the achilles and the plantar rods. The plantar
rods' loops are planar, so that one row of each of their balls is redundant.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import jax
import numpy as np

import jaxmbd as mbd

PACKAGE = "example-robot-data"
FILE = "cmeel.prefix/share/example-robot-data/robots/cassie_description/robots/cassie_v2.sdf"
LOOPS = ("achilles-spring-joint", "plantar-foot-joint")


class Pose(NamedTuple):
    """A frame in the world: its axes (3, 3) as columns, its origin (3,) [m]."""

    turn: np.ndarray
    origin: np.ndarray

    def of(self, text: str | None) -> Pose:
        """The frame with the pose "x y z roll pitch yaw" in this one."""
        x = np.array((text or "0 0 0 0 0 0").split(), float)
        right = np.abs(np.abs(x) - 0.5 * np.pi) < 1e-5
        x[right] = np.copysign(0.5 * np.pi, x[right])
        (cr, cp, cy), (sr, sp, sy) = np.cos(x[3:]), np.sin(x[3:])
        turn = np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
        return Pose(self.turn @ turn, self.origin + self.turn @ x[:3])


WORLD = Pose(np.eye(3), np.zeros(3))


def file() -> Path | None:
    """The SDF file, if the package is installed."""
    try:
        return Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError:
        return None


def mechanism(path: Path) -> mbd.Mechanism:
    """The robot, standing free, its loops cut."""
    model: Any = ElementTree.parse(path).getroot().find("model")
    poses = {link.get("name"): WORLD.of(link.findtext("pose")) for link in model.findall("link")}
    bodies = {link.get("name"): _body(link, poses[link.get("name")]) for link in model.iter("link")}
    joints: dict[str, Any] = {"float": mbd.Free("ground", "pelvis")}
    points, cut = {}, []
    for joint in model.findall("joint"):
        name, parent, child = joint.get("name"), joint.findtext("parent"), joint.findtext("child")
        frame = poses[child].of(joint.findtext("pose"))
        points[name] = frame.origin
        if name.endswith(LOOPS):
            cut.append(name)
        if name.endswith(LOOPS) or joint.get("type") == "ball":
            joints[name] = mbd.Spherical(child, parent, at=name)
        else:
            axis = frame.turn @ np.array(joint.findtext("axis/xyz").split(), float)
            joints[name] = mbd.Revolute(parent, child, at=name, axis=axis)
    return mbd.Mechanism(bodies, joints, points=points, cut=tuple(cut))


def _body(link: Any, pose: Pose) -> mbd.Body:
    inertial = link.find("inertial")
    frame = pose.of(inertial.findtext("pose"))
    values = {e.tag: float(e.text) for e in inertial.find("inertia")}
    inertia = np.array([[values["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
    inertia = frame.turn @ inertia @ frame.turn.T
    return mbd.Body(float(inertial.findtext("mass")), com=frame.origin, inertia=inertia)


def standing(mech: mbd.Mechanism) -> np.ndarray:
    """Assembled coordinates, the feet turned from the drawn dead centre of their loops."""
    top, q = mbd.topology(mech), np.array(mbd.neutral(mech))
    turns = {"foot-op": -1.75, "tarsus-crank-joint": -1.75, "crank-rod-joint": 1.75}
    for side in ("left", "right"):
        for joint, angle in turns.items():
            q[top.layout[f"{side}-{joint}"].q] = angle
    known = {f"{side}-foot-op": turns["foot-op"] for side in ("left", "right")}
    return np.asarray(mbd.assemble(mech, known=known, guess=q).q)


def weighed(mech: mbd.Mechanism, batch: int, seed: int = 1) -> mbd.Mechanism:
    """A batch of robots with masses and inertias of their own, and the same hardpoints."""
    rng = np.random.default_rng(seed)
    whole = jax.tree_util.tree_map(lambda x: np.tile(x, (batch,) + (1,) * np.ndim(x)), mech)
    for name, body in whole.bodies.items():
        mass, inertia = 1.0 + 0.03 * rng.uniform(-1.0, 1.0, (2, batch))
        com = body.com + 1e-3 * rng.normal(size=body.com.shape)
        inertia = body.inertia * inertia[:, None, None]
        whole.bodies[name] = mbd.Body(body.mass * mass, com=com, inertia=inertia)
    return whole


def speeds(mech: mbd.Mechanism, q: np.ndarray, batch: int, seed: int = 3) -> np.ndarray:
    """Random speeds (batch, nv) on the constraints."""
    rows = np.asarray(mbd.constraint_jacobian(mech, q))
    v = np.random.default_rng(seed).normal(size=(batch, rows.shape[1]))
    return v - v @ (np.linalg.pinv(rows, rcond=1e-9) @ rows).T
