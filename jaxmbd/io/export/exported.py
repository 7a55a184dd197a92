"""What an export gives: the mechanism as it was written, its coordinates, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import numpy as np

from jaxmbd.io.conversion import LeftOutTable
from jaxmbd.io.coordinates import FileCoordinates
from jaxmbd.model import Mechanism


@dataclass(frozen=True)
class Exported:
    """A mechanism as a file of another format has it.

    Attributes:
        mechanism: the mechanism in space, cut where the file's equalities close its loops. If the
            format cannot close a loop at the joint that `topology` cuts, this one is cut elsewhere
            and has other coordinates: the same motion is found by `assemble`.
        joints: its joints by name, each with the joints that the file has for it.
        coordinates: ``mechanism``'s q and v to the file's positions and speeds (for MJCF: qpos and
            qvel), and back.
        left_out: what the file does not have of the mechanism; `print` shows a table.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = mbd.io.save_mjcf(mbd.zoo.macpherson(), f"{folder}/corner.xml")
        >>> written.joints["univ_strut"]
        ('univ_strut.a', 'univ_strut.b')
        >>> written.coordinates.qpos(mbd.neutral(written.mechanism)).shape
        (6,)
    """

    mechanism: Mechanism = field(repr=False)
    joints: Mapping[str, tuple[str, ...]]
    coordinates: FileCoordinates = field(repr=False)
    left_out: LeftOutTable

    def __repr__(self) -> str:
        count = sum(len(names) for names in self.joints.values())
        bodies = len(self.mechanism.structure.bodies)
        return f"exported: {bodies} bodies, {count} joints\n{self.left_out}"

    __str__ = __repr__


Element = ElementTree.Element


def attribute(x: Any) -> str:
    """A text as it is; numbers with the digits that restore their bits."""
    if isinstance(x, str):
        return x
    return " ".join(repr(float(y)) for y in np.ravel(np.asarray(x, float)) + 0.0)


def add(parent: Element, tag: str, **attributes: Any) -> Element:
    """A new last child of an element; attributes that are None are left out."""
    given = {k: attribute(x) for k, x in attributes.items() if x is not None}
    return ElementTree.SubElement(parent, tag, given)


def xml_text(root: Element) -> str:
    """The text of a file, indented."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
