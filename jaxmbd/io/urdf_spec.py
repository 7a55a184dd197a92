"""MuJoCo's `MjSpec` of a robot described in URDF, with what is to be drawn of each link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.mujoco_spec import Source, read_spec, text_of

READ = (".stl", ".obj", ".msh")  # the formats of meshes that MuJoCo reads


def read_urdf(source: Source) -> tuple[Any, list[LeftOut]]:
    """The spec of a file or of text, and the shapes that cannot be drawn.

    A link is drawn by what its description gives to be looked at, else by what touches. Files are
    looked for beside the description; those of a package in the folder of its name, or in one that
    contains it, above the description.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no robot, with MuJoCo's own message.
    """
    text, folder = text_of(source), None
    if text is None:
        folder = Path(source).resolve().parent
        text = Path(source).read_bytes()
    try:
        robot = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return read_spec(source), []
    missing: list[str] = []
    foreign: list[str] = []
    for link in robot.iter("link"):
        _keep_drawn(link, folder, missing, foreign)
    _with_visuals(robot)
    name = "this text" if folder is None else os.fspath(source)
    spec = read_spec(ElementTree.tostring(robot, encoding="unicode"), name=name)
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0  # contacts of a URDF are not told: it has no others
    left = [
        LeftOut("missing files", tuple(dict.fromkeys(missing)), "their shapes are not drawn"),
        LeftOut(
            "meshes in other formats",
            tuple(dict.fromkeys(foreign)),
            f"not drawn: MuJoCo reads {', '.join(READ)}",
        ),
    ]
    return spec, [row for row in left if row.names]


def _keep_drawn(link: Any, folder: Path | None, missing: list[str], foreign: list[str]) -> None:
    """Take from a link what is not drawn, and give the files of what is their full path."""
    kept = {"visual": 0, "collision": 0}
    lost: dict[str, list[tuple[list[str], str]]] = {"visual": [], "collision": []}
    for kind in kept:
        for part in link.findall(kind):
            mesh = part.find("geometry/mesh")
            if kind == "collision" and kept["visual"]:
                link.remove(part)
                continue
            name = "" if mesh is None else mesh.get("filename", "")
            found = None if mesh is None else _found(name, folder)
            if mesh is not None and (found is None or found.suffix.lower() not in READ):
                lost[kind].append((missing if found is None else foreign, name))
                link.remove(part)
                continue
            if mesh is not None:
                mesh.set("filename", str(found))
            kept[kind] += 1
    for kind, parts in lost.items():
        if kind == "visual" or not kept["visual"]:
            for told, name in parts:
                told.append(name)


def _found(name: str, folder: Path | None) -> Path | None:
    """The file that a description names, if it is there."""
    path = name.removeprefix("file://")
    package = path.removeprefix("package://").removeprefix("model://")
    tries = [Path(path)]
    if folder is not None:
        tries = [folder / path]
        if package != path:
            inside = Path(*Path(package).parts[1:])
            for above in (folder, *folder.parents):
                tries += [above / package]
                tries += [above / inside] if above.name == Path(package).parts[0] else []
    return next((p for p in tries if p.is_file()), None)


def _with_visuals(robot: Any) -> None:
    """Options of MuJoCo's, which drops what is only looked at, and the folders of files."""
    own = robot.find("mujoco")
    own = ElementTree.SubElement(robot, "mujoco") if own is None else own
    options = own.find("compiler")
    options = ElementTree.SubElement(own, "compiler") if options is None else options
    options.attrib.pop("meshdir", None)
    options.set("strippath", "false")
    options.set("discardvisual", "false")
