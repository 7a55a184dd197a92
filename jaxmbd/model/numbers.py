"""Numbers, points and directions of a description: their conversion and their mirror images.

Arrays keep their type, literals become float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.model.part import Part

ArrayLike = Any
E = TypeVar("E", bound=Part)
GROUND = "ground"

Units = Mapping[str, str | tuple[str, ...]]
"""Field name to its SI unit, "" for none; a tuple is one for each component, or for the angular and
the linear half. The words ``coordinate`` and ``effort`` stand for rad or m, and N m or N, of the
coordinate that the part acts on, ``ratio`` for the unit of one coordinate over another's."""


class PointRef(Part):
    """A hardpoint by name: the coordinates are `mechanism.points[name]`."""

    name: str = eqx.field(static=True)


class ComRef(Part):
    """The centre of mass of a body as a point: a reference, so that it follows the body's COM."""

    body: str = eqx.field(static=True)


class Toward(Part):
    """The direction from one named hardpoint to another, which it follows."""

    start: str = eqx.field(static=True)
    end: str = eqx.field(static=True)


class FunctionLaw(Part):
    """A plain JAX function as a law: static, so it is part of the structure, not of the numbers.

    Example:
        >>> from jaxmbd.model.forces import FunctionLaw
        >>> FunctionLaw(lambda x, rate: 2.0 * x)(3.0, 0.0)
        6.0
    """

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        """What the function gives."""
        return self.function(*args)


def functions_static(tree: Any) -> Any:
    """The pytree with leaves that are functions (a network's activation) as `FunctionLaw`."""
    return jax.tree_util.tree_map(
        lambda x: FunctionLaw(x) if callable(x) and not eqx.is_array_like(x) else x, tree
    )


def direction(x: ArrayLike | tuple[str, str] | None) -> Any:
    """A direction: components (3,) or (2,), a pair of point names (from, to), or None."""
    if isinstance(x, (tuple, list)) and len(x) == 2 and all(isinstance(n, str) for n in x):
        return Toward(*x)
    return x if isinstance(x, Toward) else optional_number(x)


def number(x: ArrayLike) -> Any:
    """`x` as an array: arrays and tracers keep their type, Python numbers become float64."""
    if isinstance(x, jax.Array) or (isinstance(x, np.ndarray) and x.dtype == np.float32):
        return x
    if _holds_tracers(x):
        return jnp.stack([jnp.asarray(y) for y in x])
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        return x  # a placeholder of a pytree operation, or an error that validation reports


def optional_number(x: ArrayLike | None) -> Any:
    """`number`, with None kept."""
    return None if x is None else number(x)


def point(x: ArrayLike | str | None) -> Any:
    """A point: the name of one, its coordinates (3,) or (2,) [m], or None."""
    if isinstance(x, str):
        return PointRef(x)
    if x is None or isinstance(x, (PointRef, ComRef)):
        return x
    return number(x)


def vector_in_space(x: Any) -> Any:
    """A vector (3,) from (x, y) in the plane, or from one number about z; all else as it is.

    The added zeros are literals, so that they are folded away.
    """
    shape = getattr(x, "shape", None)
    if shape not in ((2,), ()):
        return x
    xp = np if isinstance(x, np.ndarray) else jnp
    zeros = xp.zeros(1 if shape == (2,) else 2, x.dtype)
    return xp.concatenate([x, zeros] if shape == (2,) else [zeros, x[None]])


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


def changed(element: E, **fields: Any) -> E:
    """A copy of a part with some fields changed, nothing converted."""
    return element.with_fields(fields) if fields else element


def lifted(element: E, fields: Iterable[str]) -> E:
    """A part of a planar description with the given vector fields extended to three components."""
    return changed(element, **{f: vector_in_space(getattr(element, f)) for f in fields})


def is_concrete(x: Any) -> bool:
    """Whether the numbers of `x` are known now (neither a tracer nor a placeholder)."""
    return isinstance(x, (np.ndarray, np.generic, float, int)) or (
        isinstance(x, jax.Array) and not isinstance(x, Tracer)
    )


def _holds_tracers(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(
        isinstance(y, jax.Array) or _holds_tracers(y) for y in x
    )
