"""Exudyn on the same mechanism: one run, in redundant coordinates with constraints.

Rigid bodies with Euler parameters, joints as algebraic constraints, its generalised-α solver of
index 2 (second order; jaxmbd's runs are RK4, fourth order), with its default reuse of the Jacobian
between steps. The final position of the last link's centre of mass is compared.
"""

from __future__ import annotations

import contextlib
import io
import time
from importlib import metadata
from typing import Any

import numpy as np

from throughput_cases.tree import Tree

try:
    with contextlib.redirect_stdout(io.StringIO()):
        import exudyn
        from exudyn.utilities import RigidBodyInertia
except ImportError:
    exudyn: Any = None


def version() -> str | None:
    return None if exudyn is None else metadata.version("exudyn")


def _assembled(tree: Tree) -> tuple[Any, Any, list[Any]]:
    container = exudyn.SystemContainer()
    system = container.AddSystem()
    ground = system.CreateGround()
    bodies = []
    for link in tree.links:
        inertia = RigidBodyInertia(mass=link.mass, com=np.zeros(3), inertiaTensor=link.inertia)
        bodies.append(
            system.CreateRigidBody(
                inertia=inertia, referencePosition=list(link.com), gravity=list(tree.gravity)
            )
        )
    for link, body in zip(tree.links, bodies, strict=True):
        pair = [ground if link.parent < 0 else bodies[link.parent], body]
        if link.kind == "revolute":
            system.CreateRevoluteJoint(
                bodyNumbers=pair, position=list(link.at), axis=list(link.axis), show=False
            )
        else:
            system.CreateSphericalJoint(bodyNumbers=pair, position=list(link.at), show=False)
    for ball in tree.balls:
        system.CreateSphericalJoint(
            bodyNumbers=[bodies[ball.a], bodies[ball.b]], position=list(ball.at), show=False
        )
    system.Assemble()
    return container, system, bodies


def run(tree: Tree, dt: float, steps: int) -> tuple[float, np.ndarray]:
    """Seconds of one rollout from rest as drawn, and the last link's final centre of mass."""
    container, system, bodies = _assembled(tree)
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = steps * dt
    settings.timeIntegration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.linearSolverType = exudyn.LinearSolverType.EigenSparse
    if len(tree.links) < 12:
        settings.linearSolverType = exudyn.LinearSolverType.EXUdense
    start = time.perf_counter()
    system.SolveDynamic(settings)
    seconds = time.perf_counter() - start
    place = exudyn.OutputVariableType.Position
    found = np.array(system.GetObjectOutputBody(bodies[-1], place, np.zeros(3)))
    del system, container
    return seconds, found
