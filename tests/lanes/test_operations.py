"""The table of operations: one entry adds an operation, and all entries are consistent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import ShapedArray
from jax.extend.core import Primitive

from jaxmbd import lanes
from jaxmbd.lanes.codegen import instructions, memory
from jaxmbd.lanes.elementary import FUNCTIONS
from jaxmbd.lanes.ir import fold
from jaxmbd.lanes.ir.nodes import Call, Intrinsic, Kind, Operation
from jaxmbd.lanes.ir.table import OPERATIONS
from jaxmbd.lanes.trace.interpreter import RULES
from jaxmbd.lanes.trace.rules.arithmetic import plain

FUSED = Operation(
    "fused",
    3,
    fold.by(lambda a, b, c: a * b + c),
    lambda g, n, ct: [
        (n.args[0], g.op("mul", ct, n.args[1])),
        (n.args[1], g.op("mul", ct, n.args[0])),
        (n.args[2], ct),
    ],
    Intrinsic("fma"),
    operands="float",
    flops=2,
)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Primitive:
    """A JAX primitive that maps to a new operation with one entry."""
    primitive = Primitive("fused")
    primitive.def_abstract_eval(lambda a, *_: ShapedArray(a.shape, a.dtype))
    monkeypatch.setitem(OPERATIONS, "fused", FUSED)
    monkeypatch.setitem(RULES, "fused", plain("fused"))
    return primitive


def test_a_new_operation_is_one_entry(fused: Primitive) -> None:
    """It is compiled, counted, folded and differentiated."""
    x = jnp.linspace(0.5, 2.0, 7)

    def f(x: jax.Array) -> jax.Array:
        return fused.bind(jnp.sin(x), x, x + 1.0)

    np.testing.assert_allclose(lanes.vmap(f, strict=True)(x), jnp.sin(x) * x + x + 1, rtol=1e-14)
    slope = jax.grad(lambda x: lanes.vmap(f, strict=True)(x).sum())(x)
    np.testing.assert_allclose(slope, jnp.cos(x) * x + jnp.sin(x) + 1, rtol=1e-14)
    report = lanes.explain(f, x[0])
    assert report.kinds["fused"] == 1
    assert report.flops == 20 + 1 + 2
    two, three = jnp.asarray(2.0), jnp.asarray(3.0)
    folded = lanes.explain(lambda x: x * fused.bind(two, three, two), x[0])
    assert folded.kinds == {"mul": 1}


@pytest.mark.parametrize("name", [n for n, o in OPERATIONS.items() if o.kind is Kind.VALUE])
def test_every_value_can_be_written(name: str) -> None:
    entry = OPERATIONS[name]
    if isinstance(entry.llvm, Call):
        assert FUNCTIONS[name] == entry.arity
        assert not entry.llvm.pair or entry.llvm.pair in FUNCTIONS
    elif entry.llvm is None and name not in ("element", "entry"):
        assert name in instructions.SPECIAL


def test_what_stays_in_place_can_be_written() -> None:
    in_place = {n for n, o in OPERATIONS.items() if o.kind is Kind.IN_PLACE}
    assert set(memory.WRITE) == in_place
    assert set(instructions.SPECIAL) <= set(OPERATIONS)


def test_names_and_primitives_are_unique() -> None:
    assert all(name == entry.name for name, entry in OPERATIONS.items())
    primitives = [p for entry in OPERATIONS.values() for p in entry.primitives]
    assert len(primitives) == len(set(primitives))


FUNCTIONS_OF_ONE = [
    n for n, o in OPERATIONS.items() if o.operands == "float" and o.arity == 1 and o.partial
]


@pytest.mark.parametrize("name", FUNCTIONS_OF_ONE)
def test_derivatives_of_functions_are_those_of_jax(name: str) -> None:
    """Every entry's derivative, by reverse mode on the graph."""
    primitive = {
        "abs": jnp.abs, "rint": jnp.rint, "trunc": jnp.trunc, "erf_inv": jax.lax.erf_inv,
        "erf": jax.lax.erf, "erfc": jax.lax.erfc, "logistic": jax.nn.sigmoid,
        "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan, "asinh": jnp.arcsinh,
        "acosh": jnp.arccosh, "atanh": jnp.arctanh,
    }.get(name) or getattr(jnp, name)  # fmt: skip
    x = jnp.array([0.3, 0.62, 0.77]) + (1.0 if name == "acosh" else 0.0)
    found = jax.grad(lambda x: lanes.vmap(primitive, strict=True)(x).sum())(x)
    expected = jax.vmap(jax.grad(primitive))(x)
    np.testing.assert_allclose(found, expected, rtol=3e-14, atol=1e-300)
