"""Compile a model with MuJoCo: its mechanics without the meshes that they do not need.

Meshes take most of the time, and many models name some that are not there. What is drawn is
compiled apart, when it is asked for.

A model is read into an `MjSpec`, of MJCF or of URDF; inertias that MuJoCo refuses are stored apart.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from jaxmbd.io.conversion import LeftOut
from jaxmbd.io.files import is_file, shortened
from jaxmbd.plumbing import optional, warn_user

SCHEMES = ("package://", "model://")
MANIFESTS = ("package.xml", "model.config")
"""Files that mark a folder as a package of ROS or a model of Gazebo."""
Source = str | os.PathLike[str]


def mujoco_reader() -> Any:
    """MuJoCo, which reads the files."""
    return optional("mujoco", "io", "reading MJCF or URDF")


class OwnInertia(NamedTuple):
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) about it, in the body's axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


NOTHING = OwnInertia(0.0, np.zeros(3), np.zeros((3, 3)))


def text_of(source: Source) -> str | None:
    """The source, if it is text, which starts with ``<``; None for a path of a file that is there.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no file can have such a name, or text has characters that are none.
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        try:
            source.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"this text is not Unicode ({error}); read it as UTF-8") from None
        return source
    if not is_file(Path(source), "the source, which is no text (that starts with '<'),"):
        raise FileNotFoundError(f"there is no file {os.fspath(source)!r}")
    return None


def read_spec(source: Source, *, name: str | None = None) -> Any:
    """MuJoCo's `MjSpec` of a file, or of text, with the name that errors give it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no model, with MuJoCo's own message.
    """
    mujoco = mujoco_reader()
    text = text_of(source)
    try:
        if text is not None:
            return mujoco.MjSpec.from_string(text)
        # Its files are read later, whatever the current folder is then.
        return mujoco.MjSpec.from_file(os.path.abspath(os.fspath(source)))
    except ValueError as error:
        name = name or ("this text" if text is not None else os.fspath(source))
        raise ValueError(f"MuJoCo cannot read {name}: {error}") from None


def given_inertias(spec: Any) -> tuple[dict[str, OwnInertia], list[LeftOut]]:
    """The inertias of all links of a URDF, which get placeholders in the spec.

    MuJoCo refuses links without mass, and principal inertias of which one exceeds the sum of the
    others; mechanisms take both. What both refuse is a negative one, which becomes zero.

    Raises:
        ValueError: a number is not finite; names the link.
    """
    mujoco = mujoco_reader()
    found: dict[str, OwnInertia] = {}
    negative = []
    for body in list(spec.bodies)[1:]:
        found[body.name] = NOTHING
        if body.explicitinertial:
            turn, (xx, yy, zz, xy, xz, yz) = np.zeros(9), body.fullinertia
            mujoco.mju_quat2Mat(turn, body.iquat)
            axes, own = turn.reshape(3, 3), np.diag(body.inertia)
            if not np.isnan(xx) or any(body.fullinertia[1:]):
                own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            if not (np.isfinite(own).all() and np.isfinite(body.mass)):
                raise ValueError(
                    f"link {body.name!r}: its mass {body.mass:g} or inertia {own.tolist()} is not "
                    "finite; correct its <inertial>, or remove it for a link without mass"
                )
            values, principal = np.linalg.eigh(own)
            if values[0] < 0.0:
                negative.append(body.name)
                own = (principal * np.maximum(values, 0.0)) @ principal.T
            com = np.where(np.isnan(body.ipos), 0.0, body.ipos)
            found[body.name] = OwnInertia(float(body.mass), com, axes @ own @ axes.T)
        placeholder(body)
    text = "zero in their place"
    return found, [LeftOut("negative inertias", tuple(negative), text)]


def placeholder(body: Any) -> None:
    """Give a body of a spec an inertia that MuJoCo takes."""
    body.explicitinertial, body.mass = True, 1.0
    body.ipos, body.inertia = np.zeros(3), np.ones(3)
    body.iquat, body.fullinertia = np.array([1.0, 0, 0, 0]), np.array([np.nan, 0, 0, 0, 0, 0])


