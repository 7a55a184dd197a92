"""Other engines on the cases that they support (`Case.peers`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from _script import BATCH

import jaxmbd as mbd
from throughput_cases import peer_exudyn, peer_mujoco, peer_pinocchio
from throughput_cases.case import Case
from throughput_cases.columns import EXUDYN, MUJOCO, PINOCCHIO, PINOCCHIO_ONE
from throughput_cases.report import Results, Row
from throughput_cases.tree import sample, tree
from throughput_cases.work import ROLLOUT, difference

SAMPLES = 8  # designs whose accelerations are compared
RUNS = 16  # designs of MuJoCo's rollouts


class Peer:
    """Timing of another engine's forward dynamics, with its difference from jaxmbd's."""

    def __init__(self, timed: Any, batch: int, gap: float | None, note: str):
        self._timed, self._batch, self._gap, self._note = timed, batch, gap, note

    def round(self, seconds: float) -> float:
        return self._timed.round(seconds)

    def facts(self) -> dict[str, Any]:
        overhead = self._timed.overhead
        return dict(batch=self._batch, difference=self._gap, overhead=overhead, note=self._note)


def forwards(case: Case, truth: Any) -> dict[str, Peer]:
    """The installed engines; `truth` is the result of `jax.vmap` for the same batch."""
    design, q, v = case.draw(BATCH)
    trees = [tree(case, sample(design, i)) for i in range(BATCH)]
    few = list(zip(trees, q, v, strict=True))[:SAMPLES]
    found = {}
    if peer_pinocchio.version():
        gap = _gap([peer_pinocchio.accelerations(*x) for x in few], truth)
        for column, n in ((PINOCCHIO, BATCH), (PINOCCHIO_ONE, 1)):
            timed = peer_pinocchio.Forward(trees[:n], q[:n], v[:n])
            found[column] = Peer(timed, n, gap, "1 thread")
    if peer_mujoco.version():
        gap = _gap([peer_mujoco.accelerations(*x, case.dt) for x in few], truth)
        timed = peer_mujoco.Forward(trees[0], q[0], v[0], case.dt)
        note = "1 thread" + (", soft loops" if trees[0].balls else "")
        found[MUJOCO] = Peer(timed, 1, gap, note)
    return found


def _gap(own: list[np.ndarray], truth: Any) -> float | None:
    return None if truth is None else difference(np.array(own), truth[0])[0]


def rollouts(case: Case, steps: int, results: Results, truth: Any) -> None:
    """MuJoCo's rollouts of several designs and one run of Exudyn, with their final states.

    `truth` is the result of `jax.vmap`, (q, v) of at least as many samples, or None.
    """
    design, q, v = case.draw(RUNS, rest=True)
    trees = [tree(case, sample(design, i)) for i in range(RUNS)]
    row = Row(case.name, ROLLOUT, "float64", MUJOCO, 1, steps, 0.0, steps)
    if peer_mujoco.version():
        seconds, found = peer_mujoco.rollouts(trees, q, v, case.dt, steps)
        gap, odd = (None, 0) if truth is None else difference(found, truth[0])
        note = "1 thread" + (", soft loops" if trees[0].balls else "")
        results.add(replace(row, seconds=seconds, difference=gap, odd=odd, note=note))
    if not mbd.topology(case.mech).nc:
        return  # random coordinates: Exudyn starts as drawn
    if not peer_exudyn.version():
        results.skip("Exudyn is not installed")
        return
    seconds, place = peer_exudyn.run(trees[0], case.dt, steps)
    gap = None
    if truth is not None:
        own = _last_com(case, sample(design, 0), truth[0][0])
        gap = float(np.linalg.norm(place - own) / np.linalg.norm(own))
    note = "1 thread, one run, second order, redundant coordinates"
    results.add(replace(row, column=EXUDYN, seconds=seconds, difference=gap, note=note))


def _last_com(case: Case, design: Any, q: np.ndarray) -> np.ndarray:
    mech = case.mechanism(design)
    body = mbd.topology(mech).bodies[-1]
    return np.asarray(mbd.point_position(mech, jnp.asarray(q), body, mech.com(body)))
