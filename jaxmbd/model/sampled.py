"""Functions given by points: held from one to the next, joined by lines, or by a cubic spline.

What a value depends on is little: two points, and in a cubic spline the slopes there. Slopes depend
on all points, so a run computes them once, at its start (`prepared`). A step and its derivative
then cost as much with a road of ten thousand points as with one of ten.
"""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.lanes import rarely
from jaxmbd.model.numbers import is_concrete, number
from jaxmbd.model.part import Part

KINDS = ("hold", "linear", "cubic")


class Sampled(Part):
    """A function of time given by its values at some times, for inputs, drives, roads and laws.

    It stands wherever a function of time is taken, and wherever a law is: a function of several
    arguments takes the first. Times and values are numbers, per sample of a batch or shared, with
    derivatives; when they change, nothing is compiled again. Before the first time and after the
    last the end's value is held, with rate zero.

    - ``"hold"``: the value of the last time reached (a zero-order hold); its derivative by the
      times, at which it jumps, is zero.
    - ``"linear"``: lines between the points (a first-order hold). Its second derivative is zero,
      also at the times, where the rate jumps: the effort of a drive by it lacks the impact.
    - ``"cubic"``: the cubic spline with continuous second derivative and the "not-a-knot" condition
      at both ends, of fourth order in the spacing (de Boor, A Practical Guide to Splines, 1978,
      chapter IV); a parabola through three points, a line through two. For drives, and for roads.

    Attributes:
        t: increasing times (n,) [s], evenly spaced or not; evenly spaced they are found faster. Of
            a law, values of its first argument.
        values: values (n,), or (n, …) of a function with several components.
        kind: "hold", "linear" or "cubic".

    Raises:
        ValueError: sizes differ, times do not increase, a number is not finite, or the kind is
            unknown.

    Example:
        >>> import jax, jaxmbd as mbd
        >>> force = mbd.Sampled([0.0, 1.0, 3.0], [0.0, 50.0, 10.0])
        >>> float(force(0.5)), float(force(2.0)), float(force(9.0)), float(jax.grad(force)(0.5))
        (25.0, 30.0, 10.0, 50.0)
        >>> force
        Sampled(3 points from 0 to 3, kind='linear')
    """

    t: Any = eqx.field(converter=number)
    values: Any = eqx.field(converter=number)
    kind: str = eqx.field(static=True, default="linear")

    def __check_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Sampled: kind is {self.kind!r}; give one of {list(KINDS)}")
        size, sizes = np.shape(self.t), np.shape(self.values)
        if len(size) != 1 or size != sizes[:1] or not size[0]:
            raise ValueError(
                f"Sampled: t has shape {size} and values {sizes}; give as many values as times, "
                "(n,) and (n,) or (n, …); for a batch make it inside jax.vmap"
            )
        for name, x in (("t", self.t), ("values", self.values)):
            if is_concrete(x) and (wrong := np.argwhere(~np.isfinite(x))).size:
                raise ValueError(f"Sampled: {name} is not finite at index {_place(wrong[0])}")
        if is_concrete(self.t) and (wrong := np.flatnonzero(~(np.diff(self.t) > 0.0))).size:
            k = int(wrong[0])
            raise ValueError(
                f"Sampled: the times t must increase, but {float(self.t[k]):.6g} at index {k} is "
                f"followed by {float(self.t[k + 1]):.6g}; sort the points, and leave repeated ones "
                "out"
            )

    def __call__(self, t: Any, *others: Any) -> Array:
        """The value at time `t` [s], or the values at times of any shape."""
        if self.kind == "cubic":
            return self.prepared()(t)
        return _at(_held if self.kind == "hold" else _linear, t, self.t, self.values)

    def prepared(self) -> Sampled | Spline:
        """The same function, with what it needs besides its numbers computed."""
        if self.kind != "cubic":
            return self
        return Spline(self.t, self.values, _slopes(jnp.asarray(self.t), jnp.asarray(self.values)))

    def __repr__(self) -> str:
        return _text(self, f"kind={self.kind!r}")


class Spline(Part):
    """A cubic spline by its points and its slopes there: a `Sampled` within a run.

    Attributes:
        t: times (n,) [s].
        values: values (n, …).
        slopes: rates there (n, …).
    """

    t: Any
    values: Any
    slopes: Any

    def __call__(self, t: Any, *others: Any) -> Array:
        """The value at time `t` [s], or the values at times of any shape."""
        return _at(_cubic, t, self.t, self.values, self.slopes)

    def __repr__(self) -> str:
        return _text(self, "a cubic spline")


Tree = TypeVar("Tree")


def prepared(tree: Tree) -> Tree:
    """A pytree with every `Sampled` in it prepared: for the start of a run."""
    return jax.tree_util.tree_map(
        lambda x: x.prepared() if isinstance(x, Sampled) else x,
        tree,
        is_leaf=lambda x: isinstance(x, Sampled),
    )