READ = (".stl", ".obj", ".msh")  # the formats of meshes that MuJoCo reads


class ModelFolder(NamedTuple):
    """Where the files that a model names are looked for.

    Attributes:
        own: the model's folder; None for a text, whose files are looked for in the current one.
        within: folder that they must be in, wherever the model is; None: the model's own, and they
            must be named from there.
    """

    own: Path | None
    within: str | os.PathLike[str] | None = None

    def has(self, name: str) -> bool:
        """Whether a name may be looked up."""
        name = name.replace("\\", "/")  # which MuJoCo takes for the same on all systems
        if self.within is not None:
            full = Path(os.path.abspath(Path(self.own or "") / name))
            return full.is_relative_to(os.path.abspath(self.within))
        path = os.path.normpath(name)
        drive = os.path.splitdrive(path)[0]
        return not (drive or os.path.isabs(path) or path.split(os.sep)[0] == os.pardir)

    def path(self, name: str) -> Path:
        """Where a file is that may be looked up."""
        return (self.own or Path()) / name

    def in_package(self, package: str) -> list[Path]:
        """Where a file of a package may be: in one that the model is in, or in one beside it.

        Args:
            package: name of the package and path in it; without climbing.
        """
        first, *rest = Path(package).parts
        tries = []
        for above in () if self.own is None else (self.own, *self.own.parents):
            tries += [above.joinpath(*rest)] if above.name == first else []
            root = above / first
            known = above == self.own or any((root / name).is_file() for name in MANIFESTS)
            tries += [root.joinpath(*rest)] if known else []
        return tries


def _outside_files(names: tuple[str, ...]) -> list[LeftOut]:
    """Warns of the files that are not looked up; their row in the table of what is left out."""
    if not names:
        return []
    listed = ", ".join(map(shortened, names))
    warn_user(
        f"files outside of the model's folder are not looked up: {listed}. Copy them into it and "
        "name them from there; or give within= the folder whose files this model may read"
    )
    return [LeftOut("files outside of the model's folder", names, "their shapes are not drawn")]


class UrdfSpec(NamedTuple):
    """The spec of a robot.

    Attributes:
        spec: MuJoCo's `MjSpec`.
        left_out: the shapes that cannot be drawn.
        found: full paths of the files that it names, as the spec has them.
    """

    spec: Any
    left_out: list[LeftOut]
    found: frozenset[str]


class _Lost(NamedTuple):
    """Names of files of which nothing is drawn."""

    missing: list[str]
    foreign: list[str]
    outside: list[str]


def read_urdf(source: Source, within: str | os.PathLike[str] | None = None) -> UrdfSpec:
    """The spec of a file or of text.

    A link is drawn by what its description gives to be looked at, else by what touches. Files are
    looked for beside the description; those of a package in the folder of its name that the
    description is in, or in a package beside it (with its ``package.xml``).

    Args:
        source: path of the file, or its text.
        within: as of `load_urdf`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no robot, with MuJoCo's own message, or the name of a file is none.
    """
    text, folder = text_of(source), None
    if text is None:
        folder = Path(source).resolve().parent
        text = Path(source).read_bytes()
    lost = _Lost([], [], [])
    name = "this text" if folder is None else os.fspath(source)
    try:
        robot = ElementTree.fromstring(text)
        for link in robot.iter("link"):
            _keep_drawn(link, ModelFolder(folder, within), lost)
        _with_visuals(robot)
        text = ElementTree.tostring(robot, encoding="unicode")
    except (ElementTree.ParseError, RecursionError, LookupError):  # MuJoCo's message is better
        return UrdfSpec(read_spec(source), [], frozenset())
    spec = read_spec(text, name=name)
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0  # every URDF has them: not listed as left out
    missing, foreign, outside = (tuple(dict.fromkeys(names)) for names in lost)
    left = [
        LeftOut("missing files", missing, "their shapes are not drawn"),
        LeftOut("meshes in other formats", foreign, f"not drawn: MuJoCo reads {', '.join(READ)}"),
        *_outside_files(outside),
    ]
    found = frozenset(mesh.get("filename", "") for mesh in robot.iter("mesh"))
    return UrdfSpec(spec, left, found)


