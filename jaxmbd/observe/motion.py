"""Motions: simulations from a start, with curves over time and their reductions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import Key, Status, assemble_velocity, efforts_at, parse_inputs, simulate
from jaxmbd.model import Mechanism
from jaxmbd.observe.at_rest import Configuration
from jaxmbd.observe.experiment import (
    Axis,
    Curves,
    Experiment,
    Failure,
    frozen_values,
    known_problems,
    named_observables,
)
from jaxmbd.observe.snapshot import Snapshot


@dataclass(frozen=True)
class Motion(Experiment):
    """The motion from a start: curves over time, and numbers that summarise them.

    Reductions are over all saved times, every `save_every`-th step; of the curves about `keep`
    points are kept. Extrema and crossings are located between saved times where the motion has nine
    of them in a period or more (`jaxmbd.observe.located`).

    Attributes:
        t1: end time [s].
        dt: step [s].
        observe: name to observable or reduced observable.
        start: the configuration to start from, by default the drawn one, assembled; `Settle()` for
            equilibrium.
        speeds: held initial speeds, with the keys of `assemble` [rad/s, m/s]; by default at rest.
        inputs: efforts on joints, as of `simulate`; changing them compiles again.
        method: integrator, as of `simulate`.
        save_every: observe every n-th step.
        keep: about how many points of a curve are kept; None for all.
        dim: name of the axis.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import CoordinateRate, Motion
        >>> swing = Motion(0.1, 1e-3, {"fastest": CoordinateRate("hinge").peak()})
        >>> round(float(swing(mbd.zoo.simple_pendulum())["fastest"]), 3)
        0.981
    """

    t1: float
    dt: float
    observe: Mapping[str, Any] = field(default_factory=dict)
    start: Configuration = field(default_factory=Configuration)
    speeds: Mapping[Any, float] = field(default_factory=dict)
    inputs: Any = None
    method: Any = "rk4"
    save_every: int = 1
    keep: int | None = 50
    dim: str = "t"

    moving: ClassVar[bool] = True

    __hash__ = Experiment.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "observe", named_observables(self.observe))
        object.__setattr__(self, "speeds", frozen_values(self.speeds))
        if self.inputs is not None and not callable(self.inputs):
            object.__setattr__(self, "inputs", frozen_values(self.inputs))
        if not (self.t1 > 0.0 and 0.0 < self.dt <= self.t1 and self.save_every >= 1):
            raise ValueError(
                f"Motion: t1={self.t1}, dt={self.dt}, save_every={self.save_every}; need "
                "0 < dt <= t1 and save_every of at least one"
            )

    @property
    def axis(self) -> str:
        return self.dim

    @property
    def _saves(self) -> int:
        return max(1, round(self.t1 / (self.dt * self.save_every)))

    def axis_values(self, mech: Mechanism) -> Axis:
        times = np.linspace(0.0, self.t1, self._saves + 1)[self.kept()]
        return Axis(tuple(times.tolist()), "s", "time")

    def kept(self) -> np.ndarray:
        saves = self._saves
        count = saves if self.keep is None else min(saves, self.keep)
        return np.unique(np.linspace(0, saves, count + 1).round().astype(int))

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        return self.start.keys(mech)

    def own_problems(self, mech: Mechanism) -> list[str]:
        return self.start.own_problems(mech) + known_problems(mech, self.speeds)

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        placed, failure = self.start.place(mech)
        every, inputs = self.observed(), parse_inputs(mech, self.inputs)
        v0 = assemble_velocity(mech, placed.q, self.speeds) if self.speeds else None

        def outputs(t: Array, q: Array, v: Array) -> list[Array]:
            at = Snapshot(mech, q, v, t, inputs=efforts_at(inputs, t, q, v))
            return [what.value(at) for what in every]

        run = simulate(
            mech,
            placed.q,
            v0,
            t1=self.t1,
            dt=self.dt,
            method=self.method,
            save_every=self.save_every,
            inputs=self.inputs,
            outputs=outputs,
            outputs_only=not states,
            throw=False,
            keep_inaccurate=False,
            backend="xla",
        )
        started = failure.status == Status.OK
        status = jnp.where(started, run.status, failure.status)
        late = started & (run.status != Status.OK)
        at = jnp.where(late, run.failed_at, jnp.where(started, jnp.nan, 0.0))
        observed = dict(zip(every, run.outputs, strict=True))
        failure = self.judged(Failure(status, failure.opening, at), run.t, observed)
        return Curves(run.t, run.q, run.v, observed, failure)