def samples_in(tree: Any) -> list[Sampled | Spline]:
    """All samples in a pytree."""
    leaves = jax.tree_util.tree_leaves(tree, is_leaf=lambda x: isinstance(x, Sampled | Spline))
    return [x for x in leaves if isinstance(x, Sampled | Spline)]


def corners_in(tree: Any) -> tuple[Array, ...]:
    """Times (n,) of the samples in a pytree that jump or bend there: held ones and lines."""
    found = [x for x in samples_in(tree) if isinstance(x, Sampled) and x.kind != "cubic"]
    return tuple(jnp.asarray(x.t) for x in found)


def next_time(t: Array, x: Array) -> Array:
    """The first of the increasing times x (n,) after `t`; infinite if there is none."""
    x = lax.stop_gradient(x)
    last = jnp.where(t < x[-1], x[-1], jnp.inf)
    if x.shape[0] == 1:
        return last
    k = _interval(t, x)
    start, end = _pick(x, k), _pick(x, k + 1)
    return jnp.where(t < start, start, jnp.where(t < end, end, last))


def increasing(tree: Any) -> Array:
    """Whether the times of all samples in a pytree increase, which may be traced."""
    fine = jnp.asarray(True)
    for x in samples_in(tree):
        t = x.t
        if is_concrete(t):
            fine = fine & bool(np.all(np.diff(t) > 0.0))
        elif t.shape[0] > 1:  # a loop, which compiles in no time however many points there are

            def further(k: Array, fine: Array, t: Array = t) -> Array:
                return fine & (_pick(t, k + 1) > _pick(t, k))

            fine = lax.fori_loop(0, t.shape[0] - 1, further, fine)
    return fine


def sampled(x: Array, samples: Any) -> Array:
    """``samples(x)``: the function whose parameters are samples."""
    return samples(x)


def function_and_numbers(function: Any, params: Any) -> tuple[Any, Any]:
    """What a part with a function of (x, params) stores: the numbers of samples are parameters.

    Raises:
        ValueError: there are samples and parameters.
    """
    if not isinstance(function, Sampled):
        return function, params
    if params is not None:
        raise ValueError("a Sampled function takes no params; leave them out")
    return sampled, function


def _at(of: Any, t: Any, *numbers: Any) -> Array:
    """A function of (t, *numbers) at one time or at many."""
    t = jnp.asarray(t)
    t = t if jnp.issubdtype(t.dtype, jnp.floating) else t.astype(jnp.result_type(float))
    if t.ndim:
        return jax.vmap(lambda s: _at(of, s, *numbers))(t)
    return of(t, *(jnp.asarray(x, t.dtype) for x in numbers))


@jax.jit
def _held(t: Array, x: Array, y: Array) -> Array:
    """The last value reached."""
    if x.shape[0] == 1:
        return y[0]
    k = _interval(t, x)
    return jnp.where(t >= _pick(x, k + 1), _pick(y, k + 1), _pick(y, k))


def piecewise_linear(t: Any, x: Any, y: Any) -> Array:
    """The values at `t` of the lines through (x, y), beyond their ends that of the end.

    Args:
        t: where, of any shape.
        x: increasing (n,).
        y: values (n, …).
    """
    return _at(_linear, t, x, y)


@jax.jit
def _linear(t: Array, x: Array, y: Array) -> Array:
    if x.shape[0] == 1:
        return y[0]
    k, u, _ = _share(t, x)
    return (1.0 - u) * _pick(y, k) + u * _pick(y, k + 1)


@jax.jit
def _cubic(t: Array, x: Array, y: Array, slopes: Array) -> Array:
    """The cubic of Hermite on an interval: the line, and what the slopes differ from its."""
    if x.shape[0] == 1:
        return y[0]
    k, u, h = _share(t, x)
    start, end = _pick(y, k), _pick(y, k + 1)
    line = (end - start) / h
    bend = (1.0 - u) * (_pick(slopes, k) - line) - u * (_pick(slopes, k + 1) - line)
    return (1.0 - u) * start + u * end + h * u * (1.0 - u) * bend


def _share(t: Array, x: Array) -> tuple[Array, Array, Array]:
    """The interval that t lies in, t's share of it, from 0 to 1, and its length."""
    t = jnp.where(t < x[0], x[0], jnp.where(t > x[-1], x[-1], t))  # derivatives at the ends: inner
    k = _interval(t, x)
    start = _pick(x, k)
    h = _pick(x, k + 1) - start
    return k, (t - start) / h, h


