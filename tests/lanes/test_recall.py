"""Kernels that another process has compiled are found on disk from their function alone."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec
from repository import ROOT

from jaxmbd import lanes
from jaxmbd.lanes.targets import cpu
from jaxmbd.lanes.trace.content import Content

PROGRAM = """
import sys
import jax, numpy as np, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from jaxmbd import lanes
from jaxmbd.lanes.kernel import CODES
from jaxmbd.lanes.targets import cpu
from jaxmbd.lanes.trace import interpreter

def graph(*_):
    raise SystemExit("a graph is built")

def code(*_):
    raise SystemExit("LLVM compiles")

def call():
    run = jax.jit(lanes.vmap(lambda x: jax.lax.fori_loop(0, 4, lambda _, y: jnp.sin(table @ y), x)))
    print(run(np.linspace(0.1, 0.9, 15).reshape(5, 3)).tolist())

table = jnp.arange(9.0).reshape(3, 3)
if "--no-graph" in sys.argv:
    interpreter.value_graph = graph
    cpu.compile_object = code
call()
if "--rule" in sys.argv:
    interpreter.RULES["of_a_user"] = graph
    CODES.things.clear()
    call()
"""


def run(cache, *arguments):
    environment = os.environ | {"JAXMBD_LANES_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_a_second_process_builds_no_graph_and_compiles_nothing(tmp_path):
    """But it does if a user has registered a rule."""
    first = run(tmp_path)
    assert first.returncode == 0, first.stderr
    second = run(tmp_path, "--no-graph", "--rule")
    assert second.stdout == first.stdout, second.stderr
    assert "a graph is built" in second.stderr


def test_code_that_is_gone_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXMBD_LANES_CACHE", str(tmp_path))
    assert cpu._target("lanes_of_nothing", None, 0) is None


def cubed(slope):
    """x³, whose derivative is said to be `slope` times x²."""

    @jax.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda p, t: (cube(*p), slope * p[0] ** 2 * t[0]))
    return cube


def test_derivative_rules_count_by_their_content():
    x = jnp.ones(2)

    def value(slope):
        return Content(jax.make_jaxpr(lambda x: cubed(slope)(x))(1.0))

    def gradient(slope):
        batch = lanes.vmap(cubed(slope))
        return Content(jax.make_jaxpr(jax.grad(lambda x: batch(x).sum()))(x))

    assert value(3.0).value == value(4.0).value
    assert value(3.0).of_rules() == value(3.0).of_rules() != value(4.0).of_rules()
    assert gradient(3.0).lasting
    assert gradient(3.0).value == gradient(3.0).value != gradient(4.0).value


def test_identities_do_not_last():
    """A function of the host is known by its identity, which means nothing to another process."""

    def host(x):
        return jax.pure_callback(np.sin, x, x)

    @jax.custom_jvp
    def ruled(x):
        return jnp.sin(x)

    ruled.defjvp(lambda p, t: (ruled(*p), host(p[0]) * t[0]))
    assert not Content(jax.make_jaxpr(host)(1.0)).lasting
    content = Content(jax.make_jaxpr(lambda x: ruled(x))(1.0))
    assert content.lasting and content.of_rules() is None


def test_a_mesh_without_devices_lasts():
    """A study on several devices traces its function inside `jax.shard_map`."""
    mesh, seen = Mesh(np.array(jax.devices()[:1]), ("sample",)), []

    def shard(x):
        seen.append(Content(jax.make_jaxpr(lambda x: jnp.full_like(x, 2.0))(x)))
        return x

    for _ in range(2):
        jax.eval_shape(
            jax.shard_map(
                lambda x: shard(x), mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec()
            ),
            jnp.ones(4),
        )
    assert seen[0].lasting and seen[0].value == seen[1].value


def family(order):
    """x ↦ sin x, whose derivative is said to be the next function of a family without an end."""

    @jax.custom_jvp
    def fn(x):
        return jnp.sin(x + order)

    fn.defjvp(lambda p, t: (fn(*p), family(order + 1)(p[0]) * t[0]))
    return fn


@jax.custom_jvp
def once(x):
    return jnp.sin(x)


@once.defjvp
def _once(primals, tangents):
    return once(*primals), no_derivative(jnp.cos(primals[0])) * tangents[0]


@jax.custom_jvp
def no_derivative(x):
    return 1.0 * x


@no_derivative.defjvp
def _no_derivative(primals, tangents):
    raise NotImplementedError("second derivatives are not supported")


@pytest.mark.parametrize(("fn", "slope"), [(family(0), np.sin(2.0)), (once, np.cos(1.0))])
def test_rules_that_are_not_needed_may_have_no_end_or_fail(fn, slope):
    found = jax.grad(lambda x: lanes.vmap(fn)(x).sum())(jnp.ones(3))
    np.testing.assert_allclose(found, slope, rtol=1e-14)
