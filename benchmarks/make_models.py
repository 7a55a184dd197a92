"""Write the models in tests/data/models that are not files of others.

    python benchmarks/make_models.py TARGET

`cassie.xml` has the numbers of the SDF file of the package example-robot-data (extra `bench`);
`delta.xml` and `stewart.xml` are the zoo's parallel robots, with the zoo's numbers, written as a
MuJoCo user would: a tree of hinges, slides and balls, closed by `connect`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import _script

_script.start()

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from scale_cases import cassie as sdf  # noqa: E402

import jaxmbd as mbd  # noqa: E402

NOTICE = """
  Numbers of Agility Robotics' robot Cassie, from its SDF file, written as MJCF for these tests.
  The file's own notice:
{0}
"""
OURS = """
  {0}, with the numbers of jaxmbd's zoo.
"""


def text(*numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in np.concatenate([np.ravel(x) for x in numbers]))


def quaternion(turn: np.ndarray) -> np.ndarray:
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, turn.ravel())
    return out


def document(name: str, notice: str) -> tuple[Any, Any, Any]:
    """A model's root, its world and its equalities."""
    root = ElementTree.Element("mujoco", model=name)
    root.append(ElementTree.Comment(notice))
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    world = ElementTree.SubElement(root, "worldbody")
    return root, world, ElementTree.SubElement(root, "equality")


def add(parent: Any, tag: str, **attributes: str) -> Any:
    return ElementTree.SubElement(parent, tag, {k.strip("_"): v for k, v in attributes.items()})


def cassie_model() -> Any:
    """Cassie: rods on balls, closed by a `connect` at each end of a loop; leaf springs, dampers."""
    path = sdf.file()
    if path is None:
        raise SystemExit("install example-robot-data: pip install jaxmbd[bench]")
    model: Any = ElementTree.parse(path).getroot().find("model")
    links = {link.get("name"): link for link in model.findall("link")}
    poses = {name: sdf.WORLD.of(link.findtext("pose")) for name, link in links.items()}
    own = path.read_text(encoding="utf-8").split("-->")[0].partition("<!--")[2]
    root, world, equality = document("cassie", NOTICE.format(own.strip(" *\n")))
    made = {"pelvis": add(world, "body", name="pelvis", pos=text(poses["pelvis"].origin))}
    add(made["pelvis"], "freejoint", name="float")
    waiting = [j for j in model.findall("joint") if not j.get("name").endswith(sdf.LOOPS)]
    while waiting:
        joint = waiting.pop(0)
        ends = joint.findtext("parent"), joint.findtext("child")
        above, below = ends if ends[0] in made else ends[::-1]
        if above not in made:
            waiting.append(joint)
            continue
        frame, outer = poses[below], poses[above]
        made[below] = add(
            made[above],
            "body",
            name=below,
            pos=text(outer.turn.T @ (frame.origin - outer.origin)),
            quat=text(quaternion(outer.turn.T @ frame.turn)),
        )
        at = poses[ends[1]].of(joint.findtext("pose"))
        sdf_joint(made[below], joint, frame, at)
    for name, link in links.items():
        inertial(made[name], link)
    for joint in model.findall("joint"):
        if joint.get("name").endswith(sdf.LOOPS):
            child, parent = joint.findtext("child"), joint.findtext("parent")
            at, own = poses[child].of(joint.findtext("pose")), poses[child]
            anchor = own.turn.T @ (at.origin - own.origin)
            names = {"name": joint.get("name"), "body1": child, "body2": parent}
            add(equality, "connect", **names, anchor=text(anchor))
    return root


def sdf_joint(body: Any, joint: Any, frame: Any, at: Any) -> None:
    """A joint of the SDF file in a body with the axes `frame`."""
    attributes = {"name": joint.get("name"), "pos": text(frame.turn.T @ (at.origin - frame.origin))}
    dynamics = joint.find("axis/dynamics")
    for key, tag in (("damping", "damping"), ("stiffness", "spring_stiffness")):
        value = None if dynamics is None else dynamics.findtext(tag)
        if value is not None and float(value):
            attributes[key] = text(float(value))
    if joint.get("type") == "ball":
        add(body, "joint", type="ball", **attributes)
        return
    axis = at.turn @ np.array(joint.findtext("axis/xyz").split(), float)
    limit = joint.find("axis/limit")
    if limit is not None:
        attributes["range"] = f"{limit.findtext('lower')} {limit.findtext('upper')}"
    add(body, "joint", axis=text(frame.turn.T @ axis), **attributes)