def _keep_drawn(link: Any, folder: ModelFolder, lost: _Lost) -> None:
    """Take from a link what is not drawn, and give the files of what is their full path."""
    kept = {"visual": 0, "collision": 0}
    undrawn: dict[str, list[tuple[list[str], str]]] = {"visual": [], "collision": []}
    for kind in kept:
        for part in link.findall(kind):
            mesh = part.find("geometry/mesh")
            if kind == "collision" and kept["visual"]:
                link.remove(part)
                continue
            if mesh is not None:
                name = mesh.get("filename", "")
                found = _found(name, folder, lost, f"link {link.get('name')!r}")
                if not isinstance(found, Path):
                    undrawn[kind].append((found, name))
                    link.remove(part)
                    continue
                mesh.set("filename", str(found))
            kept[kind] += 1
    for kind, parts in undrawn.items():
        if kind == "visual" or not kept["visual"]:
            for category, name in parts:
                category.append(name)


def _found(name: str, folder: ModelFolder, lost: _Lost, what: str) -> Path | list[str]:
    """The file that a description names, or the list of those to which it belongs."""
    scheme = next((x for x in SCHEMES if name.startswith(x)), "")
    path = name.removeprefix("file://").removeprefix(scheme)
    if not path.strip("/\\. "):
        raise ValueError(
            f"{what} has the mesh {shortened(name)}, which names no file; give one as "
            "'meshes/part.stl' or 'package://name/meshes/part.stl', or remove the mesh"
        )
    if not (ModelFolder(None) if scheme else folder).has(path):
        return lost.outside
    tries = folder.in_package(os.path.normpath(path)) if scheme else [folder.path(path)]
    found = next((x for x in tries if is_file(x, what)), None)
    if found is None:
        return lost.missing
    return found if found.suffix.lower() in READ else lost.foreign


def _with_visuals(robot: Any) -> None:
    """Options of MuJoCo's, which drops what is only looked at, and the folders of files."""
    own = robot.find("mujoco")
    own = ElementTree.SubElement(robot, "mujoco") if own is None else own
    options = own.find("compiler")
    options = ElementTree.SubElement(own, "compiler") if options is None else options
    options.attrib.pop("meshdir", None)
    options.set("strippath", "false")
    options.set("discardvisual", "false")


class Compiled(NamedTuple):
    """A compiled model.

    Attributes:
        model: MuJoCo's `MjModel`, with all defaults resolved and all inertias computed; spheres
            stand for the meshes that no inertia needs.
        drawn: the `MjSpec` of which all that is drawn can be compiled, by `compiled_shapes`.
        inertias: those of the bodies, by name, that have a placeholder in the model.
        left_out: what was dropped to compile it.
    """

    model: Any
    drawn: Any
    inertias: dict[str, OwnInertia]
    left_out: list[LeftOut]


def compiled(
    spec: Any,
    within: str | os.PathLike[str] | None = None,
    *,
    inertias_from_shapes: bool = True,
    known: Container[str] = (),
) -> Compiled:
    """Compile a spec; where files are missing, without the shapes that need them.

    Args:
        spec: it is not changed.
        within: as of `load_mjcf`.
        inertias_from_shapes: whether some may be; else no shape is read.
        known: names of files that are there and may be read.

    Raises:
        ValueError: MuJoCo refuses the model, with its own message, or the name of a file is none.
    """
    spec = spec.copy()
    missing, outside = _unread(spec, within, known)
    dropped = _outside_files(tuple(dict.fromkeys(asset.file for asset in outside)))
    files = tuple(sorted({mesh_name(asset) for asset in missing}))
    dropped.append(LeftOut("missing files", files, "their shapes are not drawn"))
    more, bare = _drop_assets(spec, [*missing, *outside])
    for lost in more:
        warn_user(
            f"the inertias of {list(lost.names)} are those of shapes in files that are not read, "
            "so only what is left of them counts: give the files, or the inertias"
        )
    dropped += more + _drop_pictures(spec)
    light = spec.copy()
    # Ranges of muscles, which take seconds: mechanisms have no muscles.
    light.compiler.LRopt.mode = mujoco_reader().mjtLRMode.mjLRMODE_NONE
    if not inertias_from_shapes:
        for part in [*light.geoms, *light.meshes]:
            light.delete(part)
    touching = _drop_meshes(light)
    try:
        model = light.compile()
    except ValueError as error:
        without = f", without its missing files {', '.join(files)}" if files else ""
        raise ValueError(f"MuJoCo cannot compile this model{without}: {error}") from None
    if touching is not None and model.ngeom:
        model.geom_contype, model.geom_conaffinity = touching
    return Compiled(model, spec, dict.fromkeys(bare, NOTHING), dropped)


