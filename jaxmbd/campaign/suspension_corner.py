"""The demonstration's study: build tolerances of the published multi-link corner.

Hardpoints, spring rate and damping coefficient scatter. Rods and links fit the scattered hardpoints
and the wheel is aligned as drawn (camber and toe are zero at the drawn height), so that the results
show how the scatter changes the *curves*: camber, toe and track change over wheel travel, and the
motion under the wheel load after a release from rest as drawn.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import PointCoordinate, assemble, simulate
from jaxmbd.campaign.monte_carlo import Normal, Progress, Uniform, draw, evaluate
from jaxmbd.campaign.results import Results, Variable
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import point_position, point_velocity, poses
from jaxmbd.model import Mechanism
from jaxmbd.zoo import camber_angle, multi_link, toe_angle

_SPINDLE = (0.0, 1.0, 0.0)
_STRIDE = 2


class CornerStudy(NamedTuple):
    """The scatter and the outputs of the study.

    Attributes:
        hardpoint_sigma: standard deviation of every coordinate of every hardpoint [m].
        spring_tolerance, damper_tolerance: half width, relative to the published value.
        travel: wheel travels of the kinematic sweep, upwards positive [m].
        duration: of the motion after the release [s].
        dt: time step of that motion [s].
    """

    hardpoint_sigma: float = 1e-3
    spring_tolerance: float = 0.05
    damper_tolerance: float = 0.10
    travel: tuple[float, ...] = tuple(np.linspace(-0.06, 0.06, 13).round(6).tolist())
    duration: float = 0.5
    dt: float = 1e-3


def nominal_inputs() -> dict[str, np.ndarray]:
    """The published numbers: `hardpoints` (14, 3) [m], `spring_rate` [N/m], `damping` [N·s/m]."""
    mech = multi_link()
    forces: dict[str, Any] = dict(mech.forces)
    return {
        "hardpoints": np.stack([np.asarray(mech.points[n]) for n in hardpoint_names()]),
        "spring_rate": np.asarray(forces["spring"].stiffness),
        "damping": np.asarray(forces["shock"].damping),
    }


def hardpoint_names() -> tuple[str, ...]:
    """Names of the rows of `hardpoints`."""
    return multi_link().structure.points


def corner(sample: dict[str, Any]) -> Mechanism:
    """The mechanism of one sample."""
    points = dict(zip(hardpoint_names(), sample["hardpoints"], strict=True))
    return multi_link(points, spring_rate=sample["spring_rate"], damping=sample["damping"])


def travel_sweep(mech: Mechanism, travel: Array) -> tuple[dict[str, Array], Array, Array]:
    """Camber, toe [rad] and track change [m] over wheel travel, each height from the last.

    Args:
        mech: the corner, with the wheel at travel zero as drawn.
        travel: of the wheel centre, upwards from its drawn position (n,) [m].

    Returns:
        the curves (n,); the coordinates at travel zero (nq,); the first status that is not OK.
    """
    drawn = mech.point("wheel_centre")
    height = PointCoordinate("upright", "wheel_centre", "z")

    def at(guess: Array, z: Array) -> tuple[Array, Any]:
        found = assemble(mech, known={height: drawn[2] + z}, guess=guess)
        spindle = poses(mech, found.q)["upright"].rotation @ jnp.asarray(_SPINDLE)
        centre = point_position(mech, found.q, "upright", "wheel_centre")
        curves = (camber_angle(spindle), toe_angle(spindle), centre[1] - drawn[1])
        return jnp.where(found.status == 0, found.q, guess), (curves, found.q, found.status)

    # One loop for the drawn height and all others, so that the search is compiled once.
    heights = jnp.concatenate([jnp.zeros(1, travel.dtype), travel])
    _, (curves, q, status) = lax.scan(at, jnp.asarray(neutral(mech)), heights)
    named = dict(zip(("camber", "toe", "track_change"), curves, strict=True))
    return {n: x[1:] for n, x in named.items()}, q[0], _first_failure(status)


def release(mech: Mechanism, q: Array, study: CornerStudy) -> tuple[dict[str, Array], Array]:
    """The motion from rest at q: wheel travel [m], its speed [m/s], forces [N].

    Forces of spring and damper are positive in compression.

    Returns:
        time histories at every second step, with `t` and the closure error `drift`; the status.
    """
    drawn, forces = mech.point("wheel_centre"), mech.forces
    spring: Any = forces["spring"]
    shock: Any = forces["shock"]

    def outputs(t: Array, q: Array, v: Array) -> dict[str, Array]:
        line = point_position(mech, q, "trailing", "shock_bottom") - mech.point("shock_top")
        coil = point_position(mech, q, "trailing", "spring_bottom") - mech.point("spring_top")
        rate = line @ point_velocity(mech, q, v, "trailing", "shock_bottom")
        return {
            "travel": point_position(mech, q, "upright", "wheel_centre")[2] - drawn[2],
            "speed": point_velocity(mech, q, v, "upright", "wheel_centre")[2],
            "spring_force": spring.stiffness * (spring.free_length - jnp.sqrt(coil @ coil)),
            "damper_force": -shock.damping * rate / jnp.sqrt(line @ line),
        }

    motion = simulate(
        mech,
        q,
        jnp.zeros(topology(mech).nv),
        t1=study.duration,
        dt=study.dt,
        save_every=_STRIDE,
        outputs=outputs,
        outputs_only=True,
    )
    return {"t": motion.t, "drift": motion.drift, **motion.outputs}, motion.status


def corner_outputs(sample: dict[str, Any], study: CornerStudy) -> dict[str, Array]:
    """All outputs of one sample; NaN, with a status, if it fails."""
    mech = corner(sample)
    curves, start, swept = travel_sweep(mech, jnp.asarray(study.travel))
    motion, moved = release(mech, start, study)
    status = _first_failure(jnp.stack([swept, moved]))
    travel, t = motion["travel"], motion["t"]
    outputs = {
        **curves,
        "wheel_travel": travel[_kept(study)],
        "camber_bump": curves["camber"][-1],
        "camber_rebound": curves["camber"][0],
        "toe_bump": curves["toe"][-1],
        "toe_rebound": curves["toe"][0],
        "toe_range": jnp.ptp(curves["toe"]),
        "track_range": jnp.ptp(curves["track_change"]),
        "travel_end": travel[-1],
        "rise_time": _crossing(t, travel, 0.9 * travel[-1]),
        "speed_peak": jnp.max(jnp.abs(motion["speed"])),
        "damper_peak": jnp.max(jnp.abs(motion["damper_force"])),
        "spring_end": motion["spring_force"][-1],
        "drift": motion["drift"],
    }
    blank = {name: jnp.where(status == 0, x, jnp.nan) for name, x in outputs.items()}
    return {**blank, "status": status}


def _first_failure(status: Array) -> Array:
    return status[jnp.argmax(status != 0)]


def _crossing(t: Array, x: Array, level: Array) -> Array:
    """The time when x first reaches `level`, interpolated linearly between saved times."""
    k = jnp.maximum(jnp.argmax(x >= level), 1)
    return t[k - 1] + (level - x[k - 1]) / (x[k] - x[k - 1]) * (t[k] - t[k - 1])


def _kept(study: CornerStudy) -> np.ndarray:
    """Indices of the saved times kept in the results, about fifty."""
    saves = max(1, round(study.duration / (study.dt * _STRIDE)))
    return np.unique(np.linspace(0, saves, min(saves, 50) + 1).round().astype(int))


def run_corner(
    samples: int = 2000,
    seed: int = 0,
    study: CornerStudy | None = None,
    *,
    inputs: dict[str, np.ndarray] | None = None,
    chunks: int = 8,
    progress: Progress | None = None,
) -> Results:
    """The whole study: draw, evaluate, gather.

    Args:
        samples: number of samples.
        seed: seed of the random numbers.
        study: scatter and outputs; by default those of `CornerStudy`.
        inputs: the caller's samples instead of random ones, each (n, …).
        chunks: number of chunks to evaluate.
        progress: wraps the iteration over the chunks (`progress_bar`).

    Returns:
        inputs and outputs of all samples, with units.
    """
    study = study or CornerStudy()
    nominal = nominal_inputs()
    if inputs is None:
        scatter = {
            "hardpoints": Normal(study.hardpoint_sigma),
            "spring_rate": Uniform(study.spring_tolerance),
            "damping": Uniform(study.damper_tolerance),
        }
        inputs = draw(nominal, scatter, samples, seed)
    # The published corner is evaluated by the same program, before the samples.
    rows = {n: np.concatenate([nominal[n][None], np.asarray(x)]) for n, x in inputs.items()}
    found = evaluate(partial(corner_outputs, study=study), rows, chunks=chunks, progress=progress)
    variables = {
        **_axes(study),
        **{n: Variable(np.asarray(x), *_INPUTS[n], role="input") for n, x in inputs.items()},
        **{n: Variable(found[n][1:], *about) for n, about in _OUTPUTS.items()},
    }
    settings = {"samples": len(inputs["damping"]), "seed": seed, **study._asdict()}
    title = "Build tolerances of the published multi-link suspension corner"
    return Results(title, variables, {n: found[n][0] for n in _OUTPUTS}, settings)


def _axes(study: CornerStudy) -> dict[str, Variable]:
    times = _kept(study) * study.dt * _STRIDE
    about = {
        "travel": (np.array(study.travel), "m", "wheel travel held in the sweep, upwards"),
        "t": (times, "s", "time after the release"),
        "hardpoint": (np.array(hardpoint_names()), "", "names of the hardpoints"),
        "axis": (np.array(["x", "y", "z"]), "", "forward, left, up"),
    }
    return {n: Variable(x, unit, text, (n,), "axis") for n, (x, unit, text) in about.items()}


_CURVE = ("sample", "travel")
_INPUTS = {
    "hardpoints": ("m", "hardpoints as drawn", ("sample", "hardpoint", "axis")),
    "spring_rate": ("N/m", "spring rate", ("sample",)),
    "damping": ("N s/m", "damper coefficient", ("sample",)),
}
_OUTPUTS = {
    "camber": ("rad", "camber, positive: top leans outward", _CURVE),
    "toe": ("rad", "toe, positive: toe-in", _CURVE),
    "track_change": ("m", "wheel centre's lateral motion, outward", _CURVE),
    "wheel_travel": ("m", "wheel travel after the release", ("sample", "t")),
    "camber_bump": ("rad", "camber, wheel up", ("sample",)),
    "camber_rebound": ("rad", "camber, wheel down", ("sample",)),
    "toe_bump": ("rad", "toe, wheel up", ("sample",)),
    "toe_rebound": ("rad", "toe, wheel down", ("sample",)),
    "toe_range": ("rad", "bump steer: range of toe", ("sample",)),
    "track_range": ("m", "range of track change", ("sample",)),
    "travel_end": ("m", "wheel travel at the end", ("sample",)),
    "rise_time": ("s", "time to 90 % of the end", ("sample",)),
    "speed_peak": ("m/s", "peak wheel speed", ("sample",)),
    "damper_peak": ("N", "peak damper force", ("sample",)),
    "spring_end": ("N", "spring force at the end", ("sample",)),
    "drift": ("m", "largest closure error met", ("sample",)),
    "status": ("", "0 ok, else a jaxmbd.Status", ("sample",)),
}
