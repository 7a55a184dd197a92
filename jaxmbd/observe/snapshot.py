"""A mechanism at one instant, as observables see it: motion, forces and reactions on demand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis import Key, PointCoordinate, balance_at_rest, point_of
from jaxmbd.dynamics import forward_dynamics, reactions_and_friction, rubbing_effort
from jaxmbd.graph import topology
from jaxmbd.kinematics import Accelerations, MotionState, motion_state, propagate_accelerations
from jaxmbd.model import Drive, Measure, Mechanism, PointDrive, RubbingElement, effort_measures


class Snapshot:
    """A mechanism at (t, q, v). What costs something is computed when it is first asked for.

    In motion the accelerations are those of forward dynamics, unless they are given. At rest they
    are zero, and held coordinates are held by efforts of their own. No inertia counts then: what is
    free and idle is held by efforts that no output shows (`jaxmbd.analysis.balance`). Multipliers
    and reactions are NaN where a load acts along a motion of the loops that nothing holds.

    Attributes:
        mech: the mechanism.
        q, v, t: coordinates (nq,), speeds (nv,), time [s].
        inputs: efforts on joints by name.
        keys, values: held coordinates.
        moving: whether it is in motion.
        vdot: accelerations (nv,) where the motion is given, with `multipliers`.
        multipliers: λ (nc,) and the efforts that hold the held coordinates (nk,), where known.
        driving: further efforts that `inputs` contain, by the coordinate that each drives.
        actuating: those of other joints, which produce the motion instead, by their coordinates.
        shared: what observables have found and other ones need too, by keys of their own.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Snapshot
        >>> mech = mbd.zoo.simple_pendulum()
        >>> at = Snapshot(mech, mbd.neutral(mech))
        >>> at.vdot.shape
        (1,)
    """

    def __init__(
        self,
        mech: Mechanism,
        q: Array,
        v: Array | None = None,
        t: Any = 0.0,
        *,
        inputs: Any = None,
        keys: tuple[Key, ...] = (),
        values: list[Any] | None = None,
        moving: bool = True,
        vdot: Array | None = None,
        multipliers: Array | None = None,
        driving: Mapping[Key, Array] | None = None,
        actuating: Mapping[Key, Array] | None = None,
    ):
        self.mech, self.q, self.t = mech, jnp.asarray(q, mech.dtype), t
        self.v = jnp.zeros(topology(mech).nv, self.q.dtype) if v is None else v
        self.inputs, self.keys, self.values = inputs, keys, values or []
        self.moving, self.multipliers, self._given = moving, multipliers, vdot
        self.driving, self.actuating = dict(driving or {}), dict(actuating or {})
        self.shared: dict[Any, Any] = {}

    @property
    def settled(self) -> bool:
        """Whether it is an equilibrium: what nothing holds has come to rest."""
        return not self.moving and self.multipliers is not None

    @cached_property
    def motion(self) -> MotionState:
        """Positions and velocities."""
        return motion_state(self.mech, self.q, self.v, self.t)

    @cached_property
    def _held(self) -> MotionState:
        """The same with the held coordinates as drives, whose multipliers are their efforts."""
        if not self.keys:
            return self.motion
        return motion_state(with_drives(self.mech, self.keys, self.values), self.q, self.v, self.t)

    @cached_property
    def _dynamics(self) -> tuple[MotionState, Array, Array]:
        """The state with all that holds it, v̇ (nv,), and λ with the efforts of held coordinates."""
        m, still = self._held, jnp.zeros_like(self.v)
        if self.multipliers is not None:
            return m, still if self._given is None else self._given, self.multipliers
        if self.moving:
            motion = m.mech, self.q, self.v, self.t, self.inputs
            return m, *forward_dynamics(*motion, backend="xla")
        m, lam = balance_at_rest(m, self.inputs)
        return m, still, lam

    @property
    def undetermined(self) -> Array:
        """Whether multipliers were asked for at rest that balance does not determine."""
        asked = "_dynamics" in self.__dict__ and not self.moving
        return jnp.any(jnp.isnan(self._dynamics[2])) if asked else jnp.asarray(False)

    @property
    def vdot(self) -> Array:
        """Accelerations (nv,)."""
        return self._dynamics[1]

    @property
    def lam(self) -> Array:
        """Multipliers (nc,) of the mechanism's own rows."""
        return self._dynamics[2][: self.motion.top.nc]

    @cached_property
    def accelerations(self) -> Accelerations:
        """Accelerations of all bodies."""
        m, vdot, _ = self._dynamics
        return propagate_accelerations(m.mech, m.q, m.pos, m.vel, m.v, vdot)

    @cached_property
    def reactions(self) -> dict[str, Array]:
        """Constraint wrench (6,) ``[n; f]`` of every joint on b, about its point, world axes."""
        m, _, lam = self._dynamics
        return reactions_and_friction(m, self.accelerations, lam, self.inputs)[0]

    def effort(self, name: str) -> Array:
        """Effort of a drive, a coupling or a joint of one row [N·m or N]."""
        rows = self.motion.top.layout[name].rows
        assert rows is not None
        return self.lam[rows][0]

    def holding(self, key: Key) -> Array:
        """Effort that holds, drives or actuates a coordinate [N·m or N], positive along it."""
        efforts = self.driving | self.actuating
        if key in efforts:
            return efforts[key]
        if key not in self.keys:
            held = [*self.keys, *efforts]
            raise ValueError(f"HoldingEffort: {key} is not held here; held or actuated are {held}")
        return self._dynamics[2][self.motion.top.nc + self.keys.index(key)]

    def measures(self, element: str) -> dict[str, Measure]:
        """The measures of a force element, with its potential energy and dry friction."""
        m, force = self.motion, self.mech.forces[element]
        joints = {e.name: self.mech.joint(e.name) for e in self.mech.structure.joints}
        found = dict(force.measures(m, joints))
        if has_energy(force):
            energy = jnp.asarray(force.energy(m), self.q.dtype)
            found["energy"] = Measure(energy, "J", "potential energy")
        if isinstance(force, RubbingElement):
            dry = rubbing_effort(m, force, self.reactions[force.joint])
            whole = dry + force.viscous_effort(m.joint(force.joint)[1])
            found |= effort_measures(force.joint, dry, joints, "dry")
            found |= effort_measures(force.joint, whole, joints, "effort")
        return found


