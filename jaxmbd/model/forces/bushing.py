"""The bushing: stiffness and damping along and about three axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.forces.base import ElasticConnection, ElementMotion, Measure
from jaxmbd.model.forces.laws import Reflected, law_energy
from jaxmbd.model.numbers import (
    Reflection,
    Units,
    changed,
    functions_static,
    is_concrete,
    number,
    optional_number,
    point,
)
from jaxmbd.plumbing import unknown
from jaxmbd.spatial import cross, rotation_vector, unit

MEASURES = ("finite", "small")
DIRECTIONS = ("rx", "ry", "rz", "x", "y", "z")
"""Names of the components of a deformation: rotations about, and shifts along, three axes."""


def _laws(laws: Any) -> Any:
    return functions_static(dict(laws)) if laws else None


class Bushing(ElasticConnection):
    """Six springs and dampers between a point of a and a point of b, in a frame fixed in a.

    The deformation is ``δ = [ρ; d]``, angular part first, in the frame's axes: d is b's point minus
    a's, ρ measures the rotation S of b relative to a, zero as drawn. Forces and moments are
    ``−(∂δ/∂pose)ᵀ (K δ + B δ̇)``, exactly conservative without damping.

    * ``measure="finite"``: ρ is the rotation vector of S, so that the moment about a fixed axis of
      the frame is linear in the angle, up to half a turn.
    * ``measure="small"``: ``ρ = (S_32, S_13, S_21)`` (Urbaś 2016, (12)), the rotation vector to
      first order. A direction without stiffness may then turn by small angles only (use `soften`
      for joints that turn freely).

    A component δᵢ may have a law besides: ``−lawᵢ(δᵢ, δ̇ᵢ)`` is added to its effort, as measured
    curves of rubber bushings are, which stiffen.

    Attributes:
        a, b: names of the bodies.
        at: its point, (3,) [m] as drawn or the name of a point; `at_b` where b's half is drawn
            apart: the bushing is then deformed as drawn.
        stiffness: (6,) ``[N·m/rad; N/m]`` along the frame's axes, or a symmetric (6, 6).
        damping: (6,) ``[N·m·s/rad; N·s/m]``, or a symmetric (6, 6).
        frame: its axes as drawn, global components: a rotation (3, 3) whose columns they are, or
            two directions (2, 3), x and another in the plane xy; by default the global axes.
        measure: of the rotation, "finite" or "small".
        laws: functions of (deformation, rate) along some of "rx", "ry", "rz", "x", "y", "z", by
            these names, giving further resistance [N·m; N], positive with the deformation: a
            `Table`, a `Sampled`, a law of one's own. A `Table` is constant beyond its ends: let it
            reach as far as the bushing goes.

    Example:
        >>> import jaxmbd as mbd
        >>> curve = mbd.Table([-3e-3, -1e-3, 0.0, 1e-3, 3e-3], [-9e3, -1e3, 0.0, 1e3, 9e3])
        >>> rubber = mbd.Bushing("frame", "arm", (0, 0, 0), [50, 50, 5, 0, 4e5, 4e5],
        ...                      laws={"x": curve})
        >>> float(rubber.elastic([0.0, 0.0, 0.0, 2e-3, 0.0, 0.0])[3])
        5000.0
        >>> soft = mbd.Bushing("frame", "arm", (0, 0.3, 0), [50, 50, 5, 4e5, 4e5, 8e5])
        >>> soft.measure
        'finite'
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=(0.0,) * 6)
    frame: Any = eqx.field(converter=optional_number, default=None)
    measure: str = eqx.field(static=True, default="finite")
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)
    laws: Any = eqx.field(converter=_laws, default=None, kw_only=True)

    joins: ClassVar[bool] = True
    units: ClassVar[Units] = {
        "stiffness": ("N m/rad", "N/m"),
        "damping": ("N m s/rad", "N s/m"),
        "frame": "",
    }

    @property
    def connected(self) -> tuple[str, Any, str, Any]:
        return self.a, self.at, self.b, self.at if self.at_b is None else self.at_b

    @property
    def points(self) -> dict[str, Any]:
        return {n: getattr(self, n) for n in ("at", "at_b") if getattr(self, n) is not None}

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Six numbers or a matrix; the frame's axes."""
        six = ((6,), (6, 6))
        return {"stiffness": six, "damping": six, "frame": ((3, 3), (2, 3))}

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """An unknown measure, a matrix that is not symmetric, a frame that is no rotation."""
        found = []
        if self.measure not in MEASURES:
            found.append(f"measure={self.measure!r}; give one of {list(MEASURES)}")
        for name in ("stiffness", "damping"):
            x = getattr(self, name)
            if is_concrete(x) and np.ndim(x) == 2:
                if np.abs(x - np.transpose(x)).max() > 1e-6 * np.abs(x).max():
                    found.append(f"{name} is not symmetric; give a symmetric (6, 6), angular first")
        for name in self.laws or {}:
            found += [f"laws: {text}" for text in unknown("direction", name, DIRECTIONS)]
        return found + _frame_problems(self.frame)

    def axes(self, dtype: Any = None) -> Array:
        """(3, 3): columns are the frame's axes as drawn."""
        if self.frame is None:
            return jnp.eye(3, dtype=dtype)
        frame = jnp.asarray(self.frame)
        if frame.shape == (3, 3):
            return frame
        x = unit(frame[0])
        z = unit(cross(frame[0], frame[1]))
        return jnp.stack([x, cross(z, x), z], axis=1)

    def mirror_image(self, reflection: Reflection) -> Self:
        """With the axes' images, one of them reversed so that they are right-handed again.

        Components along the reversed axis change sign, those of rotations once more.
        """
        flip = reflection.signs
        if self.frame is None or jnp.shape(self.frame) == (3, 3):
            frame = None if self.frame is None else reflection.tensor(self.frame)
        else:  # of the two directions' images the third axis is reversed
            frame, flip = reflection.polar(self.frame), np.array([1.0, 1.0, -1.0])
        both = np.concatenate([-flip, flip])

        def image(x: Any) -> Any:
            return x if x.ndim == 1 else x * (both[:, None] * both).astype(x.dtype)

        rates = {"stiffness": image(self.stiffness), "damping": image(self.damping)}
        laws = self.laws and {
            n: Reflected(law) if both[DIRECTIONS.index(n)] < 0.0 else law
            for n, law in self.laws.items()
        }
        return changed(self, frame=frame, laws=laws, **rates)

    def measure_pose(self, motion: ElementMotion, r_a: Array, r_b: Array, d: Array) -> Array:
        axes = self.axes(d.dtype)
        s = axes.T @ (r_a.T @ (r_b @ axes))
        if self.measure == "small":
            rho = jnp.stack([s[2, 1], s[0, 2], s[1, 0]])
        else:
            rho = rotation_vector(s)
        return jnp.concatenate([rho, axes.T @ (r_a.T @ d)])

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        delta, rate = self.deformation(motion)
        effort = self.resistance(delta, rate)
        return {
            "force": Measure(effort[3:], "N", f"force on {self.b}, axes of the bushing"),
            "moment": Measure(effort[:3], "N m", f"moment on {self.b} along its rotation"),
            "translation": Measure(delta[3:], "m", f"offset of {self.b}, axes of the bushing"),
            "rotation": Measure(delta[:3], "rad", f"rotation of {self.b}, axes of the bushing"),
        }

    def elastic(self, deformation: Array) -> Array:
        deformation = jnp.asarray(deformation)
        linear = _along(self.stiffness, deformation)
        return linear + self._by_laws(deformation, jnp.zeros_like(deformation))

    def viscous(self, rate: Array) -> Array:
        return _along(self.damping, rate)

    def resistance(self, deformation: Array, rate: Array) -> Array:
        linear = _along(self.stiffness, deformation) + self.viscous(rate)
        return -(linear + self._by_laws(deformation, rate))

    def energy(self, motion: ElementMotion) -> Array | float:
        """``½ δᵀ K δ + Σ ∫ lawᵢ dδᵢ`` [J]."""
        delta, _ = self.deformation(motion)
        stored = 0.5 * delta @ _along(self.stiffness, delta)
        for name, law in (self.laws or {}).items():
            stored = stored + law_energy(law, delta[DIRECTIONS.index(name)])
        return stored

    def dissipation(self, motion: ElementMotion) -> Array:
        delta, rate = self.deformation(motion)
        return -0.5 * rate @ (self.resistance(delta, rate) + self.elastic(delta))

    def _by_laws(self, deformation: Array, rate: Array) -> Array:
        """What the laws add (6,)."""
        laws = self.laws or {}
        if not laws:
            return jnp.zeros_like(deformation)
        none = jnp.zeros((), deformation.dtype)
        pairs = zip(DIRECTIONS, deformation, rate, strict=True)
        return jnp.stack([laws[n](x, v) if n in laws else none for n, x, v in pairs])


def _along(coefficients: Any, x: Array) -> Array:
    c = jnp.asarray(coefficients)
    return c * x if c.ndim == 1 else 0.5 * ((c + c.T) @ x)


def _frame_problems(frame: Any) -> list[str]:
    if frame is None or not is_concrete(frame):
        return []
    f = np.asarray(frame, float)
    if f.shape == (3, 3):
        if np.abs(f.T @ f - np.eye(3)).max() < 1e-5 and np.linalg.det(f) > 0.0:
            return []
        return [
            "frame is no rotation: its columns must be right-handed orthogonal unit vectors; give "
            "two directions (2, 3) to have them made so"
        ]
    sine = np.linalg.norm(np.cross(*f)) / max(np.prod(np.linalg.norm(f, axis=1)), 1e-300)
    return [] if sine > 1e-6 else ["the two directions of frame span no plane; turn one of them"]
