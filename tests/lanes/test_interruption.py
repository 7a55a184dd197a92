"""Ctrl-C: waiting for a kernel is interrupted, and the kernel stops."""

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from jaxmbd import lanes
from jaxmbd.lanes.targets import stopping

STEPS = 3_000_000_000


def grows(x, steps):
    return lax.fori_loop(0, steps, lambda _, y: y + 1e-9 * y * y, x)


def stops(running):
    """Whether a kernel that runs returns an error once kernels must stop."""
    assert not running.is_ready()
    with stopping.stopped(), pytest.raises(Exception, match="interrupted"):
        jax.block_until_ready(running)


def test_a_long_loop_stops():
    f = jax.jit(lanes.vmap(lambda x: grows(x, STEPS), strict=True))
    stops(f(jnp.ones(1)))


def test_a_large_batch_of_short_loops_stops():
    def nested(x):
        return lax.fori_loop(0, 250, lambda _, y: grows(y, 250), x)

    f = jax.jit(lanes.vmap(nested, strict=True))
    stops(f(jnp.ones(4_000_000)))


def test_kernels_do_not_begin_while_others_stop():
    f = jax.jit(lanes.vmap(lambda x: grows(x, 1000), strict=True))
    expected = f(jnp.ones(20))
    with stopping.stopped(), pytest.raises(Exception, match="interrupted"):
        jax.block_until_ready(f(jnp.ones(20)))
    assert jnp.array_equal(f(jnp.ones(20)), expected)


PROGRAMS = {
    "simulate": """
        m = mbd.zoo.simple_pendulum()
        run = lambda: mbd.simulate(
            m, mbd.neutral(m), steps=2_000_000_000, save_every=2_000_000_000, dt=1e-9
        )
    """,
    "study": """
        from jax import lax
        from jaxmbd.sampling import Normal
        step = lambda _, y: y + 1e-9 * y * y
        def one(sample):
            inner = lambda _, y: lax.fori_loop(0, 1000, step, y)
            return {"y": lax.fori_loop(0, 1000, inner, sample["x"])}
        study = mbd.Study(one, {"x": mbd.campaign.Input(Normal(0.1), nominal=1.0)}, samples=10)
        run = lambda: study.evaluate({"x": np.ones(10_000_000)})
    """,
    "the user's own": """
        m = mbd.zoo.simple_pendulum()
        run = lambda: lanes.finished(jax.jit(lambda m: mbd.simulate(
            m, mbd.neutral(m), steps=2_000_000_000, save_every=2_000_000_000, dt=1e-9
        ))(m))
    """,
    "the user's own, with JAX's wait": """
        m = mbd.zoo.simple_pendulum()
        run = lambda: jax.block_until_ready(jax.jit(lambda m: mbd.simulate(
            m, mbd.neutral(m), steps=2_000_000_000, save_every=2_000_000_000, dt=1e-9
        ))(m))
    """,
}
FRAME = """
import os, signal, threading
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import jaxmbd as mbd
from jaxmbd import lanes
{program}
signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background ignore
threading.Timer(4.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    run()
except KeyboardInterrupt:
    if {stopped}:
        m = mbd.zoo.double_pendulum()
        print(int(mbd.check_state(m, mbd.neutral(m)).status))
    print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c_ends_a_program_long_before_its_work_is_done(name):
    """The work takes many minutes, the compiling of it seconds."""
    stopped = "block_until_ready" not in PROGRAMS[name]  # else the kernel goes on until the exit
    code = FRAME.format(program=textwrap.dedent(PROGRAMS[name]), stopped=stopped)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["0", "interrupted"][not stopped :], done.stderr
