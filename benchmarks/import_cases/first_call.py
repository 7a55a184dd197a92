"""Times of one import and of the first forward dynamics, as JSON.

first_call.py PATH FLOATING [WITHIN]
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import jax
import numpy as np

import jaxmbd as mbd

jax.config.update("jax_enable_x64", True)


def clocks() -> tuple[float, float]:
    """Wall-clock time and this process's, of all its threads [s]."""
    return time.perf_counter(), time.process_time()


def main() -> None:
    warnings.simplefilter("ignore")
    path, floating = sys.argv[1], bool(int(sys.argv[2]))
    within = sys.argv[3] if len(sys.argv) > 3 else None
    begun = clocks()
    if path.endswith(".urdf"):
        model = mbd.io.load_urdf(path, floating=floating)
    else:
        model = mbd.io.load_mjcf(path, within=within)
    imported = clocks()
    mech = model.mechanism
    q, v = model.states["reference"].q, np.zeros(mbd.topology(mech).nv)
    np.asarray(mbd.forward_dynamics(mech, q, v)[0])
    done = clocks()
    found = {}
    for what, (a, b) in {
        "import": (begun, imported),
        "first forward dynamics": (imported, done),
    }.items():
        found |= {f"{what} [s]": b[0] - a[0], f"{what} [CPU s]": b[1] - a[1]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
