"""Forward dynamics by Pinocchio: `constraintDynamics`, one thread, called from Python.

The overhead of a call from Python is measured with the same binding and the same eight kinds of
arguments on a model without joints and constraints, and subtracted. `ProximalSettings(1e-12, 0,
1)` (`EXACT`), one iteration without regularisation, is the fastest, and exact if no row is
redundant. Joints turn about the z axes of their own frames, Pinocchio's fastest kind. It is timed
twice: over jaxmbd's batch of designs, each with a model made in advance and all with one workspace;
and with one design, which stays in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from throughput_cases.tree import Tree, scalar_last

try:
    import pinocchio as pin
except ImportError:
    pin: Any = None

Call = Callable[[], Any]


EXACT = (1e-12, 0.0, 1)
"""Accuracy, regularisation and iterations of the fastest solution."""
_KINDS: dict[str, Any] = {}
if pin is not None:
    _KINDS = {
        "revolute": pin.JointModelRZ,
        "spherical": pin.JointModelSpherical,
        "free": pin.JointModelFreeFlyer,
    }


def version() -> str | None:
    return None if pin is None else pin.__version__


def _frame(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is `axis`."""
    x = np.eye(3)[np.argmin(np.abs(axis))]
    x = x - (x @ axis) * axis
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)


def model(tree: Tree) -> tuple[Any, Any]:
    """A Pinocchio model with joint frames at the drawn points, z along the joint axes."""
    m = pin.Model()
    m.gravity = pin.Motion(tree.gravity, np.zeros(3))
    drawn = [pin.SE3.Identity()]
    for link in tree.links:
        turn = _frame(link.axis) if link.kind == "revolute" else np.eye(3)
        here = pin.SE3(turn, link.at)
        kind = _KINDS[link.kind]()
        parent = link.parent + 1
        index = m.addJoint(parent, kind, drawn[parent].actInv(here), link.name)
        com = turn.T @ (link.com - link.at)
        inertia = pin.Inertia(link.mass, com, turn.T @ link.inertia @ turn)
        m.appendBodyToJoint(index, inertia, pin.SE3.Identity())
        drawn.append(here)
    balls = pin.StdVec_RigidConstraintModel()
    for ball in tree.balls:
        ends = []
        for i in (ball.a + 1, ball.b + 1):
            ends += [i, drawn[i].actInv(pin.SE3(np.eye(3), ball.at))]
        balls.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, m, *ends, pin.LOCAL))
    return m, balls


def _workspace(m: Any, balls: Any) -> tuple[Any, Any]:
    """Data that every model of this structure can use."""
    data, states = m.createData(), pin.StdVec_RigidConstraintData()
    for ball in balls:
        states.append(ball.createData())
    pin.initConstraintDynamics(m, data, balls, states)
    return data, states


def _calls(
    designs: list[tuple[Any, Any]], q: list[np.ndarray], v: np.ndarray, proximal: Any = EXACT
) -> list[Call]:
    """The calls for all designs, (model, balls) each, including the overhead of Python."""
    data, states = _workspace(*designs[0])
    settings, run = pin.ProximalSettings(*proximal), pin.constraintDynamics
    tau = np.zeros(designs[0][0].nv)
    return [
        partial(run, m, data, x, np.array(u), tau, balls, states, settings)
        for (m, balls), x, u in zip(designs, q, v, strict=True)
    ]


def accelerations(tree: Tree, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v̇ (nv,) of one sample; with ball joints only in their drawn position."""
    return np.array(_calls([model(tree)], [scalar_last(q, tree.links)], v[None])[0]())


class Batch:
    """Timing of some calls: `round()` gives their seconds minus those of as many empty ones."""

    def __init__(self, work: list[Call], empty: list[Call]):
        self._work, self._empty = work, empty
        self.overhead, self.seconds = np.inf, np.inf

    def result(self) -> np.ndarray:
        """What the calls return, stacked."""
        return np.array([np.array(call()) for call in self._work])

    def round(self, seconds: float) -> float:
        """Another `seconds` of repeats; the best time so far, minus the overhead."""
        self.overhead = min(self.overhead, loop(self._empty, 0.2 * seconds))
        self.seconds = min(self.seconds, loop(self._work, 0.8 * seconds))
        return len(self._work) * (self.seconds - self.overhead)


class Forward(Batch):
    """Timing of `constraintDynamics` of a batch of designs."""

    def __init__(self, trees: list[Tree], q: np.ndarray, v: np.ndarray, proximal: Any = EXACT):
        scalars = [scalar_last(x, tree.links) for x, tree in zip(q, trees, strict=True)]
        work = _calls([model(tree) for tree in trees], scalars, v, proximal)
        nothing = (pin.Model(), pin.StdVec_RigidConstraintModel())
        none = np.zeros((len(trees), 0))
        super().__init__(work, _calls([nothing] * len(trees), list(none), none))


def loop(calls: list[Call], seconds: float, runs: int = 500) -> float:
    """Best mean time of a call [s] over loops of about `runs` calls or more, for `seconds`."""
    calls = calls * max(1, runs // len(calls))
    best, end = np.inf, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        for call in calls:
            call()
        stop = time.perf_counter()
        best = min(best, (stop - start) / len(calls))
        if stop > end:
            return best
