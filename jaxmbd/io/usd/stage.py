"""A stage of USD: its units, its numbers, where its prims are, and its bodies.

Lengths become metres, masses kilograms, and a stage with y up is turned so that z is: (x, y, z) is
then (x, −z, y). Numbers in single precision are taken as their shortest decimals, which are what
their authors wrote.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from jaxmbd.io.conversion import LeftOutNotes, UniqueNames
from jaxmbd.io.files import is_file
from jaxmbd.model import GROUND, Body
from jaxmbd.plumbing import optional

Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
EARTH = 9.81
MOST_SHEARED = 1e-4


def usd(module: str) -> Any:
    """One of the modules of USD, "Usd", "UsdGeom", "UsdPhysics" or "UsdShade"."""
    optional("pxr", "usd", "reading USD")
    return import_module(f"pxr.{module}")


def open_stage(source: Any) -> Any:
    """The stage of a file, of text, or the one that is given.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no stage, with USD's own message.
    """
    api, name = usd("Usd"), "this text"
    if isinstance(source, api.Stage):
        return source
    try:
        if isinstance(source, str) and source.lstrip().startswith("#usda"):
            layer = usd("Sdf").Layer.CreateAnonymous(".usda")
            layer.ImportFromString(source.lstrip())
            return api.Stage.Open(layer)
        name = os.fspath(source)
        if not is_file(Path(name), "the source, which is no text (that starts with '#usda'),"):
            raise FileNotFoundError(f"there is no file {name!r}")
        return api.Stage.Open(os.path.abspath(name))
    except usd("Tf").ErrorException as error:
        reason = str(error).strip().rpartition(" : ")[2].strip("'").splitlines()[0]
        raise ValueError(f"USD cannot read {name}: {reason[:160]}") from None


def numbers(prim: Any, name: str, default: Any) -> Any:
    """A number or vector of a prim; a quaternion's real part comes first.

    Raises:
        ValueError: it is not a number.
    """
    attribute = prim.GetAttribute(name)
    value = attribute.Get(usd("Usd").TimeCode.EarliestTime()) if attribute else None
    if value is None:
        return np.asarray(default, float)[()]
    if hasattr(value, "GetReal"):
        value = (value.GetReal(), *value.GetImaginary())
    kind = str(attribute.GetTypeName())
    if kind.startswith("float") or kind.endswith(("3f", "quatf")):
        value = [float(str(x)) for x in np.atleast_1d(np.asarray(value, np.float32))]
        value = value if kind != "float" else value[0]
    value = np.asarray(value, float)[()]
    if np.isnan(value).any():
        raise ValueError(f"{prim.GetPath()}: its {name} is {value}; give numbers")
    return value


def choice(prim: Any, name: str, default: Any) -> Any:
    """A flag or a word of a prim."""
    attribute = prim.GetAttribute(name)
    value = attribute.Get(usd("Usd").TimeCode.EarliestTime()) if attribute else None
    return default if value is None else value


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Rotation (3, 3) of a quaternion (4,), scalar first; zeros mean none."""
    return Rotation.from_quat(np.roll(quaternion, -1)).as_matrix() if any(quaternion) else np.eye(3)


class Frame(NamedTuple):
    """Where a prim is: the origin (3,) [m] and the axes (3, 3) of its own frame.

    `linear` (3, 3) takes its coordinates, in the stage's units, to metres, with its scale.
    """

    origin: np.ndarray
    axes: np.ndarray
    linear: np.ndarray


@dataclass(frozen=True)
class Drawn:
    """A stage as it is drawn.

    Attributes:
        stage: USD's `Stage`.
        left: notes of what is left out.
    """

    stage: Any
    left: LeftOutNotes

    @cached_property
    def metre(self) -> float:
        """Metres of the unit of length; a centimetre where the stage does not say."""
        return float(usd("UsdGeom").GetStageMetersPerUnit(self.stage))

    @cached_property
    def kilogram(self) -> float:
        """Kilograms of the unit of mass."""
        return float(usd("UsdPhysics").GetStageKilogramsPerUnit(self.stage))

    @cached_property
    def turn(self) -> np.ndarray:
        """Rotation (3, 3) of the stage's axes to those with z up."""
        return Y_UP if usd("UsdGeom").GetStageUpAxis(self.stage) == "Y" else np.eye(3)

    @cached_property
    def prims(self) -> list[Any]:
        """All that is drawn or acts, with the parts of instances."""
        api = usd("Usd")
        every = api.PrimRange(self.stage.GetPseudoRoot(), api.TraverseInstanceProxies())
        return [prim for prim in every if not prim.IsPseudoRoot()]

    @cached_property
    def _transforms(self) -> Any:
        return usd("UsdGeom").XformCache(usd("Usd").TimeCode.EarliestTime())

    @cached_property
    def bodies(self) -> dict[str, str]:
        """Name of the mechanism's body of each moving rigid body, by its path; or "ground"."""
        found = [p for p in self.prims if p.HasAPI(usd("UsdPhysics").RigidBodyAPI)]
        found = [p for p in found if choice(p, "physics:rigidBodyEnabled", True)]
        out = dict(names_of(found, (GROUND,)))
        for prim in found:
            path = str(prim.GetPath())
            if choice(prim, "physics:kinematicEnabled", False):
                self.left.add("kinematic bodies", "they stay where they are drawn", out[path])
                out[path] = GROUND
        return out

    def owner(self, prim: Any) -> str:
        """The body that a prim is a part of."""
        while prim and str(prim.GetPath()) not in self.bodies:
            prim = prim.GetParent()
        return self.bodies[str(prim.GetPath())] if prim else GROUND

    def transform(self, prim: Any) -> tuple[np.ndarray, np.ndarray]:
        """The origin and `linear` of a prim's `Frame`."""
        matrix = np.array(self._transforms.GetLocalToWorldTransform(prim))
        return self.turn @ matrix[3, :3] * self.metre, self.turn @ matrix[:3, :3].T * self.metre

    def frame(self, prim: Any) -> Frame:
        """Where a prim is.

        Raises:
            ValueError: its transform shears, mirrors or flattens.
        """
        origin, linear = self.transform(prim)
        axes = linear / np.maximum(np.linalg.norm(linear, axis=0), 1e-300)
        if np.abs(axes.T @ axes - np.eye(3)).max() > MOST_SHEARED or np.linalg.det(axes) < 0.0:
            raise ValueError(
                f"{prim.GetPath()}: its transform shears, mirrors or flattens, so that it has no "
                "axes; give bodies and what joints refer to a rotation and a positive scale"
            )
        for _ in range(2):  # Newton's steps to the nearest rotation
            axes = axes @ (1.5 * np.eye(3) - 0.5 * axes.T @ axes)
        return Frame(origin, axes, linear)


