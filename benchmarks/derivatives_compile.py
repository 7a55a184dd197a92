"""Cost of compiling derivatives of statics and modes: CPU seconds and memory, nothing cached.

    python benchmarks/derivatives_compile.py [--cases modes_axle,...] [--limit 600] [--json FILE]

Each case is a process of its own with empty caches: what a user waits for who asks for the
derivatives of natural frequencies or of a compliance matrix for the first time. `first` is the CPU
time of that call with all its compiling, `again` the wall time of the next one. The derivatives are
checked against differences of the values.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import _script

_script.start(cache=False)

import jax  # noqa: E402
import numpy as np  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd import lanes, suspension  # noqa: E402

Function = Callable[[Any], Any]
BATCH = 256
RATES, DAMPING = (1e4, 1e7), (10.0, 1e3)


def strut_axle() -> tuple[mbd.Mechanism, list[str]]:
    """A steered MacPherson axle with every joint of both sides soft: 39 freedoms, no loop left."""
    mech = mbd.zoo.macpherson_steering(amplitude=None)
    soft = ("hinge", "mount", "arm_ball", "tie_inner", "tie_outer")
    names = [f"{side}_{joint}" for side in ("left", "right") for joint in soft]
    for name in names:
        mech = mbd.soften(mech, name, RATES, DAMPING)
    forces: dict[str, Any] = {"rack": mbd.TorsionSpring("rack", stiffness=1e5)}
    for side in ("left", "right"):
        forces[f"{side}_tyre"] = None
        place = (f"{side}_upright", f"{side}_wheel_centre")
        load = 3500.0 if side == "left" else 3900.0  # or frequencies would be equal in pairs
        forces[f"{side}_load"] = mbd.PointForce(*place, force=(0.0, 0.0, load))
    paths = [f"forces/{name}/stiffness/{i}" for name in names for i in (0, 1)]
    return mech.replace(forces=forces), paths


def wishbone_axle() -> tuple[mbd.Mechanism, list[str]]:
    """An axle of two wishbone corners with soft hinges and rigid rods: 26 freedoms, 2 loops."""
    corner = mbd.zoo.double_wishbone(wheel_load=3000.0)
    for hinge in ("rev_uca", "rev_lca"):
        corner = mbd.soften(corner, hinge, RATES, DAMPING)
    paths = [
        f"forces/left_{hinge}/stiffness/{i}" for hinge in ("rev_uca", "rev_lca") for i in (0, 1)
    ]
    paths += [f"points/left_{p}/{x}" for p in ("tierod_outboard", "lower_arm_ball") for x in "xyz"]
    heavier = {"forces/right_wheel_load/force/z": 3400.0}  # or frequencies would be equal in pairs
    return mbd.set_variables(suspension.axle(corner), heavier), paths


def corner() -> tuple[mbd.Mechanism, list[str]]:
    """A multi-link corner with three soft joints: 16 freedoms, 1 loop."""
    mech = mbd.zoo.multi_link()
    joints = ("rev_ua", "univ_lat", "univ_tl")
    for joint in joints:
        mech = mbd.soften(mech, joint, RATES, DAMPING)
    return mech, [f"forces/{joint}/stiffness/{i}" for joint in joints for i in (0, 1)]


def modes(mech: mbd.Mechanism, paths: list[str]) -> Function:
    """Natural frequencies about the equilibrium, those of free spins left out."""
    q = mbd.equilibrium(mech).q
    state = mbd.linearize(mech, q)
    moving = np.flatnonzero(np.asarray(state.frequencies()) > 1e-3)

    def frequencies(x: Any) -> Any:
        now = mbd.set_variables(mech, dict(zip(paths, x, strict=True)))
        rest = mbd.equilibrium(now, guess=q, throw=False).q
        return mbd.linearize(now, rest, independent=state.independent).frequencies()[moving]

    return frequencies


def matrix(mech: mbd.Mechanism, paths: list[str]) -> Function:
    """The compliance matrix of the wishbone axle."""
    wheels = suspension.axle_corners(mech, suspension.zoo_corner("double_wishbone"))

    def compliance(x: Any) -> Any:
        now = mbd.set_variables(mech, dict(zip(paths, x, strict=True)))
        return suspension.compliance(now, wheels, throw=False).matrix

    return compliance


def reverse(fn: Function, x: np.ndarray) -> Callable[[], Any]:
    return lambda: jax.jacrev(fn)(x)


def forward(fn: Function, x: np.ndarray) -> Callable[[], Any]:
    """All columns of the Jacobian as one batch."""
    columns = lanes.vmap(lambda x, dx: jax.jvp(fn, (x,), (dx,))[1])
    many, unit = np.tile(x, (len(x), 1)), np.eye(len(x))
    return lambda: np.moveaxis(np.asarray(columns(many, unit)), 0, -1)


def starts(fn: Function, x: np.ndarray) -> Callable[[], Any]:
    """Values and one directional derivative of many designs; the first is the nominal one."""
    scatter = np.random.default_rng(0).normal(scale=1e-3, size=(BATCH, len(x)))
    scatter[0] = 0.0
    pair = lanes.vmap(lambda x, dx: jax.jvp(fn, (x,), (dx,)))
    return lambda: np.asarray(pair(x * (1.0 + scatter), np.tile(x, (BATCH, 1)))[1][0])


CASES: dict[str, tuple[Any, Any, Any]] = {
    "modes_corner_reverse": (corner, modes, reverse),
    "modes_corner_forward": (corner, modes, forward),
    "modes_axle_reverse": (wishbone_axle, modes, reverse),
    "modes_axle_soft_reverse": (strut_axle, modes, reverse),
    "modes_axle_soft_forward": (strut_axle, modes, forward),
    "compliance_axle_forward": (wishbone_axle, matrix, forward),
    "compliance_axle_starts": (wishbone_axle, matrix, starts),
}


def case(name: str) -> dict[str, Any]:
    """One case, in this process."""
    make, function, way = CASES[name]
    mech, paths = make()
    given = mbd.get_variables(mech, paths)
    x = np.array([float(given[path]) for path in paths])
    fn = function(mech, paths)
    run = way(fn, x)
    begun = time.process_time()
    exact = np.asarray(run())
    first, peak = time.process_time() - begun, _peak()
    begun = time.perf_counter()
    np.asarray(run())
    again = time.perf_counter() - begun
    along = exact if way is starts else exact @ x
    step = 2e-4
    steps = step * np.array([0.0, 1.0, -1.0, 0.5, -0.5])
    values = np.asarray(lanes.vmap(fn)(x * (1.0 + steps[:, None])))
    if function is modes:  # sums, since two frequencies may change places within a step
        along = np.stack([along.sum(), (along / values[0]).sum()])
        values = np.stack([values.sum(axis=1), np.log(values).sum(axis=1)], axis=1)
        along, values = along / values[0], values / values[0]
    wide, narrow = (values[1] - values[2]) / (2.0 * step), (values[3] - values[4]) / step
    difference = (4.0 * narrow - wide) / 3.0
    error = float(np.abs(along - difference).max() / np.abs(difference).max())
    top = mbd.topology(mech)
    return {
        "speeds": top.nv,
        "rows": top.nc,
        "inputs": len(x),
        "first_cpu_s": round(first, 1),
        "again_s": round(again, 4),
        "peak_mb": round(peak),
        "against_differences": error,
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def alone(name: str, limit: int) -> dict[str, Any]:
    """One case in a process with empty caches; what it took if it does not end."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, JAXMBD_LANES_CACHE=folder)
        env.pop("JAX_COMPILATION_CACHE_DIR", None)
        command = [sys.executable, __file__, "--case", name]
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, preexec_fn=limited, check=False
        )
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"stopped by signal {-done.returncode}"]
        return {"ended": False, "limit_cpu_s": limit, "said": said[0]}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds for a case")
    parser.add_argument("--case", help="run one case here and print it")
    options = parser.parse_args()
    if options.case:
        warnings.simplefilter("ignore")
        print(json.dumps(case(options.case)))
        return 0
    found: dict[str, Any] = {"cores": os.cpu_count(), "jax": jax.__version__, "cases": {}}
    fine = True
    for name in options.cases.split(","):
        row = found["cases"][name] = alone(name, options.limit)
        fine &= row.get("against_differences", np.inf) < 1e-5
        print(f"{name:26} {row}", flush=True)
        _script.write(options.json, found)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
