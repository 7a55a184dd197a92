"""Callbacks into Python at the top of a function: kernels around them, and the calls themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel

X = np.linspace(0.1, 0.9, 3)
NUMBER = jax.ShapeDtypeStruct((), np.float64)


@pytest.fixture
def kernels(monkeypatch):
    """The kernels that are compiled."""
    made = []
    compiled = Kernel.compile_cpu
    monkeypatch.setattr(
        Kernel, "compile_cpu", lambda k, *args: (compiled(k, *args), made.append(k))[0]
    )
    return made


def told(fn, *args):
    """The result, and the calls of the `note` that the function is given, sorted."""
    calls = []

    def note(*numbers):
        calls.append(tuple(float(x) for x in numbers))

    out = fn(note)(*args)
    jax.block_until_ready(out)
    jax.effects_barrier()
    return out, sorted(calls)


def with_a_print(note):
    def fn(x):
        y = jnp.sin(x) * 2.0
        jax.debug.callback(note, x, y)
        return {"y": y, "same": x, "constant": jnp.ones(2), "z": y * y}

    return fn


@pytest.mark.parametrize("inside", [False, True])
def test_a_debug_callback_leaves_one_kernel(inside, kernels):
    def mapped(m):
        def of(note):
            fn = with_a_print(note)
            return jax.jit(m(jax.jit(fn) if inside else fn))

        return of

    found, calls = told(mapped(lambda f: lanes.vmap(f, strict=True)), X)
    assert len(kernels) == 1
    expected, as_often = told(mapped(jax.vmap), X)
    np.testing.assert_allclose(calls, as_often, rtol=1e-15)
    assert len(calls) == 3 and jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-15), found, expected)


def test_one_sample_and_a_batch_of_it(kernels):
    def alone(note):
        return lanes.jit(with_a_print(note), strict=True)

    found, calls = told(alone, 0.5)
    assert calls == [(0.5, float(found["y"]))] and found["z"].shape == ()
    report = lanes.explain(with_a_print(lambda *_: None), 0.5)
    assert report.unsupported is None and report.kinds == {"sin": 1, "mul": 2}
    _, calls = told(lambda note: jax.vmap(alone(note)), X)
    np.testing.assert_allclose(calls, np.stack([X, 2 * np.sin(X)], axis=1))
    assert len(kernels) == 2


def test_what_is_the_same_in_all_samples_is_told_once():
    def of(note):
        def fn(x, shared):
            jax.debug.callback(note, shared * 3.0)
            return x + shared

        return lanes.vmap(fn, in_axes=(0, None), strict=True)

    found, calls = told(of, X, 2.0)
    assert calls == [(6.0,)]
    np.testing.assert_array_equal(found, X + 2.0)


def test_gradients_pass_by(kernels):
    def of(note):
        fn = with_a_print(note)
        return jax.jit(jax.value_and_grad(lambda x: jnp.sum(lanes.vmap(fn, strict=True)(x)["z"])))

    (_, gradient), calls = told(of, X)
    np.testing.assert_allclose(gradient, 4.0 * np.sin(2.0 * X), rtol=1e-14)
    assert len(calls) == 3


@pytest.mark.parametrize("kind", ["pure", "io"])
def test_what_callbacks_return_goes_to_a_second_kernel(kind, kernels):
    def call(x):
        back = lambda x: np.cos(x)  # noqa: E731
        if kind == "io":
            return io_callback(back, NUMBER, x)
        return jax.pure_callback(back, NUMBER, x, vmap_method="sequential")

    def fn(x):
        y = jnp.sin(x)
        first, second = call(y), call(x)  # these can be made together
        return y * first + jnp.exp(call(first + second))

    found, expected = (jax.jit(m(fn))(X) for m in (lanes.vmap, jax.vmap))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert len(kernels) == 3
    jax.effects_barrier()


def test_callbacks_of_one_sample_keep_their_order():
    calls = []

    def fn(x):
        def note(name, x):
            calls.append(name)
            return np.asarray(x)

        y = io_callback(lambda x: note("first", x), NUMBER, x, ordered=True)
        io_callback(lambda y: note("second", y), NUMBER, y * 2.0, ordered=True)
        return io_callback(lambda x: note("third", x), NUMBER, jnp.sin(x), ordered=True)

    found = jax.jit(lanes.jit(fn, strict=True))(0.5)
    jax.effects_barrier()
    assert calls == ["first", "second", "third"]
    np.testing.assert_allclose(found, np.sin(0.5), rtol=1e-15)


def test_the_same_function_called_twice():
    def of(note):
        inner = jax.jit(lambda x: (jax.debug.callback(note, x), jnp.sin(x))[1])
        return lanes.vmap(lambda x: inner(inner(x) + x), strict=True)

    found, calls = told(of, X)
    np.testing.assert_allclose(found, np.sin(np.sin(X) + X), rtol=1e-15)
    np.testing.assert_allclose(calls, np.sort(np.r_[X, np.sin(X) + X])[:, None], rtol=1e-15)


def test_a_program_with_callbacks_has_no_digest():
    """What it computes depends on Python functions, which say nothing of their content."""

    def fn(x):
        return jax.pure_callback(np.sin, NUMBER, 2.0 * x, vmap_method="sequential") + 1.0

    assert lanes.digest(jax.make_jaxpr(lanes.vmap(fn))(X)) is None
    assert lanes.digest(jax.make_jaxpr(jax.jit(lanes.vmap(fn)))(X)) is None
    assert lanes.digest(jax.make_jaxpr(lanes.vmap(jnp.sin))(X)) is not None


def test_inside_a_loop_the_warning_names_line_and_cost():
    def fn(x):
        def step(c, _):
            jax.debug.callback(lambda c: None, c)
            return 0.5 * c, None

        return jax.lax.scan(step, x, None, length=3)[0]

    with pytest.warns(UserWarning, match=r"inside a loop.*test_callbacks.py:\d+; jax.vmap.*longer"):
        found = lanes.vmap(fn)(X)
    np.testing.assert_array_equal(found, X / 8)
    report = lanes.explain(fn, 0.5)
    assert report.unsupported is not None and "'debug_callback'" in report.unsupported
