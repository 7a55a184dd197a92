"""The inertias of rotors along the speeds, which are added to the diagonal of the mass matrix."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from jaxmbd.graph import topology
from jaxmbd.model.forces import Armature
from jaxmbd.model.mechanism import Mechanism


def armature_diagonal(mech: Mechanism) -> Array | None:
    """Σ a (nv,) of all armatures [kg m² or kg]; None without any, so that they cost nothing."""
    if not mech.structure.armatures:
        return None
    top = topology(mech)
    total = jnp.zeros(top.nv, jnp.asarray(mech.gravity).dtype)
    for name, joint in mech.structure.armatures:
        place, element = top.layout[joint].v, mech.forces[name]
        assert place is not None and isinstance(element, Armature)
        total = total.at[place].add(element.along(place.stop - place.start))
    return total


def rotor_efforts(mech: Mechanism, vdot: Array | None) -> Array | None:
    """``a v̇`` (nv,), what the rotors take of the efforts; None without v̇ or without any."""
    if vdot is None or (along := armature_diagonal(mech)) is None:
        return None
    return along * vdot


def rotor_energy(mech: Mechanism, v: Array) -> Array | float:
    """``½ Σ a v²`` [J]."""
    along = armature_diagonal(mech)
    return 0.0 if along is None else 0.5 * jnp.sum(along * v * v)