def compiled_shapes(spec: Any) -> Any:
    """MuJoCo's model with all that is drawn, of `Compiled.drawn`; a warning names what is not."""
    try:
        return _with_shapes(spec.copy())
    except ValueError:
        spec = spec.copy()
        _drop_refused(spec)
        return _with_shapes(spec)


def _with_shapes(spec: Any) -> Any:
    mujoco = mujoco_reader()
    spec.compiler.discardvisual = False
    touching = _touching(spec)
    for mesh in spec.meshes:
        # That of a solid is refused where a mesh is open; no inertia is read here.
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0  # without a convex hull of each mesh
    model = spec.compile()
    model.geom_contype, model.geom_conaffinity = touching
    return model


def _touching(spec: Any) -> np.ndarray:
    """The flags (2, n) of what touches what."""
    return np.array([[g.contype, g.conaffinity] for g in spec.geoms], int).reshape(-1, 2).T


def _drop_pictures(spec: Any) -> list[LeftOut]:
    """Drop textures and skins; what of that, and of height fields, is not drawn."""
    undrawn = {"height fields": spec.hfields, "skins": spec.skins}
    names = {what: tuple(x.name or Path(x.file).stem for x in y) for what, y in undrawn.items()}
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for picture in [*spec.textures, *spec.skins]:
        spec.delete(picture)
    known = {material.name for material in spec.materials}
    for part in [*spec.geoms, *spec.sites, *spec.tendons]:
        if part.material not in known:
            part.material = ""
    return [LeftOut(what, each, "not drawn") for what, each in names.items() if each]


def _drop_meshes(spec: Any) -> np.ndarray | None:
    """Put spheres for the meshes that no inertia needs; the others get no convex hull.

    Returns:
        The flags (2, n) of what touches what, which are to be put back; None if nothing was taken.
    """
    always = mujoco_reader().mjtInertiaFromGeom
    needed = spec.compiler.inertiafromgeom == always.mjINERTIAFROMGEOM_TRUE
    moving = {body.id for body in spec.bodies if _moves(body)}
    for geom in spec.geoms:
        body = geom.parent
        known = body.id not in moving or (body.explicitinertial and not needed)
        if geom.hfieldname or (geom.meshname and known):
            _sphere(geom)
    used = {geom.meshname for geom in spec.geoms if geom.meshname}
    unused = [m for m in spec.meshes if mesh_name(m) not in used]
    for asset in [*unused, *spec.hfields]:
        spec.delete(asset)
    if not used or spec.compiler.discardvisual:
        return None
    touching = _touching(spec)
    for geom in spec.geoms:
        if geom.meshname:
            geom.contype = geom.conaffinity = 0
    return touching


def _moves(body: Any) -> bool:
    """Whether a body or one that carries it has joints."""
    while body is not None:
        if len(body.joints):
            return True
        body = body.parent
    return False


def _sphere(geom: Any) -> None:
    geom.type = mujoco_reader().mjtGeom.mjGEOM_SPHERE
    geom.meshname = geom.hfieldname = ""
    geom.size, geom.fromto = [1.0, 0.0, 0.0], np.full(6, np.nan)
    geom.mass = 0.0


