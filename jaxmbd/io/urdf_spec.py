"""MuJoCo's `MjSpec` of a robot described in URDF, with what is to be drawn of each link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.mujoco_spec import Source, read_spec, text_of
from jaxmbd.io.named_files import SCHEMES, ModelFolder, is_file, shortened, told_of

READ = (".stl", ".obj", ".msh")  # the formats of meshes that MuJoCo reads


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
    except (ElementTree.ParseError, RecursionError, LookupError):  # MuJoCo says what is wrong
        return UrdfSpec(read_spec(source), [], frozenset())
    spec = read_spec(text, name=name)
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0  # contacts of a URDF are not told: it has no others
    missing, foreign, outside = (tuple(dict.fromkeys(names)) for names in lost)
    left = [
        LeftOut("missing files", missing, "their shapes are not drawn"),
        LeftOut("meshes in other formats", foreign, f"not drawn: MuJoCo reads {', '.join(READ)}"),
        *told_of(outside),
    ]
    found = frozenset(mesh.get("filename", "") for mesh in robot.iter("mesh"))
    return UrdfSpec(spec, [row for row in left if row.names], found)


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
            for told, name in parts:
                told.append(name)


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
