"""Cost of compiling: nodes and seconds of value, JVP and VJP of public functions on the zoo.

    python benchmarks/compiling.py [--zoo rssr,four_bar] [--functions linearize] [--json FILE]

Nodes are the operations added while a kernel's graph is built, before folding; the time of tracing
and compiling grows with them. Seconds are CPU time: JAX's trace, the graph, LLVM IR, machine code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import _script

_script.start(cache=False)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd.lanes.kernel import Kernel  # noqa: E402

ZOO = ("double_pendulum", "four_bar", "rssr", "stewart_gough", "double_wishbone")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "forward_dynamics": mbd.forward_dynamics,
    "inverse_dynamics": lambda m, q, v: mbd.inverse_dynamics(m, q, v, v),
    "assemble": lambda m, q, v: mbd.assemble(m, guess=q, throw=False).q,
    "equilibrium": lambda m, q, v: mbd.equilibrium(m, guess=q, throw=False).q,
    "simulate": lambda m, q, v: mbd.simulate(m, q, v, t1=0.1, dt=1e-2, throw=False).q,
}


def measure(fn: Callable[..., Any], x: Any, pullback: Any = None) -> dict[str, float]:
    """Nodes and seconds of one kernel of ``fn(x)``, x and the result being vectors."""
    start = time.process_time()
    closed = jax.make_jaxpr(fn)(x)
    kernel = Kernel(closed, (True,) * len(closed.in_avals), pullback)
    nodes = kernel.graph.built
    traced = time.process_time() - start
    kernel.compile_cpu()
    return {"nodes": nodes, "trace": traced, "all": time.process_time() - start}


def rows(name: str, fn: Callable[..., Any]) -> dict[str, dict[str, float]]:
    """Value, JVP and VJP with respect to all numbers of a mechanism."""
    mech = getattr(mbd.zoo, name)()
    q, v = mbd.assemble(mech).q, jnp.zeros(mbd.topology(mech).nv)
    numbers, mechanism = ravel_pytree(mech)

    def value(x: Any) -> Any:
        return ravel_pytree(fn(mechanism(x), q, v))[0]

    def tangent(x: Any) -> Any:
        return jax.jvp(value, (x,), (x,))[1]

    return {
        "value": measure(value, numbers),
        "jvp": measure(tangent, numbers),
        "vjp": measure(value, numbers, ((True,), (True,))),
    }


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--zoo", default=",".join(ZOO))
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    options = parser.parse_args()
    found: dict[str, Any] = {}
    print(f"{'':36}" + "".join(f"{kind:>26}" for kind in ("value", "jvp", "vjp")))
    for name in options.zoo.split(","):
        for function in options.functions.split(","):
            row = found[f"{name} {function}"] = rows(name, FUNCTIONS[function])
            cells = [
                f"{int(r['nodes']):>12,} {r['trace']:5.1f} {r['all']:5.1f} s" for r in row.values()
            ]
            print(f"{name + ' ' + function:36}" + "".join(cells), flush=True)
    _script.write(options.json, found)


if __name__ == "__main__":
    main()