def mesh_name(asset: Any) -> str:
    """The name of a mesh or a height field, by default that of its file."""
    return asset.name or Path(asset.file).stem


def _drop_assets(spec: Any, unread: list[Any]) -> tuple[list[LeftOut], list[str]]:
    """Drop what needs files that are not read; the bodies that lose their inertia by it."""
    mujoco = mujoco_reader()
    if not unread:
        return [], []
    names = {mesh_name(asset) for asset in unread}
    lost: dict[str, Any] = {}
    for geom in list(spec.geoms):
        if geom.meshname in names or geom.hfieldname in names:
            body = geom.parent
            if geom.meshname and not body.explicitinertial:
                lost[body.name] = body
            spec.delete(geom)
    for asset in unread:
        spec.delete(asset)
    # Explicit inertias are what is left to read where shapes were to replace them.
    if spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE:
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
    bare = [name for name, body in lost.items() if name != "world" and not _has_mass(body)]
    for name in bare:
        placeholder(lost[name])
    moving = tuple(sorted(name for name in lost if name != "world"))
    text = "their shapes are missing: only what is left"
    return [LeftOut("inertias", moving, text)] if moving else [], bare


def _has_mass(body: Any) -> bool:
    return any((g.density if np.isnan(g.mass) else g.mass) > 0.0 for g in body.geoms)


def _unread(
    spec: Any, within: str | os.PathLike[str] | None, known: Container[str]
) -> tuple[list[Any], list[Any]]:
    """Meshes and height fields whose files are not there, and those that are not looked up."""
    own = Path(spec.modelfiledir) if spec.modelfiledir else None
    folder = ModelFolder(own, within)
    missing, outside = [], []
    for asset in [*spec.meshes, *spec.hfields]:
        name = getattr(asset, "file", "")
        if not name or name in known:
            continue
        name = os.path.join(spec.meshdir, os.path.basename(name) if spec.strippath else name)
        if not folder.has(name):
            outside.append(asset)
        elif not is_file(folder.path(name), f"the asset {shortened(mesh_name(asset))}"):
            missing.append(asset)
    return missing, outside


def _drop_refused(spec: Any) -> None:
    """Drop shapes that MuJoCo refuses: damaged meshes, such with too many faces, or no size."""
    refused = {}
    for mesh in list(spec.meshes):
        if why := _refusal(spec, mesh_name(mesh)):
            refused[mesh_name(mesh)] = why
            spec.delete(mesh)
    for geom in list(spec.geoms):
        sizes = geom.size[: _SIZES.get(geom.type.name, 0)]
        if geom.meshname in refused:
            spec.delete(geom)
        elif np.any(sizes <= 0.0) and np.isnan(geom.fromto[0]):
            refused[geom.name or f"a shape of {geom.parent.name}"] = "it has no size"
            spec.delete(geom)
    listed = "; ".join(f"{name} ({why})" for name, why in refused.items())
    text = f"MuJoCo refuses {len(refused)} shapes, which are not drawn: {listed}"
    warnings.warn(text, stacklevel=5)


_SIZES = {
    "mjGEOM_SPHERE": 1,
    "mjGEOM_CAPSULE": 2,
    "mjGEOM_CYLINDER": 2,
    "mjGEOM_ELLIPSOID": 3,
    "mjGEOM_BOX": 3,
}


def _refusal(spec: Any, name: str) -> str:
    """Why MuJoCo refuses a mesh; empty if it does not."""
    alone = spec.copy()
    for geom in alone.geoms:
        geom.contype = geom.conaffinity = 0
        if geom.meshname != name:
            _sphere(geom)
    for mesh in list(alone.meshes):
        mesh.inertia = mujoco_reader().mjtMeshInertia.mjMESH_INERTIA_SHELL
        if mesh_name(mesh) != name:
            alone.delete(mesh)
    try:
        alone.compile()
    except ValueError as error:
        return str(error).splitlines()[0]
    return ""
