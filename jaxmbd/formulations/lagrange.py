"""Lagrange's equations of the second kind from closed-form poses, by automatic differentiation.

If the poses of all bodies are known as functions of as many coordinates s as the mechanism has
degrees of freedom, joint forces drop out:

    Q = d/dt (∂T/∂ṡ) − ∂T/∂s − Σ (∂t/∂ṡ)ᵀ w

with the kinetic energy ``T(s, ṡ)``, the twists t of the bodies, the applied wrenches w (gravity,
force elements) and the efforts Q along s. The mechanism's joints are not used, but for the speeds
of those that turn a rotor (`Armature`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.absolute import applied_wrenches
from jaxmbd.formulations.absolute_coordinates import StateMotion
from jaxmbd.model import Armature, Mechanism
from jaxmbd.spatial import vee

PosesOf = Callable[[Array], Mapping[str, tuple[Any, Any]]]
"""Coordinates s (n,) to body: (rotation from the drawn orientation (3, 3), COM (3,) [m])."""


def lagrange_efforts(
    mech: Mechanism, poses_of: PosesOf, s: Any, rate: Any, acceleration: Any, t: Any = 0.0
) -> Float[Array, "n"]:
    """Efforts Q along the coordinates s that a motion requires.

    Args:
        mech: the mechanism, of which bodies, gravity and force elements are used.
        poses_of: poses of all bodies in closed form, on the constraints for every s.
        s: coordinates (n,).
        rate: ṡ (n,).
        acceleration: s̈ (n,).
        t: time [s], for force elements.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.formulations import lagrange_efforts
        >>> m = mbd.zoo.simple_pendulum()
        >>> def swing(s):
        ...     c, n = jnp.cos(s[0]), jnp.sin(s[0])
        ...     r = jnp.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])
        ...     return {"bob": (r, r @ m.com("bob"))}
        >>> rest = jnp.zeros(1)
        >>> round(float(lagrange_efforts(m, swing, rest, rest, rest)[0]), 6)
        -9.81
    """
    s, rate, acceleration = (jnp.asarray(x, mech.dtype) for x in (s, rate, acceleration))
    bodies = mech.structure.bodies

    def twists(s: Array, rate: Array) -> dict[str, tuple[Array, Array, Array, Array]]:
        """R, COM, ω and v of the bodies: ``ω̃ = Ṙ Rᵀ``."""
        places, speeds = jax.jvp(
            lambda x: {n: tuple(poses_of(x)[n]) for n in bodies}, (s,), (rate,)
        )
        return {n: (*places[n], vee(speeds[n][0] @ places[n][0].T), speeds[n][1]) for n in bodies}

    def energy(s: Array, rate: Array) -> Array:
        total = jnp.zeros((), s.dtype)
        for n, (r, _, omega, v) in twists(s, rate).items():
            spin = r.T @ omega
            inertia = jnp.asarray(mech.inertia(n), s.dtype)
            total = total + 0.5 * (mech.bodies[n].mass * (v @ v) + spin @ inertia @ spin)
        return total + _rotor_energy(mech, twists(s, rate))

    wrenches = applied_wrenches(StateMotion(mech, twists(s, rate), t))

    def power(trial: Array) -> Array:
        """Power of the applied wrenches at trial rates."""
        moving = twists(s, trial)
        return wrenches @ jnp.concatenate([jnp.concatenate(moving[n][2:]) for n in bodies])

    momentum = jax.grad(energy, argnums=1)
    _, change = jax.jvp(momentum, (s, rate), (rate, acceleration))
    return change - jax.grad(energy)(s, rate) - jax.grad(power)(rate)


def _rotor_energy(mech: Mechanism, state: Mapping[str, Any]) -> Any:
    """``½ Σ a v²`` [J] of the armatures, with the speeds v that the bodies' twists give."""
    total = 0.0
    for name, joint in mech.structure.armatures:
        element, speeds = mech.forces[name], StateMotion(mech, state).speeds(joint)
        assert isinstance(element, Armature)
        total = total + 0.5 * jnp.sum(element.along(speeds.shape[0]) * speeds * speeds)
    return total
