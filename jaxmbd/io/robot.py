"""Robots of any format: the reader that a file needs, by its name or by what is in it."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jaxmbd.io.conversion import Imported
from jaxmbd.io.mujoco.compile import Source, text_of
from jaxmbd.io.mujoco.load import load_mjcf, load_urdf
from jaxmbd.io.usd.load import load_usd

USD_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
READERS = {"mujoco": load_mjcf, "robot": load_urdf}
"""The reader of XML by the name of its first element."""


def load_robot(source: Source, **options: Any) -> Imported:
    """A robot in MJCF, URDF or USD as a mechanism.

    A file of USD is known by its suffix (.usd, .usda, .usdc, .usdz) or its beginning, the others by
    their first element: ``<mujoco>`` or ``<robot>``.

    Args:
        source: path of the file, or its text.
        **options: of its reader, `load_mjcf`, `load_urdf` or `load_usd`; all three have `strict=`,
            `limit_stiffness=` and `velocity_scale=`.

    Raises:
        ValueError: it is none of these formats, or its reader refuses it.
        TypeError: its reader has no such option.
        FileNotFoundError: there is no such file.
        ImportError: its reader is not installed.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.load_robot('''<mujoco><worldbody><body name="arm">
        ...   <joint name="hinge" axis="0 1 0"/><geom size="0.02" pos="0.5 0 0"/>
        ... </body></worldbody></mujoco>''')
        >>> list(model.mechanism.joints)
        ['hinge']
    """
    reader = load_usd if _is_usd(source) else _reader_of_xml(source)
    return reader(source, **options)


def _is_usd(source: Source) -> bool:
    if isinstance(source, str) and source.lstrip().startswith("#usda"):
        return True
    if text_of(source) is not None:
        return False
    if Path(source).suffix.lower() in USD_SUFFIXES:
        return True
    with open(source, "rb") as file:
        return file.read(8).startswith((b"#usda", b"PXR-USDC"))


def _reader_of_xml(source: Source) -> Any:
    text = text_of(source)
    name = "this text" if text is not None else os.fspath(source)
    content = Path(source).read_bytes() if text is None else text.strip().encode()
    try:
        events: Any = ElementTree.iterparse(BytesIO(content), ["start"])
        first = next(element.tag for _, element in events)
    except ElementTree.ParseError as error:
        raise ValueError(
            f"{name} is neither XML ({error}) nor USD; give a robot in MJCF (<mujoco>), URDF "
            "(<robot>) or USD"
        ) from None
    if first not in READERS:
        cure = "; convert it to URDF or MJCF" if first == "sdf" else ""
        raise ValueError(
            f"{name} begins with <{first}>, but a robot in MJCF begins with <mujoco>, and one in "
            f"URDF with <robot>{cure}"
        )
    return READERS[first]
