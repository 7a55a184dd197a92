"""MuJoCo on the same mechanism: `mj_forward` and `mujoco.rollout`, one thread.

Its loops are closed by `connect` equalities, which act like stiff springs, so that its
accelerations differ from those of exact loops; the difference is printed. Contacts are switched
off. The overhead of a Python call is that of `mj_forward` on a model of one resting body.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from throughput_cases.peer_pinocchio import loop
from throughput_cases.tree import Tree

try:
    import mujoco
    import mujoco.rollout
except ImportError:
    mujoco: Any = None


def version() -> str | None:
    return None if mujoco is None else mujoco.__version__


def _text(x: Any) -> str:
    return " ".join(repr(float(t)) for t in np.ravel(x))


def xml(tree: Tree, dt: float) -> str:
    """The mechanism in MuJoCo's own format; bodies' axes are global as drawn."""
    children: dict[int, list[int]] = {}
    for i, link in enumerate(tree.links):
        children.setdefault(link.parent, []).append(i)

    def body(i: int, origin: np.ndarray) -> str:
        link = tree.links[i]
        inertia = link.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        joint = (
            f'<joint type="hinge" axis="{_text(link.axis)}"/>'
            if link.kind == "revolute"
            else '<joint type="ball"/>'
        )
        return (
            f'<body name="b{i}" pos="{_text(link.at - origin)}">{joint}'
            f'<inertial pos="{_text(link.com - link.at)}" mass="{link.mass!r}" '
            f'fullinertia="{_text(inertia)}"/>'
            + "".join(body(k, link.at) for k in children.get(i, []))
            + "</body>"
        )

    balls = "".join(
        f'<connect body1="b{c.a}" body2="b{c.b}" anchor="{_text(c.at - tree.links[c.a].at)}" '
        f'solref="{2 * dt!r} 1"/>'
        for c in tree.balls
    )
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="{dt!r}" integrator="RK4" '
        f'gravity="{_text(tree.gravity)}"><flag contact="disable"/></option><worldbody>'
        + "".join(body(i, np.zeros(3)) for i in children[-1])
        + f"</worldbody><equality>{balls}</equality></mujoco>"
    )


def _state(m: Any, q: np.ndarray, v: np.ndarray) -> Any:
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(m, data)
    return data


def accelerations(tree: Tree, q: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    """Its v̇ (nv,) of one sample, with soft loops."""
    return np.array(_state(mujoco.MjModel.from_xml_string(xml(tree, dt)), q, v).qacc)


class Forward:
    """As `peer_pinocchio.Forward`."""

    def __init__(self, tree: Tree, q: np.ndarray, v: np.ndarray, dt: float):
        m = mujoco.MjModel.from_xml_string(xml(tree, dt))
        data, run = _state(m, q, v), mujoco.mj_forward
        self._work = lambda: run(m, data)
        idle = mujoco.MjModel.from_xml_string("<mujoco/>")
        still = mujoco.MjData(idle)
        self._empty = lambda: run(idle, still)
        self.overhead = np.inf
        self.seconds = np.inf

    def round(self, seconds: float) -> float:
        """Another `seconds` of repeats; the best time of a call so far, minus the overhead."""
        self.overhead = min(self.overhead, loop([self._empty], 0.2 * seconds))
        self.seconds = min(self.seconds, loop([self._work], 0.8 * seconds))
        return self.seconds - self.overhead


def rollouts(
    trees: list[Tree], q: np.ndarray, v: np.ndarray, dt: float, steps: int
) -> tuple[float, np.ndarray]:
    """Seconds for one sample's rollout by RK4, every sample its own model, and the final q."""
    models = [mujoco.MjModel.from_xml_string(xml(t, dt)) for t in trees]
    data = mujoco.MjData(models[0])
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros((len(models), mujoco.mj_stateSize(models[0], spec)))
    for row, m, q_i, v_i in zip(start, models, q, v, strict=True):
        mujoco.mj_getState(m, _state(m, q_i, v_i), row, spec)
    mujoco.rollout.rollout(models, data, start, nstep=2)
    begin = time.perf_counter()
    states, _ = mujoco.rollout.rollout(models, data, start, nstep=steps)
    seconds = (time.perf_counter() - begin) / len(models)
    return seconds, np.array(states[:, -1, 1 : 1 + q.shape[1]])