def has_energy(force: Any) -> bool:
    """Whether a force element has a potential."""
    base = next(c for c in type(force).__mro__ if "energy" in c.__dict__)
    return base.__name__ != "ForceElement"


def _constant(t: Array, value: Array) -> Array:
    return value + 0.0 * t


def with_drives(mech: Mechanism, keys: tuple[Key, ...], values: list[Any]) -> Mechanism:
    """The mechanism with held coordinates as constant drives, its coordinates unchanged."""
    drives: dict[str, Drive | PointDrive] = {}
    for key, value in zip(keys, values, strict=True):
        name = f"hold {len(drives)}"
        while name in mech.drives or name in mech.joints or name in mech.couplings:
            name += "'"
        if isinstance(key, PointCoordinate):
            drives[name] = PointDrive(key.body, point_of(key), key.axis, _constant, value)
        elif key.index is not None:
            drives[name] = Drive(key.joint, _constant, value, key.index)
        else:
            raise ValueError(
                f"'{key.joint}' is held with all its coordinates; forces and reactions can be "
                "observed where single coordinates are held"
            )
    return mech.replace(drives=drives, cut=topology(mech).cut)


def element_measures(
    mech: Mechanism, q: Array, v: Array | None = None, t: Any = 0.0
) -> dict[str, dict[str, Measure]]:
    """Forces, deflections and energies of all force elements, by name, with unit and sign.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,); by default at rest.
        t: time [s].

    Returns:
        element to name to `Measure` (`value`, `unit`, `text`).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import element_measures
        >>> corner = mbd.zoo.multi_link()
        >>> spring = element_measures(corner, mbd.assemble(corner).q)["spring"]
        >>> round(float(spring["force"].value)), spring["force"].unit
        (-7629, 'N')
    """
    at = Snapshot(mech, q, v, t)
    return {name: at.measures(name) for name in mech.structure.forces}
