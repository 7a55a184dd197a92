"""Predictions of measured series with their derivatives, of many samples in one kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.design import Unknowns
from jaxmbd.identification.measured import Record
from jaxmbd.identification.unknown_numbers import Linear, held_path, held_values, with_held
from jaxmbd.model import Mechanism
from jaxmbd.observe import Experiment

AT_MOST = 1024
"""Columns of one call of a kernel."""


class Prediction(NamedTuple):
    """What the samples' models predict.

    Attributes:
        y: predicted series of all measurements, one after the other (count, N); NaN where a
            model fails.
        jacobian: ``∂y/∂x`` (count, N, n) with respect to the scaled unknowns.
        status: the first `Status` that is not OK, and the measurement where it is (count, 2).
    """

    y: np.ndarray
    jacobian: np.ndarray
    status: np.ndarray


@dataclass
class _Course:
    """A measurement's part of the prediction.

    Attributes:
        record: the measurement.
        held: its held values as functions of x.
        active: unknowns that its outputs may depend on through the model or the held values.
        rows: its place in the whole vector.
        gain, offset: of each channel, as functions of x.
        kernel: tangent map (x, held, ẋ, ḣ) → (outputs, their rates, status), over a batch.
    """

    record: Record
    held: Linear
    active: np.ndarray
    rows: slice
    sensors: Linear
    kernel: Callable[..., Any]


class Predictor:
    """The predictions of all measurements, as a function of the scaled unknowns x (count, n).

    Every column of a Jacobian is a sample of one kernel: measurements whose experiments differ only
    in the numbers they hold share it.

    Attributes:
        unknowns: what x stands for.
        mechanism: the model as it is given.
        records: the measurements.
        evaluations: number of samples predicted so far.
    """

    def __init__(self, unknowns: Unknowns, mech: Mechanism, known: list[Record]):
        self.unknowns, self.mechanism, self.records = unknowns, mech, known
        self.evaluations = 0
        kernels: list[tuple[Any, Callable[..., Any]]] = []
        self._courses: list[_Course] = []
        end = 0
        for record in known:
            size = sum(channel.values.size for channel in record.channels)
            self._courses.append(self._course(record, slice(end, end + size), kernels))
            end += size
        self.size = end

    def _course(self, record: Record, rows: slice, kernels: list[Any]) -> _Course:
        held = held_values(record.experiment, self.mechanism)
        paths = {held_path(record, p): float(x.value) for p, x in held.items()}
        sensors = {f"gain/{c.name}": 1.0 for c in record.channels}
        sensors |= {f"offset/{c.name}": 0.0 for c in record.channels}
        moving = Linear.of(self.unknowns, paths)
        active = np.flatnonzero(self._moves_model() | moving.moved())
        blank = with_held(record.experiment, dict.fromkeys(held, 0.0))
        same = (blank, tuple(held), [c.name for c in record.channels])
        kernel = next((made for key, made in kernels if key == same), None)
        if kernel is None:
            kernel = self._kernel(*same)
            kernels.append((same, kernel))
        linear = Linear.of(self.unknowns, sensors)
        return _Course(record, moving, active, rows, linear, kernel)

    def _moves_model(self) -> np.ndarray:
        """Which unknowns are numbers of the model (n,)."""
        foreign = self.unknowns.base.function.foreign
        n, start = len(self.unknowns), self.unknowns.values(np.zeros(len(self.unknowns)))
        own = [p for p in start if p not in foreign]
        found = np.zeros(n, bool)
        for i, e in enumerate(np.eye(n)):
            moved = self.unknowns.values(e)
            found[i] = any(np.any(moved[p] != start[p]) for p in own)
        return found

    def _kernel(self, blank: Any, held: tuple[str, ...], names: list[str]) -> Callable[..., Any]:
        def outputs(x: Array, h: Array) -> tuple[Array, Array]:
            mech = self.unknowns.model(x)
            experiment = with_held(blank, dict(zip(held, h, strict=True)))
            if isinstance(experiment, Experiment):
                found = experiment.computed(mech)
                status = found["status"]
            else:
                found, status = experiment(mech), jnp.full((), Status.OK, jnp.int32)
            y = jnp.concatenate([jnp.ravel(jnp.asarray(found[n])) for n in names])
            return y, jnp.asarray(status, jnp.int32)

        def tangent(x: Array, h: Array, dx: Array, dh: Array) -> tuple[Array, Array, Array]:
            (y, status), (dy, _) = jax.jvp(outputs, (x, h), (dx, dh))
            return y, dy, status

        return lanes.vmap(tangent)

    def __call__(self, x: Any) -> Prediction:
        """The predictions of the unknowns x (count, n)."""
        x = np.atleast_2d(np.asarray(x, np.float64))
        count, n = x.shape
        self.evaluations += count
        y, jac = np.empty((count, self.size)), np.zeros((count, self.size, n))
        status = np.zeros((count, 2), int)
        for k in reversed(range(len(self._courses))):
            course = self._courses[k]
            raw, columns, its = self._columns(course, x)
            y[:, course.rows], jac[:, course.rows] = _sensed(course, x, raw, columns)
            status[its != Status.OK] = np.stack([its, np.full_like(its, k)], -1)[its != Status.OK]
        y[status[:, 0] != Status.OK] = np.nan
        return Prediction(y, jac, status)

    def _columns(self, course: _Course, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs (count, m), their derivatives (count, m, active) and the status (count,)."""
        count, active = len(x), course.active if len(course.active) else np.array([0])
        dx = np.eye(x.shape[1])[active]
        every = [
            np.repeat(x, len(active), axis=0),
            np.repeat(course.held(x), len(active), axis=0),
            np.tile(dx, (count, 1)),
            np.tile(dx @ course.held.slope.T, (count, 1)),
        ]
        y, dy, status = _in_pieces(course.kernel, every)
        width = y.shape[1]
        columns = dy.reshape(count, len(active), width)[:, : len(course.active)]
        first = slice(None, None, len(active))
        return y[first], np.moveaxis(columns, 1, 2), status[first]


