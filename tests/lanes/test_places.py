"""Where values lie: names and slots hold in the scope where they were written."""

import pytest

from jaxmbd.lanes.codegen.uses import Uses
from jaxmbd.lanes.codegen.writer import Writer
from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node


@pytest.fixture
def writer():
    return Writer(Uses(Graph(), set()), 8)


def value(*, uniform=False, op="add", args=()):
    return Node(op, args, "f64", None, uniform, 0)


def lines(w):
    return [line.split("=")[-1].split()[0] for line in w.text.lines]


def test_a_name_of_a_loops_body_is_lost_after_it(writer):
    """A broadcast that was made inside is made again outside; one from outside serves inside."""
    n = value(uniform=True)
    writer.define(n, "%n")
    with writer.scope():
        inside = writer.operand(n, True)
        assert writer.operand(n, True) == inside
    outside = writer.operand(n, True)
    assert outside != inside
    with writer.scope():
        assert writer.operand(n, True) == outside
    assert writer.operand(n, False) == "%n"
    assert lines(writer) == ["insertelement", "shufflevector"] * 2


def test_a_slot_of_a_loops_body_is_lost_after_it(writer):
    n = value()
    with writer.scope():
        writer.define(n, "%n")
        writer.store(n, writer.hold())
        writer.forget(n)
        assert writer.asleep(n)
    assert not writer.known(n)
    with pytest.raises(AssertionError, match="no place"):
        writer.operand(n, True)


def test_a_slot_from_outside_is_not_overwritten_in_a_loops_body(writer):
    """The body's next iteration would load the wrong value, which LLVM cannot know."""
    a, b = value(), value()
    writer.define(a, "%a")
    writer.store(a, 0)
    with writer.scope():
        writer.define(b, "%b")
        with pytest.raises(AssertionError, match="is used outside"):
            writer.store(b, 0)
        with pytest.raises(AssertionError, match="is used outside"):
            writer.define(a, "%other")


def test_what_a_slot_held_before_is_not_loaded_from_it(writer):
    a, b = value(), value()
    for n, name in ((a, "%a"), (b, "%b")):
        writer.define(n, name)
        writer.store(n, 0)
        writer.forget(n)
    assert writer.operand(b, True).startswith("%v")
    with pytest.raises(AssertionError, match="no place"):
        writer.operand(a, True)


def test_an_alias_lies_where_its_node_does(writer):
    n = value()
    alias = value(op="stop", args=(n,))
    writer.define(n, "%n")
    assert writer.known(alias)
    assert writer.operand(alias, True) == "%n"