def names_of(prims: Iterable[Any], taken: tuple[str, ...] = ()) -> dict[str, str]:
    """A name of each prim by its path: its own, or its path with points where that is another's."""
    own = {str(prim.GetPath()): prim.GetName() for prim in prims}
    count, names = Counter(own.values()), UniqueNames(taken)
    return {
        path: names.unique(name if count[name] == 1 else path[1:].replace("/", "."), "prim")
        for path, name in own.items()
    }


def gravity(drawn: Drawn) -> np.ndarray:
    """Gravity (3,) [m/s²] of the stage's scenes; that of the Earth without one.

    Raises:
        ValueError: scenes differ in it.
    """
    found = {}
    for scene in (p for p in drawn.prims if p.IsA(usd("UsdPhysics").Scene)):
        along = drawn.turn @ numbers(scene, "physics:gravityDirection", np.zeros(3))
        along = along / np.linalg.norm(along) if along.any() else np.array([0.0, 0.0, -1.0])
        size = numbers(scene, "physics:gravityMagnitude", -np.inf)
        found[str(scene.GetPath())] = along * (size * drawn.metre if size >= 0.0 else EARTH)
    values = list(found.values()) or [np.array([0.0, 0.0, -EARTH])]
    if any(not np.array_equal(x, values[0]) for x in values[1:]):
        raise ValueError(f"the scenes {', '.join(found)} differ in gravity; keep one of them")
    return values[0]


def bodies_of(drawn: Drawn) -> dict[str, Body]:
    """The moving bodies by name.

    Raises:
        ValueError: the stage has none, or leaves a mass, a centre or an inertia to its shapes.
    """
    moving = {path: name for path, name in drawn.bodies.items() if name != GROUND}
    prims = {path: drawn.stage.GetPrimAtPath(path) for path in moving}
    if not moving:
        raise ValueError("no prim of this stage is a moving rigid body; apply RigidBodyAPI to one")
    shaped = {drawn.owner(p) for p in drawn.prims if p.HasAPI(usd("UsdPhysics").CollisionAPI)}
    problems = []
    for path, prim in prims.items():
        missing = _missing(prim, moving[path] in shaped)
        if missing:
            problems.append(f"{path} leaves {', '.join(missing)} to its shapes and densities")
    if problems:
        raise ValueError(
            f"{'; '.join(problems)}: give physics:mass, centerOfMass and diagonalInertia by "
            "MassAPI (RigidBodyAPI.ComputeMassProperties computes them)"
        )
    return {moving[path]: _body(drawn, prim) for path, prim in prims.items()}


def _missing(prim: Any, shaped: bool) -> list[str]:
    """What of a body's mass would be computed; without shapes a point mass at its origin stands."""
    missing = [] if numbers(prim, "physics:mass", 0.0) > 0.0 else ["mass"]
    if shaped and not np.isfinite(numbers(prim, "physics:centerOfMass", [-np.inf] * 3)).all():
        missing.append("centerOfMass")
    if shaped and not numbers(prim, "physics:diagonalInertia", np.zeros(3)).any():
        missing.append("diagonalInertia")
    return missing


def _body(drawn: Drawn, prim: Any) -> Body:
    frame = drawn.frame(prim)
    centre = numbers(prim, "physics:centerOfMass", np.zeros(3))
    centre = centre if np.isfinite(centre).all() else np.zeros(3)
    axes = frame.axes @ rotation(numbers(prim, "physics:principalAxes", (1.0, 0.0, 0.0, 0.0)))
    diagonal = numbers(prim, "physics:diagonalInertia", np.zeros(3))
    inertia = (axes * (diagonal * drawn.kilogram * drawn.metre**2)) @ axes.T
    mass = float(numbers(prim, "physics:mass", 0.0)) * drawn.kilogram
    return Body(mass, frame.origin + frame.linear @ centre, 0.5 * (inertia + inertia.T))
