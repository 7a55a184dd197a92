"""Exudyn on Andrews' squeezer, with constraints, and on the pendulum, in its one angle.

The squeezer's seven bodies have three coordinates each in the plane; its ten hinges are algebraic
constraints. The pendulum is a `KinematicTree` of one joint, for which Exudyn has explicit methods.
Nothing is written to files or printed; only the solver's call is timed.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

import jaxmbd as mbd
from integration_cases.timing import Cost, once

try:
    with contextlib.redirect_stdout(io.StringIO()):
        import exudyn
        from exudyn import itemInterface as items
except ImportError:
    exudyn: Any = None

# Of each body, the angles of the test set that its turn is the sum of.
TURNS = {
    "K1": ("beta",), "K2": ("beta", "Theta"), "K3": ("gamma",), "K4": ("Phi", "delta"),
    "K5": ("delta",), "K6": ("Omega", "epsilon"), "K7": ("epsilon",),
}  # fmt: skip


def version() -> str | None:
    return None if exudyn is None else exudyn.__version__


def _settings(t1: float, steps: int, tolerance: float | None = None) -> Any:
    settings = exudyn.SimulationSettings()
    time = settings.timeIntegration
    time.numberOfSteps, time.endTime, time.verboseMode = steps, t1, 0
    settings.solution.file.write = False
    settings.linearSolver.solverType = exudyn.LinearSolverType.EXUdense
    if tolerance is not None:  # of adaptive steps
        time.automaticStepSize = True
        time.relativeTolerance, time.absoluteTolerance = tolerance, 1e-2 * tolerance
        time.initialStepSize, time.minimumStepSize = 1e-3 * t1, 1e-12
    return settings


def squeezer(t1: float, steps: int, index: int) -> tuple[Cost, np.ndarray]:
    """Cost, and turns of the bodies K1 … K7 since the start, by implicit steps of equal length.

    With index 3 by generalised-α, of radius one, which is the most accurate, and constraints in
    position; with index 2 by Newmark's trapezoidal rule and constraints in velocity.
    """
    mech = mbd.zoo.andrews_squeezer()
    container = exudyn.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(items.ObjectGround())
    objects, nodes = {"ground": (ground, np.zeros(3))}, {}
    for name, body in mech.bodies.items():
        com = np.asarray(mech.com(name), float)
        nodes[name] = system.AddNode(
            items.NodeRigidBody2D(referenceCoordinates=[com[0], com[1], 0.0])
        )
        inertia = float(np.asarray(body.inertia)[2, 2])
        made = items.ObjectRigidBody2D(
            mass=float(body.mass), inertia=inertia, nodeNumber=nodes[name]
        )
        objects[name] = system.AddObject(made), com

    def marker(body: str, at: np.ndarray) -> Any:
        number, com = objects[body]
        return system.AddMarker(
            items.MarkerBodyPosition(bodyNumber=number, localPosition=list(at - com))
        )

    for joint in mech.structure.joints:
        at = np.asarray(mech.point(mech.joint(joint.name).at), float)
        pair = [marker(joint.a, at), marker(joint.b, at)]
        system.AddObject(items.ObjectJointRevolute2D(markerNumbers=pair))
    spring, motor = mech.forces["spring"], mech.forces["motor"]
    ends = [marker("ground", mech.points["C"]), marker("K3", mech.points["D"])]
    system.AddObject(
        items.ObjectConnectorSpringDamper(
            markerNumbers=ends,
            stiffness=float(spring.stiffness),
            damping=0.0,
            referenceLength=float(spring.free_length),
        )
    )
    crank = system.AddMarker(items.MarkerBodyRigid(bodyNumber=objects["K1"][0]))
    system.AddLoad(
        items.LoadTorqueVector(markerNumber=crank, loadVector=list(np.asarray(motor.torque, float)))
    )
    system.Assemble()
    settings = _settings(t1, steps)
    if steps > 3000:  # where the default tolerance of Newton's method is the larger error
        newton = settings.timeIntegration.newton
        newton.relativeTolerance, newton.absoluteTolerance = 1e-11, 1e-13
    alpha = settings.timeIntegration.generalizedAlpha
    alpha.spectralRadius = 1.0
    alpha.useNewmark = alpha.useIndex2Constraints = index == 2
    cost, _ = once(lambda: system.SolveDynamic(settings))
    turn = [
        system.GetNodeOutput(n, exudyn.OutputVariableType.Coordinates)[2] for n in nodes.values()
    ]
    return cost, np.array(turn)


def pendulum(t1: float, steps: int, solver: str, tolerance: float | None) -> tuple[Cost, float]:
    """Cost and angle of the pendulum from the level, 1 m, 1 kg, by that explicit method."""
    container = exudyn.SystemContainer()
    system = container.AddSystem()
    node = system.AddNode(
        items.NodeGenericODE2(
            referenceCoordinates=[0.0],
            initialCoordinates=[0.0],
            initialCoordinates_t=[0.0],
            numberOfODE2Coordinates=1,
        )
    )
    inertia = np.zeros((3, 3))
    system.AddObject(
        items.ObjectKinematicTree(
            nodeNumber=node,
            jointTypes=[exudyn.JointType.RevoluteZ],
            linkParents=[-1],
            jointTransformations=exudyn.Matrix3DList([np.eye(3)]),
            jointOffsets=exudyn.Vector3DList([np.zeros(3)]),
            linkInertiasCOM=exudyn.Matrix3DList([inertia]),
            linkCOMs=exudyn.Vector3DList([np.array([-1.0, 0.0, 0.0])]),
            linkMasses=[1.0],
            gravity=[0.0, -9.81, 0.0],
        )
    )
    system.Assemble()
    settings = _settings(t1, steps, tolerance)
    kind = getattr(exudyn.DynamicSolverType, solver)
    cost, _ = once(lambda: system.SolveDynamic(settings, solverType=kind))
    angle = system.GetNodeOutput(node, exudyn.OutputVariableType.Coordinates)
    return cost, float(np.ravel(angle)[0])
