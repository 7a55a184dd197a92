"""Mirror images of vectors in a coordinate plane through the origin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jax import Array

from jaxmbd.model.numbers import Toward


class Reflection(NamedTuple):
    """The reflection ``S = 1 − 2 n nᵀ`` in a plane with the normal n along a coordinate axis.

    A polar vector (a position, a force) becomes ``S x``, an axial one (an axis of rotation, a
    moment) ``−S x``, so that a rotation by some angle about an axis becomes the rotation by the
    same angle about its image.

    Attributes:
        axis: index of the plane's normal.
    """

    axis: int

    @property
    def signs(self) -> np.ndarray:
        """The diagonal of S (3,)."""
        signs = np.ones(3)
        signs[self.axis] = -1.0
        return signs

    def polar(self, x: Any) -> Any:
        """The image of a polar vector (…, 3), or of a direction from one point to another."""
        return x if x is None or isinstance(x, Toward) else x * self.signs.astype(x.dtype)

    def axial(self, x: Any) -> Any:
        """The image of an axial vector (…, 3), or of a direction from one point to another."""
        if isinstance(x, Toward):
            return Toward(x.end, x.start)
        return x if x is None else -x * self.signs.astype(x.dtype)

    def tensor(self, x: Any) -> Array:
        """``S x S`` of a tensor (3, 3), such as an inertia."""
        signs = self.signs.astype(x.dtype)
        return x * (signs[:, None] * signs)
