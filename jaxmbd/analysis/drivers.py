"""What drives a mechanism: coordinates prescribed as functions of time, with their rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.known import Key, PointCoordinate, parse_known
from jaxmbd.model import (
    Drive,
    Mechanism,
    PointRef,
    Sampled,
    changed,
    function_and_numbers,
    value_and_rates,
)

Drivers = Mapping[Any, Any]
"""Key of `assemble` to ``fn(t)``, ``(fn, params)`` for ``fn(t, params)``, `Sampled` or a number."""


class Driver(eqx.Module):
    """One driven key: a function of time, or of time and its parameters, as those of samples."""

    key: Any = eqx.field(static=True)
    function: Callable[..., Any] | None = eqx.field(static=True)
    params: tuple[Any, ...] = ()

    def __call__(self, t: Array) -> Array:
        """The coordinate, or coordinates, at `t` [s]."""
        if self.function is None:
            return jnp.asarray(self.params[0], t.dtype) + 0.0 * t
        return jnp.asarray(self.function(t, *self.params), t.dtype)


class Held(NamedTuple):
    """Held coordinates at an instant.

    Attributes:
        keys: keys of the coordinates, as in `assemble`.
        values: values of the coordinates.
        rate_keys: keys of the speeds, one for each.
        rates, accelerations: values of the speeds and accelerations.
    """

    keys: tuple[Key, ...]
    values: list[Any]
    rate_keys: tuple[Key, ...]
    rates: list[Any]
    accelerations: list[Any]


def parse_drivers(mech: Mechanism, known: Drivers | None) -> list[Driver]:
    """The driven keys of `known`, as `Driver` objects.

    Raises:
        ValueError: a value is neither a function, a pair with one, nor a number; a key names an
            unknown part, or a coordinate that a drive of the mechanism prescribes already; a
            function returns the wrong number of coordinates.
    """
    drivers = []
    own = {(d.joint, d.index): n for n, d in mech.drives.items() if isinstance(d, Drive)}
    for key, value in (known or {}).items():
        if (drive := own.get((key, 0) if isinstance(key, str) else key)) is not None:
            raise ValueError(f"known: {key!r} is driven by the mechanism's drive '{drive}' already")
        function, *params = value if isinstance(value, tuple) else (value,)
        if isinstance(value, Sampled):
            function, params = function_and_numbers(value, None)[0], [value]
        if callable(function) and len(params) < 2:
            drivers.append(Driver(key, function, tuple(params)))
        elif isinstance(value, str) or not _is_number(value):
            raise ValueError(
                f"known: {key!r} is driven by {value!r}; give a function of t, a pair (function, "
                "params) for function(t, params), a Sampled, or a number"
            )
        else:
            drivers.append(Driver(key, None, (value,)))
    jax.eval_shape(lambda t: held_at(mech, drivers, t)[1], jnp.zeros((), mech.dtype))
    return drivers


def _is_number(value: Any) -> bool:
    try:
        return jnp.issubdtype(jnp.asarray(value).dtype, jnp.number)
    except TypeError:
        return False


def held_at(mech: Mechanism, drivers: list[Driver], t: Array) -> Held:
    """Values, rates and accelerations of the driven coordinates at `t`, rates by `jax.jvp`."""
    values, rates, accelerations = {}, {}, {}
    for d in drivers:
        values[d.key], rates[d.key], accelerations[d.key] = _driver_motion(mech, d, t)
    rate_keys, rate = parse_known(mech, rates, rates=True)
    return Held(
        *parse_known(mech, values), rate_keys, rate, parse_known(mech, accelerations, rates=True)[1]
    )


def _driver_motion(mech: Mechanism, driver: Driver, t: Array) -> tuple[Array, Array, Array]:
    """Coordinates, speeds and accelerations of one driven key."""
    name = driver.key[0] if type(driver.key) is tuple and driver.key else driver.key
    joint = mech.joint(name) if isinstance(name, str) and name in mech.joints else None
    # `parse_known` rejects a wrong number of coordinates.
    if joint is None or joint.scalar_coordinates or driver(t).shape != (joint.nq,):
        return value_and_rates(lambda s, _: driver(s), t, None)

    def speeds(s: Array) -> tuple[Array, Array]:
        q, rate = jax.jvp(lambda u: joint.normalized(driver(u)), (s,), (jnp.ones_like(s),))
        return q, joint.speeds_of_rate(q, rate)

    (q, v), (_, vdot) = jax.jvp(speeds, (t,), (jnp.ones_like(t),))
    return q, v, vdot


def led_by_drivers(mech: Mechanism, drivers: list[Driver]) -> tuple[Mechanism, list[Driver]]:
    """The mechanism without its own drives, and `drivers` extended by them.

    So they too are followed in small steps. A drive on a centre of mass stays in the mechanism,
    because no key names that point.
    """
    led, kept = list(drivers), []
    for entry in mech.structure.drives:
        drive = mech.drives[entry[0]]
        key: Any = None
        if isinstance(drive, Drive):
            key = (drive.joint, drive.index)
        elif isinstance(drive.at, PointRef):
            key = PointCoordinate(drive.body, drive.at.name, drive.axis)
        if key is None:
            kept.append(entry)
        else:
            led.append(Driver(key, drive.function, (drive.params,)))
    drives = {entry[0]: mech.drives[entry[0]] for entry in kept}
    # Only the drives differ, so nothing is validated again.
    structure = mech.structure._replace(drives=tuple(kept))
    return changed(mech, drives=drives, structure=structure), led
