"""Problems A01 to A05 of the IFToMM library of computational benchmarks, for their official times.

Each mechanism is from the zoo; each error is against a reference that shares no code with it:

* A01, a pendulum, 10 s: its differential equation at a tolerance of 1e-13;
* A02, forty four-bars, 20 s, 81 bodies, through all their singular positions: the differential
  equation of their single degree of freedom, at 1e-13; the library's limits are 1e-1 m and, for
  high precision, 1e-3 m;
* A03, Andrews' squeezer, 0.05 s: the published values of its seven angles at 0.03 s;
* A04, Bricard's mechanism, 10 s: energy and closure, and the point of the library's plot;
* A05, the stiff flyball governor, 10 s: the equations of the symmetric motion (angle of the shaft,
  height of the slider, angle of both rods), written out and integrated by Radau's method.

    python benchmarks/papers/iftomm.py --json benchmarks/results/iftomm.json
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import _script  # noqa: E402
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from jaxmbd.zoo.iftomm import ANDREWS_START

G = 9.81
SQUEEZER_AT_30_MS = {  # published by the test set for IVP solvers
    "O": 15.81077119629904,
    "F": -15.75637105984298,
    "B": 0.04082224013073101,
    "G": -0.5347301163226948,
    "A5": 0.5244099658805303,
    "H": 0.5347301163226948,
    "A7": 1.048080741042263,
}


def run(mech: Any, q0: Any, v0: Any, t1: float, dt: float, every: float, outputs: Any) -> Any:
    """A simulation that also saves the energy, with its computing time."""

    def observe(t: Any, q: Any, v: Any) -> dict[str, Any]:
        energy = mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)
        return {"energy": energy, **outputs(q, v)}

    clock = time.perf_counter()
    s = mbd.simulate(mech, q0, v0, t1=t1, dt=dt, save_every=round(every / dt), outputs=observe)
    s.q.block_until_ready()
    energy = np.asarray(s.outputs["energy"])
    found = {
        "t_end_s": t1,
        "dt_s": dt,
        "bodies": len(mech.structure.bodies),
        "constraint_rows": mbd.topology(mech).nc,
        "seconds_with_compiling": time.perf_counter() - clock,
        "loop_drift_m": float(s.drift),
        "energy_change_J": float(np.max(np.abs(energy - energy[0]))),
    }
    return s, found


def pendulum() -> dict[str, Any]:
    mech = mbd.zoo.simple_pendulum()
    s, found = run(
        mech, mbd.neutral(mech), np.zeros(1), 10.0, 1e-3, 0.01, lambda q, v: {"angle": q[0]}
    )
    exact = solve_ivp(
        lambda t, y: [y[1], G * np.cos(y[0])],
        (0.0, 10.0),
        [0.0, 0.0],
        "DOP853",
        np.asarray(s.t),
        rtol=1e-13,
        atol=1e-13,
    )
    ours = np.asarray(s.outputs["angle"])
    error = np.hypot(np.cos(ours) - np.cos(exact.y[0]), np.sin(ours) - np.sin(exact.y[0]))
    return found | {"position_error_m": float(error.max())}


def n_four_bar(n: int, dt: float) -> dict[str, Any]:
    """θ'' = w sin θ / I of the first link from the upright, I = (N + 1)/3 + N."""
    mech = mbd.zoo.n_four_bar(n, planar=True)
    layout = mbd.topology(mech).layout
    v0 = np.zeros(mbd.topology(mech).nv)
    for name in mbd.topology(mech).tree:
        v0[layout[name].v] = -1.0 if name.startswith("ground") else 1.0
    place = layout["ground_0"].q.start
    s, found = run(mech, mbd.neutral(mech), v0, 20.0, dt, 0.05, lambda q, v: {"angle": q[place]})
    inertia, moment = (n + 1) / 3 + n, ((n + 1) / 2 + n) * G
    exact = solve_ivp(
        lambda t, y: [y[1], moment / inertia * np.sin(y[0])],
        (0.0, 20.0),
        [0.0, 1.0],
        "DOP853",
        np.asarray(s.t),
        rtol=1e-13,
        atol=1e-13,
    )
    ours, theta = -np.asarray(s.outputs["angle"]), exact.y[0]
    error = np.hypot(np.cos(ours) - np.cos(theta), np.sin(ours) - np.sin(theta))
    passes = int(np.abs(theta).max() / np.pi + 0.5)
    return found | {"position_error_m": float(error.max()), "singular_passes": passes}


def squeezer() -> dict[str, Any]:
    mech = mbd.zoo.andrews_squeezer()
    start, layout = ANDREWS_START, mbd.topology(mech).layout
    # the drawn angles, by the joints that measure them
    drawn = dict(zip(("O", "F", "B", "G", "A5", "H", "A7"), start.values(), strict=True))
    v0 = np.zeros(mbd.topology(mech).nv)
    s, found = run(
        mech, mbd.neutral(mech), v0, 0.05, 5e-6, 1e-4, lambda q, v: {"turn": q[layout["O"].q][0]}
    )
    at = int(np.argmin(np.abs(np.asarray(s.t) - 0.03)))
    errors = [
        abs(float(s.q[at][layout[joint].q][0]) + drawn[joint] - angle)
        for joint, angle in SQUEEZER_AT_30_MS.items()
    ]
    # the motor's work equals the gain in energy
    gained = np.asarray(s.outputs["energy"]) - float(s.outputs["energy"][0])
    work = 0.033 * np.asarray(s.outputs["turn"])
    found["energy_change_J"] = float(np.max(np.abs(gained - work)))
    return found | {"angle_error_rad": max(errors)}


def bricard() -> dict[str, Any]:
    mech = mbd.zoo.bricard()
    q0 = mbd.assemble(mech).q
    v0 = np.zeros(mbd.topology(mech).nv)
    s, found = run(
        mech,
        q0,
        v0,
        10.0,
        1e-3,
        0.02,
        lambda q, v: {"P3": mbd.point_position(mech, q, "rod2", "P3")},
    )
    path = np.asarray(s.outputs["P3"])
    return found | {
        "x_at_0_2.5_5_7.5_10_s": [float(path[round(t / 0.02), 0]) for t in (0, 2.5, 5, 7.5, 10)],
        "highest_y_m": float(path[:, 1].max()),
    }


def symmetric_governor(times: Any) -> Any:
    """Height of the slider (n,) [m]: three equations, by Lagrange, for the symmetric motion.

    ``2T = J(φ) ψ̇² + 2 B φ̇² + m ṡ²``, with φ the rods' angle below the level.
    """
    bar, ball, block, k, c = 0.3, 5.0, 3.0, 8e5, 4e4
    thin = bar * 1e-4 / 12.0
    swing = bar / 12.0 + thin + bar / 4.0 + ball

    def inertia(phi: Any) -> Any:
        """J(φ) of all about the shaft [kg m²]."""
        s, co = jnp.sin(phi), jnp.cos(phi)
        rod = 2.0 * thin * s**2 + (bar / 12.0 + thin) * co**2 + bar * (0.05 + 0.5 * co) ** 2
        return 2.0 * thin + block * 0.01 / 6.0 + 2.0 * (rod + ball * (0.05 + co) ** 2)

    def length(phi: Any, s: Any) -> Any:
        return jnp.sqrt((0.5 * jnp.cos(phi)) ** 2 + (1.0 - 0.5 * jnp.sin(phi) - s) ** 2)

    slope = jax.grad(inertia)

    def rates(t: Any, y: Any) -> Any:
        _, phi, s, psidot, phidot, sdot = y
        (l_phi, l_s) = jax.grad(length, argnums=(0, 1))(phi, s)
        pull = k * (length(phi, s) - 0.5) + c * (l_phi * phidot + l_s * sdot)
        weight = 2.0 * G * (0.5 * bar + ball) * jnp.cos(phi)
        centrifugal = 0.5 * slope(phi) * psidot**2
        return jnp.stack(
            [
                psidot,
                phidot,
                sdot,
                -slope(phi) * phidot * psidot / inertia(phi),
                (centrifugal + weight - 2.0 * pull * l_phi) / (2.0 * swing),
                -G - 2.0 * pull * l_s / block,
            ]
        )

    start = np.array([0.0, np.pi / 6, 0.5, 2.0 * np.pi, 0.0, 0.0])
    found = solve_ivp(
        jax.jit(rates),
        (0.0, float(times[-1])),
        start,
        "Radau",
        np.asarray(times),
        rtol=1e-10,
        atol=1e-12,
        jac=jax.jit(jax.jacfwd(rates, argnums=1)),
    )
    return found.y[2]


def governor() -> dict[str, Any]:
    mech = mbd.zoo.flyball_governor()
    q0 = mbd.neutral(mech)
    v0 = mbd.assemble_velocity(mech, q0, {"shaft": 2.0 * np.pi})
    place = mbd.topology(mech).layout["slide"].q.start
    s, found = run(mech, q0, v0, 10.0, 1e-5, 0.02, lambda q, v: {"s": 0.5 + q[place]})
    error = np.abs(np.asarray(s.outputs["s"]) - symmetric_governor(s.t))
    found["energy_lost_to_dampers_J"] = found.pop("energy_change_J")
    return found | {"slider_error_m": float(error.max())}


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--loops", type=int, default=40, help="of the N-four-bar")
    parser.add_argument("--step", type=float, default=5e-4, help="of the N-four-bar [s]")
    given = parser.parse_args()
    _script.start(cache=False)
    problems = {
        "A01 simple pendulum": pendulum,
        f"A02 N-four-bar, N = {given.loops}": lambda: n_four_bar(given.loops, given.step),
        "A03 Andrews' squeezer": squeezer,
        "A04 Bricard": bricard,
        "A05 stiff flyball governor": governor,
    }
    results = {}
    for name, problem in problems.items():
        results[name] = problem()
        print(name)
        for key, value in results[name].items():
            print(f"    {key}: {value:.4g}" if isinstance(value, float) else f"    {key}: {value}")
    _script.write(given.json, results)


if __name__ == "__main__":
    main()