def _interval(t: Array, x: Array) -> Array:
    """The k with ``x[k] <= t < x[k + 1]``, from 0 to n − 2.

    It is guessed as if x were evenly spaced; a wrong guess leads to a binary search.
    """
    t, x = lax.stop_gradient(t), lax.stop_gradient(x)
    last = x.shape[0] - 2
    guess = (t - x[0]) * ((last + 1) / (x[-1] - x[0]))
    k = jnp.floor(jnp.clip(guess, 0.0, last)).astype(jnp.int32)
    k = k + (t >= _pick(x, k + 1)).astype(jnp.int32) - (t < _pick(x, k)).astype(jnp.int32)
    k = jnp.clip(k, 0, last)
    after = (k == 0) | (t >= _pick(x, k))
    before = (k == last) | (t < _pick(x, k + 1))
    return rarely(~(after & before), _searched, k, t, x)


def _searched(t: Array, x: Array) -> Array:
    k = jnp.searchsorted(x, t, side="right") - 1
    return jnp.clip(k, 0, x.shape[0] - 2).astype(jnp.int32)


def _pick(x: Array, k: Array) -> Array:
    return lax.dynamic_index_in_dim(x, k, keepdims=False)


@jax.jit
def _slopes(x: Array, y: Array) -> Array:
    """Slopes (n, …) of the cubic spline through (x, y), with the not-a-knot condition.

    With ``h_i = x_{i+1} − x_i`` and ``d_i = (y_{i+1} − y_i)/h_i`` the second derivative is
    continuous at inner points where ``h_i s_{i−1} + 2 (h_{i−1} + h_i) s_i + h_{i−1} s_{i+1} =
    3 (h_i d_{i−1} + h_{i−1} d_i)``. Not-a-knot, a continuous third derivative at the second point:
    ``h_1 s_0 + (h_0 + h_1) s_1 = ((3 h_0 + 2 h_1) h_1 d_0 + h_0² d_1)/(h_0 + h_1)``; and so at the
    other end (de Boor, chapter IV, (8) and (13)).
    """
    n = x.shape[0]
    if n == 1:
        return jnp.zeros_like(y)
    h = jnp.reshape(jnp.diff(x), (-1, *[1] * (y.ndim - 1)))
    d = jnp.diff(y, axis=0) / h
    if n == 2:
        return jnp.concatenate([d, d])
    before, after = h[:-1], h[1:]
    if n == 3:
        middle = (after * d[:1] + before * d[1:]) / (before + after)
        return jnp.concatenate([2.0 * d[:1] - middle, middle, 2.0 * d[1:] - middle])

    def end(h0: Array, h1: Array, d0: Array, d1: Array) -> Array:
        return ((3.0 * h0 + 2.0 * h1) * h1 * d0 + h0**2 * d1) / (h0 + h1)

    none = jnp.zeros_like(h[:1])
    lower = jnp.concatenate([none, after, h[-1:] + h[-2:-1]])
    diagonal = jnp.concatenate([h[1:2], 2.0 * (before + after), h[-2:-1]])
    upper = jnp.concatenate([h[:1] + h[1:2], before, none])
    first, last = end(h[:1], h[1:2], d[:1], d[1:2]), end(h[-1:], h[-2:-1], d[-1:], d[-2:-1])
    right = jnp.concatenate([first, 3.0 * (after * d[:-1] + before * d[1:]), last])
    return _tridiagonal(lower, diagonal, upper, right)


def _tridiagonal(lower: Array, diagonal: Array, upper: Array, right: Array) -> Array:
    """The solution (n, …) of ``lower_i s_{i−1} + diagonal_i s_i + upper_i s_{i+1} = right_i``.

    By elimination without pivots and substitution backwards (Thomas), as scans: JAX's own
    tridiagonal solver has no kernel.
    """

    def eliminate(carry: tuple[Array, Array], row: tuple[Array, ...]) -> Any:
        (factor, value), (a, b, c, r) = carry, row
        pivot = b - a * factor
        carry = c / pivot, (r - a * value) / pivot
        return carry, carry

    def substitute(s: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        factor, value = row
        s = value - factor * s
        return s, s

    start = jnp.zeros_like(upper[0]), jnp.zeros_like(right[0])
    _, rows = lax.scan(eliminate, start, (lower, diagonal, upper, right))
    return lax.scan(substitute, jnp.zeros_like(right[0]), rows, reverse=True)[1]


def _text(x: Sampled | Spline, kind: str) -> str:
    shape = np.shape(x.values)
    each = f" of shape {shape[1:]}" if len(shape) > 1 else ""
    known = is_concrete(x.t) and np.ndim(x.t) == 1
    span = f" from {float(x.t[0]):.6g} to {float(x.t[-1]):.6g}" if known else ""
    count = f"{shape[0]} points{each}" if shape else "points"
    return f"{type(x).__name__}({count}{span}, {kind})"


def _place(index: np.ndarray) -> str:
    return ", ".join(map(str, index.tolist()))
