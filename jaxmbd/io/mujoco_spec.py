"""Compile a model with MuJoCo, also where the meshes and textures that it names are missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io.imported import LeftOut
from jaxmbd.numerics.extras import optional

Source = str | os.PathLike[str]


class OwnInertia(NamedTuple):
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) about it, in the body's axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


NOTHING = OwnInertia(0.0, np.zeros(3), np.zeros((3, 3)))


class Compiled(NamedTuple):
    """A compiled model.

    Attributes:
        model: MuJoCo's `MjModel`, with all defaults resolved and all inertias computed.
        inertias: those of the bodies, by name, that have a placeholder in the model.
        left_out: what was dropped to compile it.
    """

    model: Any
    inertias: dict[str, OwnInertia]
    left_out: list[LeftOut]


def read_spec(source: Source) -> Any:
    """MuJoCo's `MjSpec` of a file, or of text that starts with ``<``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no model, with MuJoCo's own message.
    """
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    text = isinstance(source, str) and source.lstrip().startswith("<")
    if not text and not Path(source).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(source)!r}")
    try:
        if text:
            return mujoco.MjSpec.from_string(source)
        return mujoco.MjSpec.from_file(os.fspath(source))
    except ValueError as error:
        name = "this text" if text else os.fspath(source)
        raise ValueError(f"MuJoCo cannot read {name}: {error}") from None


def given_inertias(spec: Any) -> tuple[dict[str, OwnInertia], list[LeftOut]]:
    """The inertias of all links of a URDF, which get placeholders in the spec.

    MuJoCo refuses links without mass, and principal inertias of which one exceeds the sum of the
    others; mechanisms take both. What both refuse is a negative one, which becomes zero.
    """
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    found: dict[str, OwnInertia] = {}
    negative = []
    for body in list(spec.bodies)[1:]:
        found[body.name] = NOTHING
        if body.explicitinertial:
            turn, (xx, yy, zz, xy, xz, yz) = np.zeros(9), body.fullinertia
            mujoco.mju_quat2Mat(turn, body.iquat)
            axes, own = turn.reshape(3, 3), np.diag(body.inertia)
            if not np.isnan(xx):
                own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            values, principal = np.linalg.eigh(own)
            if values[0] < 0.0:
                negative.append(body.name)
                own = (principal * np.maximum(values, 0.0)) @ principal.T
            com = np.where(np.isnan(body.ipos), 0.0, body.ipos)
            found[body.name] = OwnInertia(float(body.mass), com, axes @ own @ axes.T)
        _placeholder(body)
    text = "zero in their place"
    return found, [LeftOut("negative inertias", tuple(negative), text)] if negative else []


def _placeholder(body: Any) -> None:
    body.explicitinertial, body.mass = True, 1.0
    body.ipos, body.inertia = np.zeros(3), np.ones(3)
    body.iquat, body.fullinertia = np.array([1.0, 0, 0, 0]), np.array([np.nan, 0, 0, 0, 0, 0])


def compiled(spec: Any) -> Compiled:
    """Compile a spec; where files are missing, without the shapes and pictures that need them.

    Raises:
        ValueError: MuJoCo refuses the model, with its own message.
    """
    try:
        return Compiled(spec.copy().compile(), {}, [])
    except ValueError as error:
        first = error
    spec = spec.copy()
    dropped, bare = _drop_missing(spec)
    try:
        model = spec.compile()
    except ValueError as error:
        again = "" if str(error) == str(first) else f"; and without the missing files: {error}"
        raise ValueError(f"MuJoCo cannot compile this model: {first}{again}") from None
    return Compiled(model, dict.fromkeys(bare, NOTHING), dropped)


def _drop_missing(spec: Any) -> tuple[list[LeftOut], list[str]]:
    """Drop what needs files that are not there; the bodies that lose their inertia by it."""
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    folder = Path(spec.modelfiledir or ".")
    meshes = {m.name or Path(m.file).stem for m in _missing(spec.meshes, folder, spec.meshdir)}
    fields = {h.name or Path(h.file).stem for h in _missing(spec.hfields, folder, spec.meshdir)}
    left = []
    if meshes | fields:
        names = tuple(sorted(meshes | fields))
        left.append(LeftOut("missing files", names, "their shapes are not drawn"))
    shapes = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF)
    lost: dict[str, Any] = {}
    for geom in list(spec.geoms):
        named = geom.meshname in meshes and bool(geom.meshname)
        if named or (geom.type == mujoco.mjtGeom.mjGEOM_HFIELD and geom.hfieldname in fields):
            body = geom.parent
            if geom.type in shapes and not body.explicitinertial:
                lost[body.name] = body
            spec.delete(geom)
        else:
            geom.material = ""
    for skin in list(spec.skins):
        spec.delete(skin)
    for site in spec.sites:
        site.material = ""
    for tendon in spec.tendons:
        tendon.material = ""
    for asset in [*_named(spec.meshes, meshes), *_named(spec.hfields, fields)]:
        spec.delete(asset)
    for picture in [*spec.materials, *spec.textures]:
        spec.delete(picture)
    # Explicit inertias are what is left to read where shapes were to replace them.
    if spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE:
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
    bare = [name for name, body in lost.items() if not _has_mass(body)]
    for name in bare:
        _placeholder(lost[name])
    moving = tuple(sorted(name for name in lost if name != "world"))
    if moving:
        left.append(LeftOut("inertias", moving, "their shapes are missing: only what is left"))
    return left, bare


def _has_mass(body: Any) -> bool:
    return any(np.isnan(g.mass) or g.mass > 0.0 for g in body.geoms)


def _missing(assets: Any, folder: Path, directory: str) -> list[Any]:
    files = [(a, Path(a.file)) for a in assets if getattr(a, "file", "")]
    return [a for a, f in files if not any(p.is_file() for p in (folder / directory / f, f))]


def _named(assets: Any, names: set[str]) -> list[Any]:
    return [a for a in assets if (a.name or Path(a.file).stem) in names]
