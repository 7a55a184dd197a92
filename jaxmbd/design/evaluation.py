"""Goals of many designs at once, with exact derivatives, by one kernel.

A row of the kernel is one design x, one direction d in which it is differentiated, and one sample
of the scatter: ``F(x), F'(x) d``. The columns of a Jacobian are rows of the batch, side by side in
vector registers, so that only one forward derivative is compiled, whatever the number of unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.design.goals import Mean, Outputs, Scatter, Statistic, What, deviated, value_of
from jaxmbd.design.unknowns import Unknowns


class Evaluation:
    """The goals of designs x (b, n), as rows (b, m), and their derivatives.

    Args:
        unknowns: what x means.
        goals: name to an output's name or a function of the subject.
        observe: what is observed of the model; None: the model itself is the subject.
        scatter: deviations that are added to every design.
        measures: with scatter, what is taken of the samples of each goal; by default the mean.
        of_model: further goals, functions of the model whatever is observed.
        cases: numbers by name (s, …) of several cases, which `observe` takes after the model: a row
            then has the goals of all of them, one case after the other.

    Attributes:
        layout: goal to its slice of a row, of one case.
        shapes: goal to its shape.
        samples: path to deviations of the scatter (s, …), or the cases.
        factors: paths whose deviations are factors.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.design import Between, Evaluation, Unknowns
        >>> unknowns = Unknowns.of(None, {"a": Between(0.0, 3.0, start=1.0)})
        >>> goals = Evaluation(unknowns, {"square": lambda x: x["a"] ** 2})
        >>> goals.values(unknowns.vector([3.0])[None])
        array([[9.]])
    """

    def __init__(
        self,
        unknowns: Unknowns,
        goals: Mapping[str, What],
        observe: Callable[..., Any] | None = None,
        scatter: Scatter | None = None,
        measures: Mapping[str, Statistic] | None = None,
        of_model: Mapping[str, What] | None = None,
        cases: Mapping[str, np.ndarray] | None = None,
    ):
        self.unknowns, self.goals, self.observe = unknowns, dict(goals), observe
        self.of_model = dict(of_model or {})
        self.scatter, self.measures = scatter, dict(measures or {})
        self.factors: frozenset[str] = frozenset()
        self.samples, self.has_cases = dict(cases or {}), cases is not None
        if scatter is not None:
            if unknowns.base is None:
                raise ValueError("scatter= needs a model whose numbers scatter")
            self.factors = scatter.factors(unknowns.base)
            self.redraw(scatter.seed)
        one = jax.ShapeDtypeStruct((len(unknowns),), np.float64)
        sample = {p: jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for p, x in self.samples.items()}
        parts = jax.eval_shape(self._parts, one, sample)
        self.shapes = {name: parts[name].shape for name in (*self.goals, *self.of_model)}
        ends = np.cumsum([0, *(int(np.prod(s)) for s in self.shapes.values())])
        self.layout = {
            name: slice(int(a), int(b))
            for name, a, b in zip(self.shapes, ends[:-1], ends[1:], strict=True)
        }

    def redraw(self, seed: int) -> None:
        """Other samples of the scatter."""
        assert self.scatter is not None
        self.samples = self.scatter.drawn(self.unknowns.base, seed)

    def _parts(self, x: Any, sample: Mapping[str, Any]) -> dict[str, Array]:
        deviations, case = ({}, (sample,)) if self.has_cases else (sample, ())
        model = deviated(self.unknowns, x, deviations, self.factors)
        subject = model if self.observe is None else self.observe(model, *case)
        subject = Outputs(subject) if type(subject) is dict else subject
        found = {name: value_of(what, subject, name) for name, what in self.goals.items()}
        return found | {name: value_of(what, model, name) for name, what in self.of_model.items()}

    def row(self, x: Any, sample: Mapping[str, Any]) -> Array:
        """One design's goals (m,) at one sample, while tracing."""
        parts = self._parts(x, sample).values()
        return jnp.concatenate([jnp.ravel(y).astype(x.dtype) for y in parts])

    @cached_property
    def _columns(self) -> Callable[..., tuple[Array, Array]]:
        """(b, n) designs and (b, k, n) directions to (b, m) goals and (b, k, m) derivatives."""

        def column(x: Array, d: Array, sample: Any) -> tuple[Array, Array]:
            return jax.jvp(lambda y: self.row(y, sample), (x,), (d,))

        batched = lanes.vmap(column)

        def columns(x: Array, d: Array, samples: Any) -> tuple[Array, Array]:
            b, k, n = d.shape
            s = next((y.shape[0] for y in samples.values()), 1)
            shape = (b, s, k, n)
            rows = jnp.broadcast_to(x[:, None, None], shape).reshape(-1, n)
            ways = jnp.broadcast_to(d[:, None], shape).reshape(-1, n)
            spread = {
                p: jnp.broadcast_to(y[None, :, None], (b, s, k, *y.shape[1:])).reshape(
                    -1, *y.shape[1:]
                )
                for p, y in samples.items()
            }
            value, rate = batched(rows, ways, spread)
            value = value.reshape(b, s, k, -1)[:, :, 0]
            rate = jnp.moveaxis(rate.reshape(b, s, k, -1), 2, 0)
            if self.scatter is None:
                return value.reshape(b, -1), jnp.moveaxis(rate, 0, 1).reshape(b, k, -1)
            change = jax.vmap(lambda r: jax.jvp(self._measured, (value,), (r,))[1])(rate)
            return self._measured(value), jnp.moveaxis(change, 0, 1)

        return jax.jit(columns)

    def _measured(self, rows: Array) -> Array:
        """What is taken of samples (b, s, m): (b, m). One that failed spoils its design."""
        rows = jnp.moveaxis(rows, 1, 0)
        whole = jnp.all(jnp.isfinite(rows), axis=0)
        safe = jnp.where(jnp.isfinite(rows), rows, 0.0)
        parts = [
            self.measures.get(name, Mean()).of(safe[..., part])
            for name, part in self.layout.items()
        ]
        return jnp.where(whole, jnp.concatenate(parts, axis=-1), jnp.nan)

    def values(self, x: np.ndarray) -> np.ndarray:
        """Goals (b, m) of designs x (b, n); NaN where a design fails."""
        x = np.asarray(x, np.float64)
        return self._run(x, np.zeros((len(x), 1, x.shape[1])))[0]

    def jacobians(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Goals (b, m) and their derivatives (b, m, n) with respect to x."""
        x = np.asarray(x, np.float64)
        n = x.shape[1]
        value, rates = self._run(x, np.broadcast_to(np.eye(n), (len(x), n, n)))
        return value, np.moveaxis(rates, 1, 2)

    def _run(self, x: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, ...]:
        return _in_few_sizes(lambda x, d: self._columns(x, d, self.samples), x, d)

    def gradients(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """A single goal (b,) and its gradient (b, n) in reverse mode, for many unknowns."""
        return _in_few_sizes(lambda x: self._reverse(x, self.samples), x)

    @cached_property
    def _reverse(self) -> Callable[..., tuple[Array, Array]]:
        rows = lanes.vmap(lambda x, sample: self.row(x, sample)[0], in_axes=(None, 0))
        alone = lanes.vmap(jax.value_and_grad(lambda x: self.row(x, {})[0]))

        def one(x: Array, samples: Any) -> Array:
            return self._measured(rows(x, samples)[None, :, None])[0, 0]

        def gradients(x: Array, samples: Any) -> tuple[Array, Array]:
            if self.scatter is None:
                return alone(x)
            return jax.lax.map(lambda y: jax.value_and_grad(one)(y, samples), x)

        return jax.jit(gradients)

    def hessians(self, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
        """Hessians ``Σ wᵢ Fᵢ''(x)`` (b, n, n) of designs (b, n), w (b, m), without scatter."""
        return _in_few_sizes(lambda *given: (self._curvatures(*given),), x, weights)

    @cached_property
    def _curvatures(self) -> Callable[..., Array]:
        """A row of the kernel is one entry, by two forward derivatives."""

        def entry(x: Array, a: Array, b: Array, w: Array) -> Array:
            def slope(y: Array) -> Array:
                return jax.jvp(lambda z: w @ self.row(z, {}), (y,), (b,))[1]

            return jax.jvp(slope, (x,), (a,))[1]

        batched = lanes.vmap(entry)

        def curvatures(x: Array, w: Array) -> Array:
            b, n = x.shape
            every = [jnp.repeat(y, n * n, axis=0) for y in (x, w)]
            ways = [jnp.tile(y, (b, 1)) for y in np.eye(n)[np.indices((n, n)).reshape(2, -1)]]
            return batched(every[0], *ways, every[1]).reshape(b, n, n)

        return jax.jit(curvatures)

    @cached_property
    def digest(self) -> str | None:
        """What is computed, the same in every process; None if that cannot be told."""
        x = np.zeros((1, len(self.unknowns)))
        return lanes.digest(self._columns.trace(x, x[:, None], self.samples).jaxpr)  # type: ignore[attr-defined]


_AT_ONCE = 1024
"""Designs of one call."""


def _in_few_sizes(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """A function's results for the rows of arrays, in pieces that are filled up to a power of two.

    Every size costs compiling: there are 1, 4, 16, 64, 128 and so on.
    """
    pieces = []
    for first in range(0, len(arrays[0]), _AT_ONCE):
        part = [x[first : first + _AT_ONCE] for x in arrays]
        count = len(part[0])
        size = next((s for s in (1, 4, 16, 64) if s >= count), 1 << (count - 1).bit_length())
        filled = [np.concatenate([x, np.repeat(x[-1:], size - count, axis=0)]) for x in part]
        found = lanes.finished(function(*filled))
        pieces.append([np.asarray(y, np.float64)[:count] for y in found])
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
