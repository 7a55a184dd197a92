"""All conditions on a mechanism's unknown particles, linearised; efforts as forces on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.particles.conditions import whole_turns
from jaxmbd.formulations.particles.system import ParticleSystem, Positions
from jaxmbd.model import Drive, PointDrive


def linearised(
    function: Callable[[Array], Array], y: Float[Array, "n"], rate: Float[Array, "n"]
) -> tuple[Array, Array, Array]:
    """f(y), ∂f/∂y, and the second derivative of f along the straight line ``y + ẏ s``."""

    def along(x: Array) -> Array:
        return jax.jvp(function, (x,), (rate,))[1]

    return function(y), jax.jacfwd(function)(y), jax.jvp(along, (y,), (rate,))[1]


class Conditions(NamedTuple):
    """All conditions on the unknown particles: φ, J, γ, velocity error, and the rows by name."""

    phi: Float[Array, "rows"]
    jacobian: Float[Array, "rows n"]
    gamma: Float[Array, "rows"]
    drift: Float[Array, "rows"]
    parts: dict[str, slice]
    """Joint or drive to its rows; those of the distances come first."""


def conditions(
    system: ParticleSystem, t: Array, y: Float[Array, "n"], rate: Float[Array, "n"]
) -> Conditions:
    """Distances within bodies, joints between them, couplings, drives: ``J ÿ = γ``."""
    mech, parts = system.mech, {}
    drives = [mech.drives[n] for n in system.top.drives]
    values = [d.value(t) for d in drives]

    def all_rows(x: Array) -> Array:
        r = system.positions(x.reshape(-1, 3))
        rows = [("", system.distance_rows(b, r)) for b in system.top.bodies]
        rows += [(name, system.joint_rows(name, r)) for name in system.halves]
        for name in system.top.couplings:
            coupling = mech.couplings[name]
            q = jnp.stack([_coordinates(system, joint, r)[k] for joint, k in coupling.terms])
            rows.append((name, coupling.condition(q)[None]))
        rows += [(n, _driven(system, d, r)[None]) for n, d in _drives(system)]
        at = 0
        for name, row in rows:
            if name and len(row):
                parts[name] = slice(at, at + len(row))
            at += len(row)
        return jnp.concatenate([jnp.zeros(0, x.dtype), *(row for _, row in rows)])

    phi, jacobian, second = linearised(all_rows, y, rate)
    before = jnp.zeros(phi.shape[0] - len(drives), phi.dtype)
    wanted = [jnp.concatenate([before, *(x[k][None] for x in values)]) for k in range(3)]
    error = phi - wanted[0]
    for name, drive in _drives(system):
        if isinstance(drive, Drive) and mech.joints[drive.joint].speeds[drive.index] == "angle":
            at = parts[name].start  # the angle is known up to full turns
            error = error.at[at].add(-whole_turns(error[at]))
    return Conditions(error, jacobian, wanted[2] - second, jacobian @ rate - wanted[1], parts)


def _drives(system: ParticleSystem) -> list[tuple[str, Drive | PointDrive]]:
    """Drives by name, in the order of their rows."""
    return [(n, system.mech.drives[n]) for n in system.top.drives]


def _driven(system: ParticleSystem, drive: Drive | PointDrive, r: Positions) -> Float[Array, ""]:
    """The coordinate of a joint or of a point that a drive prescribes."""
    if isinstance(drive, PointDrive):
        c = system.of_point(drive.body, system.mech.point(drive.at))
        return (c @ r[drive.body])[drive.component]
    return _coordinates(system, drive.joint, r)[drive.index]


def _coordinates(system: ParticleSystem, name: str, r: Positions) -> Array:
    q = system.coordinates(name, r)
    if q is None:
        kind = type(system.mech.joints[name]).__name__
        raise ValueError(f"a drive or an effort on '{name}': a {kind} has no angles or travels")
    return q


def effort_forces(
    system: ParticleSystem, efforts: list[tuple[str, Array]], y: Float[Array, "n"]
) -> Float[Array, "n"]:
    """``(∂q/∂y)ᵀ τ``: forces with the power of the efforts."""

    def power(x: Array) -> Array:
        r = system.positions(x.reshape(-1, 3))
        terms = [jnp.zeros((), x.dtype)]
        terms += [_coordinates(system, name, r) @ value for name, value in efforts]
        return jnp.sum(jnp.stack(terms))

    return jax.grad(power)(y) if efforts else jnp.zeros_like(y)
