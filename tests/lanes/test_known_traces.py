"""Traces that another process has made are found on disk, and not believed against the function."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.known_traces import Recalled
from jaxmbd.lanes.targets import disk
from jaxmbd.model.user_warning import warn_user

X = np.linspace(0.1, 0.9, 15).reshape(5, 3)


class Counted:
    """A function that counts how often it is traced, mapped anew by each `batch()`."""

    def __init__(self, identity="f", scale=2.0):
        self.identity, self.scale, self.traces = identity, scale, 0

    def __call__(self, given):
        self.traces += 1
        return {"sum": self.scale * jnp.sin(given["x"]) @ given["x"], "rest": [(given["x"],), None]}

    def batch(self, **options):
        return lanes.vmap(self, identity=lambda: self.identity, **options)


class Pair(NamedTuple):
    first: object


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXMBD_LANES_CACHE", str(tmp_path))
    return tmp_path


def entries(cache):
    return sorted(file.name for file in cache.glob("trace_*"))


def value(batch, x=X):
    return jax.tree.map(np.asarray, batch({"x": x}))


def test_a_second_mapping_does_not_trace_and_gives_the_same(cache):
    """Also under `jax.jit`, whose program has the same digest; for other types it does trace."""
    fn = Counted()
    first = value(fn.batch())
    assert fn.traces == 1 and len(entries(cache)) == 1
    second = value(fn.batch())
    assert fn.traces == 1
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)
    traced, recalled = (
        lanes.digest(jax.jit(f).trace({"x": X}).jaxpr) for f in (lanes.vmap(fn), fn.batch())
    )
    assert traced == recalled and fn.traces == 2
    value(fn.batch(), X[:, :2])
    value(fn.batch(), X.astype("float32"))
    assert fn.traces == 4 and len(entries(cache)) == 3


def test_derivatives_of_a_recalled_function_trace_it_then():
    fn = Counted()

    def gradient(batch):
        return jax.grad(lambda x: batch({"x": x})["sum"].sum())(X)

    expected = gradient(lanes.vmap(fn))
    value(fn.batch())
    traces, batch = fn.traces, fn.batch()
    value(batch)
    assert fn.traces == traces
    np.testing.assert_array_equal(gradient(batch), expected)
    assert fn.traces == traces + 1
    tangent = jax.jvp(lambda x: fn.batch()({"x": x})["sum"], (X,), (X,))[1]
    np.testing.assert_allclose(tangent, np.sum(expected * X, 1), rtol=1e-14)


def test_code_that_is_gone_is_compiled_from_a_trace(cache):
    fn = Counted(scale=1.23)
    first = value(fn.batch())
    for file in cache.iterdir():
        if file.name not in entries(cache):
            file.unlink()
    lanes.kernel.CODES.things.clear()
    jax.tree.map(np.testing.assert_array_equal, first, value(jax.jit(fn.batch())))
    assert fn.traces == 2


def test_an_entry_that_is_not_of_the_function_is_refused(cache):
    """Here the text is the same for two functions, which breaks the rule."""
    value(Counted(scale=2.0).batch())
    batch = Counted(scale=3.0).batch()
    with pytest.raises(RuntimeError, match="was found on disk"):
        jax.grad(lambda x: batch({"x": x})["sum"].sum())(X)
    assert not entries(cache)
    expected = 1.5 * value(Counted(scale=2.0).batch())["sum"]
    for file in cache.glob("trace_*"):
        file.unlink()
    np.testing.assert_allclose(value(Counted(scale=3.0).batch())["sum"], expected, rtol=1e-15)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:40], lambda data: b"", lambda data: None]
)
def test_a_damaged_entry_counts_as_missing(cache, damage):
    fn = Counted()
    value(fn.batch())
    (name,) = entries(cache)
    kept = damage((cache / name).read_bytes())
    if kept is None:  # whole, but not an entry
        disk.write(name, b'{"tree": 0, "types": [], "content": "ab"}')
    else:
        (cache / name).write_bytes(kept)
    value(fn.batch())
    assert fn.traces == 2


def test_an_entry_under_another_name_counts_as_missing(cache):
    first, second = Counted("first"), Counted("second", 3.0)
    value(first.batch())
    (name,) = entries(cache)
    value(second.batch())
    (other,) = set(entries(cache)) - {name}
    (cache / other).write_bytes((cache / name).read_bytes())
    assert disk.read(name) is not None and disk.read(other) is None
    value(second.batch())
    assert second.traces == 2


def test_settings_of_jax_tell_traces_apart(cache):
    fn = Counted()
    value(fn.batch())
    with jax.default_matmul_precision("highest"):
        value(fn.batch())
    with jax.numpy_dtype_promotion("strict"):
        value(fn.batch())
    with jax.enable_x64(False):
        value(fn.batch(), X.astype("float32"))
    value(fn.batch(), X.astype("float32"))
    assert fn.traces == 5 and len(entries(cache)) == 5


def test_values_that_become_constants_tell_traces_apart(cache):
    traces = []

    def fn(x, scale):
        traces.append(float(scale))
        return scale * x

    def result(scale):
        batch = lanes.vmap(fn, in_axes=(0, None), static=(1,), identity=lambda: "f")
        return np.asarray(batch(X, scale))

    for scale in (2.0, 3.0, 2.0, np.float32(2.0)):
        np.testing.assert_array_equal(result(scale), scale * X)
    assert traces == [2.0, 3.0, 2.0]


def test_without_a_cache_or_a_text_functions_are_traced(cache, monkeypatch):
    unknown = Counted(identity=None)
    for _ in range(2):
        value(unknown.batch())
    assert unknown.traces == 2
    monkeypatch.setenv("JAXMBD_LANES_CACHE", "")
    fn = Counted()
    for _ in range(2):
        value(fn.batch())
    assert fn.traces == 2 and not entries(cache)


@pytest.mark.parametrize(
    "fn",
    [
        Pair,
        lambda x: {1: x},
        lambda x: jax.pure_callback(np.sin, x, x, vmap_method="sequential"),
    ],
)
@pytest.mark.filterwarnings("ignore:lanes cannot compile")
def test_results_and_functions_that_no_file_can_hold_are_traced_each_time(cache, fn):
    def result():
        return jax.tree.map(np.asarray, lanes.vmap(fn, identity=lambda: "f")(X))

    jax.tree.map(np.testing.assert_array_equal, result(), result())
    assert not entries(cache)


def test_traced_arrays_in_a_function_are_not_stored(cache):
    @jax.jit
    def outer(scale):
        return lanes.vmap(lambda x: scale * x, identity=lambda: "f")(X)

    np.testing.assert_array_equal(outer(2.0), 2.0 * X)
    assert not entries(cache)


def test_a_function_that_warns_while_traced_warns_each_time(cache):
    def fn(x):
        warn_user("a freedom that nothing holds")
        return x

    for _ in range(2):
        with pytest.warns(UserWarning, match="freedom"):
            lanes.vmap(fn, identity=lambda: "f")(X)
    assert not entries(cache)


def test_a_recalled_function_shows_types_without_a_trace():
    fn = Counted()
    value(fn.batch())
    program = jax.jit(fn.batch()).trace({"x": X})
    (eqn,) = [e for e in program.jaxpr.eqns if e.primitive.name == "lanes"]
    function = eqn.params["key"].function
    assert isinstance(function, Recalled) and fn.traces == 1
    assert [a.shape for a in function.out_avals] == [(3,), ()]
    assert "lanes" in str(program.jaxpr) and fn.traces == 1
    assert function.in_avals == function.closed.in_avals and fn.traces == 2
    assert function.content == function.traced.content
