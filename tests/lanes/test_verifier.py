"""The verifier rejects malformed graphs and names the rule; the printer is deterministic."""

from __future__ import annotations

import re
from collections.abc import Callable

import graph_printer
import graph_verifier
import jax
import jax.numpy as jnp
import pytest
import random_programs

from jaxmbd.lanes.ir import graph as graphs
from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Buffer, Node
from jaxmbd.lanes.kernel import Kernel


def program(x: jax.Array, scale: jax.Array) -> jax.Array:
    """A value shared by the batch, a loop with a table of its results, and a sum."""
    factor = jnp.exp(scale)

    def step(y: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        return jnp.sin(y) * factor + x[1], y

    y, all_of_them = jax.lax.scan(step, x[0], length=300)
    return jnp.where(y > 0, y, 2.0) + all_of_them[7]


def graph() -> Graph:
    closed = jax.make_jaxpr(program)(jnp.ones(3), 1.0)
    return Kernel(closed, (True, False)).graph


def first(g: Graph, op: str) -> Node:
    """The first node of an operation, in loops too."""
    regions = [g.prologue, g.base, *(n.data.body for n in g.base.nodes if n.op == "loop")]
    return next(n for r in regions for n in r.nodes if n.op == op)


def swap(g: Graph, op: str) -> None:
    """Put the first node of an operation at the end of its region."""
    n = first(g, op)
    assert n.region is not None
    n.region.nodes.remove(n)
    n.region.nodes.append(n)


def result(g: Graph, new: Node) -> None:
    g.outputs[0][1][0] = new


def replace_arg(n: Node, k: int, new: Node) -> None:
    n.args = (*n.args[:k], new, *n.args[k + 1 :])


def loop_of(g: Graph):
    return first(g, "loop").data


BREAKS: dict[str, Callable[[Graph], object]] = {
    "is in the table": lambda g: setattr(first(g, "sin"), "op", "sine"),
    "number of operands is the arity": lambda g: setattr(first(g, "sin"), "args", ()),
    "the type is known": lambda g: setattr(first(g, "sin"), "dtype", "f16"),
    "operands have one type": lambda g: replace_arg(first(g, "mul"), 0, g.const(1.0, "f32")),
    "the result has the operands' type": lambda g: setattr(first(g, "exp"), "dtype", "f32"),
    "the result is boolean": lambda g: setattr(first(g, "gt"), "dtype", "f64"),
    "operands are floating-point": lambda g: (
        setattr(first(g, "exp"), "dtype", "i64"),
        replace_arg(first(g, "exp"), 0, g.const(1, "i64")),
    ),
    "the condition is boolean": lambda g: replace_arg(first(g, "select"), 0, g.const(1, "i64")),
    "both values have its type": lambda g: replace_arg(first(g, "select"), 1, g.const(1, "i64")),
    "operands of a uniform node are uniform": lambda g: setattr(first(g, "sin"), "uniform", True),
    "nodes of the prologue are uniform": lambda g: setattr(first(g, "exp"), "uniform", False),
    "listed in its own region": lambda g: setattr(first(g, "sin"), "region", g.base),
    "a node is listed once": lambda g: g.base.nodes.append(g.base.nodes[0]),
    "one deeper": lambda g: setattr(loop_of(g).body, "depth", 5),
    "the operand is defined before use": lambda g: swap(g, "gt"),
    "the operand is in scope": lambda g: result(g, first(g, "sin")),
    "a carry belongs to a loop": lambda g: result(g, g.placeholder("f64", 0)),
    "a live node is listed in a region": lambda g: g.base.nodes.remove(first(g, "select")),
    "a result has all its elements": lambda g: g.outputs[0][1].append(g.const(1.0, "f64")),
    "a result has its buffer's type": lambda g: result(g, g.const(1, "i64")),
    "each result is stored once": lambda g: g.outputs.append(g.outputs[0]),
    "index inside the argument": lambda g: setattr(
        first(g, "element"), "data", (first(g, "element").data[0], 9)
    ),
    "at least one iteration": lambda g: setattr(loop_of(g), "count", 0),
    "its operands are its initial carries": lambda g: loop_of(g).inits.append(g.const(1, "i64")),
    "an initial and a next value": lambda g: loop_of(g).outs.pop(),
    "carries keep their types": lambda g: loop_of(g).outs.__setitem__(0, g.const(1, "i64")),
    "mask of samples that continue": lambda g: setattr(loop_of(g), "going", 0),
    "it ends": lambda g: setattr(loop_of(g), "count", None),
    "iterations is a uniform i64": lambda g: setattr(loop_of(g), "times", g.const(1.0, "f64")),
    "body is nested in its region": lambda g: setattr(loop_of(g).body, "parent", g.prologue),
    "that of a carry of its loop": lambda g: setattr(first(g, "result"), "data", 40),
    "buffers of this kind": lambda g: setattr(first(g, "store").data[0], "kind", "input"),
    "the stored value has its buffer's type": lambda g: setattr(
        first(g, "store").data[0], "dtype", "f32"
    ),
    "some node writes to the loaded buffer": lambda g: setattr(
        first(g, "load"), "data", (Buffer("scratch", "f64", 900), 0)
    ),
    "index inside the buffer": lambda g: replace_arg(first(g, "store"), 0, g.const(300, "i64")),
    "the index is an i64": lambda g: replace_arg(first(g, "store"), 0, g.const(3, "i32")),
    "a constant fits its type": lambda g: setattr(g.const(2.0, "f64"), "data", 2),
}


def test_a_whole_graph_passes() -> None:
    graph_verifier.verify(graph())


@pytest.mark.parametrize("rule", BREAKS)
def test_a_broken_graph_is_rejected_and_the_rule_named(rule: str) -> None:
    g = graph()
    BREAKS[rule](g)
    with pytest.raises(graph_verifier.Broken, match=re.escape(rule)):
        graph_verifier.verify(g)


def test_every_kernel_of_the_tests_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    assert graph_verifier.verify in graphs.CHECKS
    seen: list[Graph] = []
    monkeypatch.setattr(graphs, "CHECKS", [seen.append])
    g = graph()
    assert seen == [g]


def traced(seed: int) -> Graph:
    function, example = random_programs.program(seed)
    leaves, tree = jax.tree.flatten(example)
    closed = jax.make_jaxpr(lambda *x: jax.tree.leaves(function(*jax.tree.unflatten(tree, x))))
    return Kernel(closed(*leaves), (True,) * len(leaves)).graph


@pytest.mark.parametrize("seed", range(4))
def test_the_text_of_a_graph_is_stable(seed: int) -> None:
    text = graph_printer.text(traced(seed))
    assert text == graph_printer.text(traced(seed))
    assert "<" not in text, "every name that is read was defined"


def test_the_text_of_a_graph() -> None:
    def f(x: jax.Array, a: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 5, lambda _, y: y * jnp.sin(a) + 2.0, x[1])

    closed = jax.make_jaxpr(f)(jnp.ones(2), 1.0)
    assert (
        graph_printer.text(Kernel(closed, (True, False)).graph)
        == """once:
  %0: f64. = element in1[0]
  %1: f64. = sin %0
each:
  %2: f64 = element in0[1]
  %4: i1 = loop 5 times, %5: i64., carrying (%3: f64 = %2):
    %6: f64 = mul %3, %1
    %7: f64 = add %6, 2.0
    next (%7)
  %8: f64 = result %4, 1
results:
  out0 = %8"""
    )
