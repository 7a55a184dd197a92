"""Python's garbage collector is paused while lanes traces and compiles, and only then."""

import gc
import threading

import jax
import jax.numpy as jnp
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.context import collector_paused


@pytest.fixture(params=[True, False], ids=["on", "off"])
def setting(request):
    """The user's setting of the collector."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_paused_while_tracing_and_restored(setting):
    seen = []

    def fn(x):
        seen.append(gc.isenabled())
        return jnp.sin(x)

    lanes.vmap(fn, strict=True)(jnp.ones(3))
    assert seen == [False]
    assert gc.isenabled() == setting


def test_restored_after_an_exception(setting):
    def fails(x):
        raise RuntimeError("no")

    def unsupported(x):
        return jnp.fft.fft(x).real

    with pytest.raises(RuntimeError):
        lanes.vmap(fails)(jnp.ones(3))
    assert gc.isenabled() == setting
    with pytest.raises(lanes.Unsupported):
        jax.jit(lanes.vmap(unsupported, strict=True))(jnp.ones((2, 3, 3)))
    assert gc.isenabled() == setting


def test_nested_and_in_threads(setting):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with collector_paused():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with collector_paused():
        with collector_paused():
            thread.start()
            assert entered.wait(10)
        assert not gc.isenabled()
    assert not gc.isenabled()  # the other thread is still compiling
    leave.set()
    thread.join()
    assert gc.isenabled() == setting
