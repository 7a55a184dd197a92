"""Rigid bodies."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.numbers import PointRef, Units, changed, number, point, vector_in_space
from jaxmbd.model.part import Part


class Body(Part):
    """A rigid body, in global axes as drawn.

    Attributes:
        mass: [kg]; zero for a massless link.
        com: centre of mass as drawn, (3,) [m], or the name of a point; (2,) in a planar
            mechanism.
        inertia: about the centre of mass in the global axes as drawn, (3, 3) [kg m²], or (3,)
            for a diagonal; positive semidefinite. One number is the inertia about every axis, in
            a planar mechanism about z. The default, zero, makes a point mass.
        markers: names of points of the mechanism that are fixed to the body, beside those of its
            joints and forces: coupler points, holes, sensors. They are drawn as part of it.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Body(mass=2.0, com=(0.5, 0, 0), inertia=(0, 0.17, 0.17)).mass
        array(2.)
    """

    units: ClassVar[Units] = {"mass": "kg", "com": "m", "inertia": "kg m²"}

    mass: Any = eqx.field(converter=number)
    com: Any = eqx.field(converter=point)
    inertia: Any
    markers: Any

    def __init__(
        self,
        mass: Any = 0.0,
        com: Any = (0.0, 0.0, 0.0),
        inertia: Any = 0.0,
        markers: Any = None,
    ):
        self.mass = number(mass)
        self.com = point(com)
        self.inertia = _inertia_matrix(number(inertia))
        self.markers = _references(markers)


def _references(markers: Any) -> tuple[PointRef, ...] | None:
    """References to points given by name, or None."""
    names = (markers,) if isinstance(markers, str) else tuple(markers or ())
    if wrong := [x for x in names if not isinstance(x, (str, PointRef))]:
        raise ValueError(
            f"markers of a Body are names of points, not {wrong[0]!r:.60}: give the coordinates to "
            "the mechanism, points={name: (x, y, z)}, and the name here"
        )
    return tuple(map(point, names)) or None


def _inertia_matrix(inertia: Any) -> Any:
    shape = getattr(inertia, "shape", None)
    if shape == (3,):
        return inertia[:, None] * np.eye(3, dtype=inertia.dtype)
    return inertia


def settled(body: Body, planar: bool) -> Body:
    """The body as a mechanism stores it: in space an inertia of one number becomes (3, 3)."""
    if planar or getattr(body.inertia, "shape", None) != ():
        return body
    return changed(body, inertia=body.inertia * np.eye(3, dtype=body.inertia.dtype))


def inertia_in_space(inertia: Array) -> Array:
    """Inertia (3, 3) [kg m²] from the one that a mechanism stores: (3, 3), or about z."""
    if inertia.shape == (3, 3):
        return inertia
    zero = jnp.zeros(3, inertia.dtype)
    return jnp.stack([zero, zero, vector_in_space(inertia)])
