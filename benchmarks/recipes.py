"""Learning curves of the recipes among the examples, for three seeds each.

    python benchmarks/recipes.py [--only damper,arm,mpc] [--seeds 3] [--json FILE]

"damper": examples/15, a network's force law, and beside it a curve by `identify`. "arm":
examples/16, the network alone, and with the arm's lengths. "mpc": examples/17, weights of an
expert's cost. About thirty values of a curve are kept. Seconds include compiling.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable
from typing import Any

import _script

_script.start()

import jax  # noqa: E402
import numpy as np  # noqa: E402
from throughput_cases.machine import commit  # noqa: E402

from jaxmbd import ml  # noqa: E402

EXAMPLES = _script.HERE.parent / "examples"


def example(number: int) -> dict[str, Any]:
    """The functions of an example."""
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    return runpy.run_path(str(path))


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    found = call()
    return found, round(time.perf_counter() - start, 1)


def thinned(curve: Any) -> dict[str, list[Any]]:
    """About thirty values of a curve, the first and the last among them, and their steps."""
    steps = np.unique(np.linspace(0, len(curve) - 1, 31).round().astype(int))
    return {"step": steps.tolist(), "value": np.asarray(curve)[steps].round(5).tolist()}


def damper(seed: int) -> dict[str, Any]:
    """Mean squared differences in noises; errors [N] where there are data, and beyond."""
    own = example(15)
    data = own["measured"](seed)
    (law, curve), seconds = timed(lambda: own["trained"](data, seed, 300))
    found, rival_seconds = timed(lambda: own["identified"](data))
    rival, both = found.model.forces["strut"].law, ("SEEN", "BEYOND")
    return {
        "curve": thinned(curve),
        "seconds": seconds,
        "error of the network [N]": [float(own["error"](law, own[x])) for x in both],
        "error of the identified curve [N]": [float(own["error"](rival, own[x])) for x in both],
        "seconds of identify": rival_seconds,
    }


def arm(seed: int) -> dict[str, Any]:
    """Costs of an episode, on the way and for unseen targets."""
    own, found = example(16), {}
    for name, together in {"network alone": False, "arm and network": True}.items():
        (both, curve), seconds = timed(lambda t=together: own["trained"](seed, 300, together=t))
        unseen, status = own["measured"](both, ml.lane_keys(10_000 + seed, 512))
        lengths = np.asarray(own["lengths_of"](both[0]))
        assert not int(status)
        found[name] = {
            "curve": thinned(curve),
            "seconds": seconds,
            "cost for unseen targets": float(unseen),
            "proximal, distal, pivots [m]": lengths.round(4).tolist(),
        }
    return found


def mpc(seed: int) -> dict[str, Any]:
    """Root mean square errors of forces [N] and of the weights' logarithms."""
    own = example(17)
    (weights, curve), seconds = timed(lambda: jax.block_until_ready(own["trained"](seed, 25)))
    pairs = {"found": weights, "true": own["TRUE"]}
    told = {name: np.asarray(np.exp(x)).round(4).tolist() for name, x in pairs.items()}
    return {"curve": thinned(curve), "seconds": seconds, "noise [N]": own["NOISE"], **told}


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--only", default="damper,arm,mpc")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, Any] = {"commit": commit()}
    for name in options.only.split(","):
        found[name] = {f"seed {k}": globals()[name](k) for k in range(options.seeds)}
        for seed, told in found[name].items():
            print(name, seed, {k: x for k, x in told.items() if k != "curve"}, flush=True)
    _script.write(options.json, found)


if __name__ == "__main__":
    main()