def inertial(body: Any, link: Any) -> None:
    given = link.find("inertial")
    frame = sdf.WORLD.of(given.findtext("pose"))
    values = {e.tag: float(e.text) for e in given.find("inertia")}
    own = np.array([[values["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
    own = frame.turn @ own @ frame.turn.T
    full = own[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    mass = {"mass": given.findtext("mass"), "pos": text(frame.origin)}
    body.insert(0, ElementTree.Element("inertial", **mass, fullinertia=text(full)))


def delta_model() -> Any:
    """The delta robot: three motors, six rods between balls and `connect`, a free platform."""
    mech = mbd.zoo.delta_robot()
    at = {name: np.asarray(p) for name, p in mech.points.items()}
    root, world, equality = document("delta", OURS.format("Clavel's delta robot"))
    platform = np.asarray(mech.bodies["platform"].com)
    body = free_body(world, mech, "platform")
    for i in (1, 2, 3):
        shoulder = at[f"shoulder_{i}"]
        arm = add(world, "body", name=f"arm_{i}", pos=text(shoulder))
        axis = np.asarray(mech.joints[f"shoulder_{i}"].axis)
        add(arm, "joint", name=f"shoulder_{i}", axis=text(axis), armature="0.02", damping="0.1")
        own_inertia(arm, mech.bodies[f"arm_{i}"], shoulder)
        for side in ("left", "right"):
            elbow, wrist = at[f"elbow_{side}_{i}"], at[f"wrist_{side}_{i}"]
            rod = add(arm, "body", name=f"{side}_{i}", pos=text(elbow - shoulder))
            add(rod, "joint", name=f"elbow_{side}_{i}", type="ball")
            add(rod, "geom", type="capsule", size="0.005", fromto=text(0 * elbow, wrist - elbow))
            ends = {"body1": f"{side}_{i}", "body2": "platform"}
            add(equality, "connect", name=f"wrist_{side}_{i}", **ends, anchor=text(wrist - elbow))
    add(body, "site", name="tool", pos=text(0 * platform))
    motors = add(root, "actuator")
    for i in (1, 2, 3):
        add(motors, "position", name=f"servo_{i}", joint=f"shoulder_{i}", kp="200", kv="5")
    return root


def free_body(world: Any, mech: mbd.Mechanism, name: str) -> Any:
    com = np.asarray(mech.bodies[name].com)
    body = add(world, "body", name=name, pos=text(com))
    add(body, "freejoint", name=f"{name}_free")
    own_inertia(body, mech.bodies[name], com)
    return body


def own_inertia(element: Any, body: mbd.Body, origin: np.ndarray) -> None:
    """The inertia of a body whose axes are the global ones; none is less than MuJoCo takes."""
    own = np.asarray(body.inertia) + 1e-7 * np.eye(3)
    full = own[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    place = text(np.asarray(body.com) - origin)
    add(element, "inertial", mass=text(body.mass), pos=place, fullinertia=text(full))


def stewart_model() -> Any:
    """Six legs, each of two hinges and a slide, closed by `connect` under a free platform."""
    mech = mbd.zoo.stewart_gough()
    at = {name: np.asarray(p) for name, p in mech.points.items()}
    root, world, equality = document("stewart", OURS.format("A Stewart-Gough platform"))
    free_body(world, mech, "platform")
    for i in range(1, 7):
        base, top, universal = at[f"base_{i}"], at[f"platform_{i}"], mech.joints[f"U_{i}"]
        cylinder = add(world, "body", name=f"cylinder_{i}", pos=text(base))
        for half in ("a", "b"):
            axis = np.asarray(getattr(universal, f"axis_{half}"))
            add(cylinder, "joint", name=f"U_{i}{half}", axis=text(axis), damping="0.5")
        own_inertia(cylinder, mech.bodies[f"cylinder_{i}"], base)
        piston = add(cylinder, "body", name=f"piston_{i}")
        along = (top - base) / np.linalg.norm(top - base)
        add(piston, "joint", name=f"leg_{i}", type="slide", axis=text(along), range="-0.3 0.3")
        own_inertia(piston, mech.bodies[f"piston_{i}"], base)
        ends = {"body1": f"piston_{i}", "body2": "platform"}
        add(equality, "connect", name=f"S_{i}", **ends, anchor=text(top - base))
    motors = add(root, "actuator")
    for i in range(1, 7):
        add(motors, "motor", name=f"force_{i}", joint=f"leg_{i}", gear="100")
    return root


def with_standing(root: Any) -> None:
    """Add a keyframe of Cassie's, assembled with its feet turned from their dead centre."""
    model = mbd.io.load_mjcf(ElementTree.tostring(root, encoding="unicode"))
    q = sdf.standing(model.mechanism)
    frames = add(root, "keyframe")
    add(frames, "key", name="standing", qpos=text(model.coordinates.qpos(q)))


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("target", type=Path)
    target = options.parse_args().target
    target.mkdir(parents=True, exist_ok=True)
    made = {"cassie": cassie_model(), "delta": delta_model(), "stewart": stewart_model()}
    with_standing(made["cassie"])
    for name, root in made.items():
        ElementTree.indent(root)
        xml = ElementTree.tostring(root, encoding="unicode") + "\n"
        (target / f"{name}.xml").write_text(xml, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
