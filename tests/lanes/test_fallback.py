"""Internal errors of lanes do not reach the caller: a warning, and the same results by XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.codegen.emit import Emitter
from jaxmbd.lanes.trace.interpreter import RULES

X = np.linspace(0.1, 1.0, 9)


def while_tracing(monkeypatch):
    monkeypatch.setitem(RULES, "sin", lambda g, eqn, x: {}[f"sin of {len(x.shape)} axes"])


def with_a_wrong_shape(monkeypatch):
    monkeypatch.setitem(RULES, "sin", lambda g, eqn, x: x[None])


def while_emitting(monkeypatch):
    monkeypatch.setattr(Emitter, "region", lambda *_: [].pop())


FAILURES = [while_tracing, with_a_wrong_shape, while_emitting]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.filterwarnings("default:lanes failed inside:UserWarning")
def test_a_failure_inside_lanes_falls_back_and_is_to_be_reported(failure, monkeypatch):
    failure(monkeypatch)
    factor = 1 + FAILURES.index(failure)  # equal functions would be one kernel

    def total(x, **options):
        return jnp.sum(lanes.vmap(lambda x: factor * jnp.sin(x) * x, **options)(x))

    with pytest.raises(lanes.Unsupported, match="lanes failed inside .* please report"):
        total(X, strict=True)
    told = "'sin', at .*test_fallback.py:\\d+" if failure is not while_emitting else "please"
    with pytest.raises(lanes.Unsupported, match=f"lanes failed inside .* {told}"):
        jax.grad(lambda x: total(x, strict=True))(X)
    monkeypatch.setattr("jaxmbd.lanes.ir.nodes._WARNED", set())
    with pytest.warns(UserWarning, match="lanes failed inside .* jax.vmap is used instead"):
        found = jax.value_and_grad(total)(X)
    np.testing.assert_allclose(found[0], factor * np.sum(np.sin(X) * X), rtol=1e-14)
    np.testing.assert_allclose(found[1], factor * (np.sin(X) + X * np.cos(X)), rtol=1e-14)
