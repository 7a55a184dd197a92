"""XML elements whose numbers have all their digits."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np

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
