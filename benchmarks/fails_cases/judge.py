"""Check of a result against the Newton-Euler equations in absolute coordinates.

The errors are backward errors: the residuals of the equations, in the mechanism's own scales. They
stay small for a correct result also near a singularity, where the result itself is sensitive.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd.formulations.absolute import all_rows, body_loads, body_masses, state_motion

LIMITS = {"position": 1e-8, "velocity": 1e-6, "acceleration": 1e-5, "balance": 1e-5}
"""Largest errors of a result that counts as correct."""
RUN_LIMITS = LIMITS | {"acceleration": 3e-3, "balance": 3e-3}
"""The same of the end of a run, at a state that `check_state` calls inaccurate."""


def matrices(mech: mbd.Mechanism, q: Any, v: Any, vdot: Any, t: Any = 0.0) -> dict[str, Any]:
    """The Newton-Euler equations and the constraint rows of all joints for a result."""
    motion, bodies = state_motion(mech, q, v, t), mech.structure.bodies
    rows = all_rows(motion)
    twist = jnp.concatenate([motion.twist(n) for n in bodies])
    accelerations = mbd.body_accelerations(mech, q, v, vdot)
    jacobian = jnp.concatenate([r.of(bodies) for r in rows])
    lengths = np.concatenate([r.lengths for r in rows])
    return {
        "length": motion.length,
        "distance": jnp.max(jnp.abs(jnp.stack([motion.pose(n).position for n in bodies]))),
        "mass": body_masses(motion),
        "jacobian": jacobian,
        "phi": jnp.concatenate([r.phi for r in rows]),
        "slip": jacobian @ twist - jnp.concatenate([r.rate for r in rows]),
        "gamma": jnp.concatenate([r.gamma for r in rows]),
        "twist": twist,
        "acceleration": jnp.concatenate([accelerations[n] for n in bodies]),
        "force": body_loads(motion),
        "travel": jnp.asarray(lengths),
    }


def errors(mech: Any, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> list[dict[str, float]]:
    """Backward errors of (q, v, v̇) for each sample of a batch."""
    found = jax.tree_util.tree_map(np.asarray, _batched(mech, q, v, vdot))
    return [backward_errors({k: x[i] for k, x in found.items()}) for i in range(len(q))]


_batched = jax.jit(jax.vmap(matrices))


def backward_errors(x: dict[str, Any]) -> dict[str, float]:
    """The errors of one sample from its `matrices`."""
    n, travel, length = x["twist"].size, x["travel"], float(x["length"])
    if not all(np.all(np.isfinite(y)) for y in x.values()):
        return dict.fromkeys(LIMITS, np.inf)
    turning = np.arange(n) % 6 < 3
    # Angles become arcs about the longest arm, which may be far from the drawing's length.
    reach = np.max(np.abs(x["jacobian"][travel][:, turning]), initial=0.0) or length
    along = np.where(turning, 1.0 / reach, 1.0)
    row = np.where(travel, 1.0, reach)
    # World coordinates far from the origin are rounded, those of the drawing to begin with.
    rounding = np.where(travel, 4.0 * np.finfo(float).eps * x["distance"], 0.0)
    jacobian = row[:, None] * x["jacobian"] * along
    speed, acceleration = x["twist"] / along, x["acceleration"] / along
    inertia, force = along * (x["mass"] @ x["acceleration"]), along * x["force"]
    # A gear between an angle and a travel has a row as long as the reach, beside which the others
    # would seem to be rounding.
    longest = np.maximum(np.linalg.norm(jacobian, axis=1, keepdims=True), 1.0)
    _, sizes, vt = np.linalg.svd(jacobian / longest, full_matrices=False)
    basis = vt[sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300)]
    missing = inertia - force
    missing = missing - basis.T @ (basis @ missing)
    own = np.diagonal(along[:, None] * x["mass"] * along)
    natural = np.abs(force[own > 0.0]) / own[own > 0.0]  # accelerations of the bodies if free
    return {
        "position": _ratio(
            row * np.maximum(np.abs(x["phi"]) - rounding, 0.0), np.array([max(reach, length)])
        ),
        "velocity": _ratio(row * x["slip"], speed, np.sqrt(natural * length)),
        "acceleration": _ratio(
            jacobian @ acceleration - row * x["gamma"], acceleration, row * x["gamma"], natural
        ),
        "balance": _ratio(missing, inertia, force),
    }


def _ratio(error: np.ndarray, *scales: np.ndarray) -> float:
    size = max(float(np.max(np.abs(s), initial=0.0)) for s in scales)
    return float(np.max(np.abs(error), initial=0.0)) / size if size > 0.0 else 0.0


def wrong(found: dict[str, float], limits: dict[str, float] = LIMITS) -> list[str]:
    """The errors of a result that are too large; empty for a correct one."""
    return [f"{k} {x:.1e}" for k, x in found.items() if not x < limits[k]]
