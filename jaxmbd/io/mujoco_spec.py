"""MuJoCo's `MjSpec` of a file or of text, and inertias that MuJoCo refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.named_files import is_file
from jaxmbd.numerics.extras import optional

Source = str | os.PathLike[str]


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
    """MuJoCo's `MjSpec` of a file, or of text, with the name that errors say of it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no model, with MuJoCo's own message.
    """
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
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
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
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
    return found, [LeftOut("negative inertias", tuple(negative), text)] if negative else []


def placeholder(body: Any) -> None:
    """Give a body of a spec an inertia that MuJoCo takes."""
    body.explicitinertial, body.mass = True, 1.0
    body.ipos, body.inertia = np.zeros(3), np.ones(3)
    body.iquat, body.fullinertia = np.array([1.0, 0, 0, 0]), np.array([np.nan, 0, 0, 0, 0, 0])