def _in_pieces(kernel: Callable[..., Any], every: list[np.ndarray]) -> list[np.ndarray]:
    """A kernel's results; batches are filled up to powers of two, so that few sizes occur."""
    total, pieces = len(every[0]), []
    for first in range(0, total, AT_MOST):
        part = [x[first : first + AT_MOST] for x in every]
        n = len(part[0])
        size = max(8, 1 << (n - 1).bit_length())
        filled = [np.concatenate([x, np.repeat(x[-1:], size - n, axis=0)]) for x in part]
        pieces.append([np.asarray(x)[:n] for x in kernel(*filled)])
    return [np.concatenate(x) for x in zip(*pieces, strict=True)]


def _sensed(
    course: _Course, x: np.ndarray, raw: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the sensors show at the data's places: ``gain · output + offset``, with derivatives."""
    values, slope, n = course.sensors(x), course.sensors.slope, x.shape[1]
    count = len(course.record.channels)
    ys, jacs, end = [], [], 0
    for i, channel in enumerate(course.record.channels):
        size = int(np.prod(channel.shape))
        y = channel.resampled(raw[:, end : end + size])
        columns_here = np.moveaxis(columns[:, end : end + size], 2, 1)
        moved = np.moveaxis(channel.resampled(columns_here), 1, 2)
        gain, offset = values[:, i, None], values[:, count + i, None]
        jac = np.zeros((*y.shape, n))
        jac[..., course.active] = gain[..., None] * moved
        jac += y[..., None] * slope[i] + slope[count + i]
        ys.append(gain * y + offset)
        jacs.append(jac)
        end += size
    return np.concatenate(ys, axis=1), np.concatenate(jacs, axis=1)
