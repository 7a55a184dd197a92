"""A conservative four-bar over 1000 s: change of energy and closure at 10 000 saved times."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from integration_cases.timing import once

SAVED = 0.1  # [s]
SPEEDS = {"turning round": 6.0, "swinging from rest": 0.0}  # of the crank at the start [rad/s]
METHODS: dict[str, tuple[Any, float]] = {  # and the step or the interval of saved times [s]
    "RK4, 0.0005 s": (mbd.RK4(), 5e-4),
    "RK4, 0.00025 s": (mbd.RK4(), 2.5e-4),
    "Variational, 0.002 s": (mbd.Variational(), 2e-3),
    "Variational of order 4, 0.005 s": (mbd.Variational(order=4), 5e-3),
    "DormandPrince, 1e-08": (mbd.DormandPrince(rtol=1e-8, atol=1e-10), SAVED),
    "DormandPrince, 1e-10": (mbd.DormandPrince(rtol=1e-10, atol=1e-12), SAVED),
    "DormandPrince8, 1e-10": (mbd.DormandPrince8(rtol=1e-10, atol=1e-12), SAVED),
    "Rodas, 1e-10": (mbd.Rodas(rtol=1e-10, atol=1e-12), SAVED),
}


def measured(quick: bool = False) -> dict[str, Any]:
    """A row for each start and method; the change of energy is a share of the largest kinetic."""
    mech, end = mbd.zoo.four_bar(), 1.0 if quick else 1000.0
    q = mbd.assemble(mech).q

    @jax.jit
    def watched(q: Any, v: Any) -> Any:
        def one(q: Any, v: Any) -> Any:
            kinetic = mbd.kinetic_energy(mech, q, v)
            rest = jnp.max(jnp.abs(mbd.constraint_residual(mech, q)))
            return kinetic, kinetic + mbd.potential_energy(mech, q), rest

        return jax.vmap(one)(q, v)

    def row(start: str, name: str) -> dict[str, Any]:
        method, dt = METHODS[name]
        v = mbd.assemble_velocity(mech, q, {"A": SPEEDS[start]})
        options = {"dt": dt, "save_every": round(SAVED / dt), "throw": False}
        cost, run = once(lambda: mbd.simulate(mech, q, v, t1=end, method=method, **options))
        kinetic, energy, rest = map(np.asarray, watched(run.q, run.v))
        drift = np.max(np.abs(energy - energy[0]))
        return {
            "start": start,
            "method": name,
            "largest_kinetic_energy_J": float(np.max(kinetic)),
            "energy_drift_J": float(drift),
            "energy_drift": float(drift / np.max(kinetic)),
            "closure_m": float(np.max(rest)),
            "largest_angle_rad": float(np.max(np.abs(run.q))),
            "estimate": float(run.error),
            "status": mbd.Status(int(run.status)).name,
            "steps": int(run.steps),
            "cpu_s": cost.cpu,
        }

    starts = list(SPEEDS)[:1] if quick else SPEEDS
    return {"seconds": end, "rows": [row(start, name) for start in starts for name in METHODS]}
