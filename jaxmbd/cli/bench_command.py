"""``jaxmbd bench``: how fast this machine is with a mechanism."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.model_files import load_model
from jaxmbd.cli.says import FINE, Says, add_command

_SECONDS = 1.0


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "bench",
        _run,
        "measure the speed of this machine with a mechanism",
        "Measure compile time, and rates of forward dynamics and of simulation, over a batch of\n"
        "variants of a mechanism on all cores or on the GPU. The accuracy is printed beside them:\n"
        "the largest closure error of the simulated motions.",
        "jaxmbd bench\njaxmbd bench corner.json --batch 16384",
    )
    parser.add_argument("model", nargs="?", default="zoo:multi_link", help="a file, or zoo:NAME")
    parser.add_argument("--batch", type=int, default=4096, help="how many at once (default 4096)")
    parser.add_argument("--steps", type=int, default=100, help="time steps (default 100)")


def _run(options: argparse.Namespace, says: Says) -> int:
    if options.batch < 1 or options.steps < 1:
        raise ValueError("--batch and --steps must be at least 1")
    set_up_jax()
    import jax
    import jax.numpy as jnp

    import jaxmbd as mbd

    mech, _ = load_model(options.model)
    q = mbd.assemble(mech).q
    state = (mech, q, mbd.assemble_velocity(mech, q))
    # Every number is an argument with a row for each sample, so that nothing is computed once for
    # all, or in advance, although the rows are equal.
    variants = jax.tree_util.tree_map(lambda x: jnp.stack([jnp.asarray(x)] * options.batch), state)

    def dynamics(mech: Any, q: Any, v: Any) -> Any:
        return mbd.forward_dynamics(mech, q, v)[0]

    def motion(mech: Any, q: Any, v: Any) -> Any:
        steps = options.steps
        return mbd.simulate(mech, q, v, dt=1e-4, steps=steps, save_every=steps).drift

    says.text(f"{options.model}, batch {options.batch}, {jax.devices()[0].device_kind}")
    found: dict[str, Any] = {"model": options.model, "batch": options.batch}
    for name, function, each in (
        ("forward dynamics", dynamics, 1),
        ("simulated steps (rk4)", motion, options.steps),
    ):
        compile_time, rate, out = _measured(function, variants, each * options.batch)
        says.text(f"{name:22} {rate:10.3g} /s, compiled in {compile_time:.1f} s")
        found[name] = {"rate": rate, "compile_seconds": compile_time}
        error = float(jnp.max(jnp.abs(out)))
    says.text(f"{'closure error':22} {error:10.1e} m")
    says.result(found | {"closure_error": error, "device": jax.devices()[0].device_kind})
    return FINE


def _measured(function: Callable[..., Any], given: Any, count: int) -> tuple[float, float, Any]:
    """Seconds of the first call, evaluations per second later, and the result."""
    import jax

    from jaxmbd import lanes

    batched = jax.jit(lanes.vmap(function))
    begun = time.perf_counter()
    out = lanes.finished(batched(*given))
    first = time.perf_counter() - begun
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        begun = time.perf_counter()
        out = lanes.finished(batched(*given))
        best = min(best, time.perf_counter() - begun)
    return first, count / min(best, first), out
