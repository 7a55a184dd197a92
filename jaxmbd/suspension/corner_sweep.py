"""The sweep behind the tables of kinematics: wheel travel or steering, with the rest held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbd.analysis import Key
from jaxmbd.graph import topology
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.observe import Curves, Experiment, Looked, Sweep, degrees_not_held, unheld_joints
from jaxmbd.plumbing import warn_user
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import held_joints, wheel_key
from jaxmbd.suspension.plausible import warn_of_corner
from jaxmbd.suspension.wheel_characteristics import CHARACTERISTICS, Characteristic, available

TRAVEL = tuple(np.linspace(-0.06, 0.06, 13).round(6).tolist())
"""Wheel travels of a table unless others are given [m]."""

GRADIENTS = (
    "camber",
    "toe",
    "half_track",
    "wheelbase_change",
    "caster",
    "virtual_caster",
    "roll_centre_height",
)
"""Characteristics whose derivatives are in a table unless others are asked for."""


@dataclass(frozen=True)
class CornerSweep(Sweep):
    """A sweep of a corner in which everything is held that its mechanism has to have held.

    What that is depends on the mechanism: a rack is held where it is drawn unless it is moved or
    held elsewhere, a track rod holds itself, and `Corner.hold` names joints of several coordinates.

    Attributes:
        over, observe, dim, known, settle, inputs: those of `Sweep`; `known` is what is held
            beyond that.
        corner: the roles.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import kinematics_sweep, zoo_corner
        >>> sweep = kinematics_sweep(zoo_corner("double_wishbone_kinematic"), travel=[0.01])
        >>> [str(key.joint) for key in sweep.keys(mbd.zoo.double_wishbone_kinematic())[1:]]
        ['rack']
    """

    corner: Corner | None = None

    __hash__ = Experiment.__hash__

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        """The held coordinates."""
        return self.on(mech)[0].keys(mech)

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        """The whole course."""
        return self.on(mech)[0].curves(mech, states=states)

    def own_problems(self, mech: Mechanism) -> list[str]:
        """Roles that do not fit the mechanism, and what `Sweep` finds."""
        assert self.corner is not None
        found = self.corner.problems(mech)
        name = self.corner.steering
        if not found and self._moved and not self.corner.slides(mech):
            found.append(
                f"steering={name!r} is a {type(mech.joint(str(name))).__name__}, which cannot be "
                "moved by a value; describe the corner with a rack (Prismatic)"
            )
        return found or self.on(mech)[0].own_problems(mech)

    def warn(self, mech: Mechanism) -> None:
        """Warn of points that look wrong, and of freedoms of the wheel that nothing holds."""
        assert self.corner is not None
        warn_of_corner(mech, self.corner)
        top, keys = topology(mech), self.keys(mech)
        if not self.settle and top.nv - top.nc > len(keys):
            if text := _not_held(mech, self.corner, keys):
                warn_user(text)

    @property
    def _moved(self) -> bool:
        assert self.corner is not None
        return self.corner.steering in self.over or self.corner.steering in self.known

    def on(self, mech: Mechanism) -> tuple[Sweep, Mechanism]:
        """The same with all that is held in this mechanism in `known`, and the mechanism."""
        assert self.corner is not None
        known = held_joints(mech, self.corner) | dict(self.known)
        if self.corner.slides(mech) and not self._moved:
            known[self.corner.steering] = 0.0
        return Sweep(self.over, self.observe, self.dim, known, self.settle, self.inputs), mech


def kinematics_sweep(
    corner: Corner,
    *,
    travel: float | Sequence[float] | None = None,
    steer: float | Sequence[float] = 0.0,
    observe: str | Iterable[str] | None = None,
    gradients: str | Iterable[str] | None = None,
    settle: bool = False,
) -> CornerSweep:
    """The experiment of `kinematics`: a pure function of the mechanism.

    The rack is held at `steer`, and the joints of `Corner.hold` where they are drawn. It can be
    batched by `lanes.vmap`, differentiated, and observed in a `Study` or by `minimize`.

    Args:
        corner: the roles.
        travel: of the wheel centre upwards, from where it is drawn [m]; a number where `steer` has
            several. By default `TRAVEL`, or 0 there.
        steer: travel of the rack along its axis, or angle, from where it is drawn [m].
        observe: name or names of characteristics; by default all that the corner has.
        gradients: names of those whose derivatives along the axis are wanted; by default those of
            `GRADIENTS` that are observed.
        settle: whether what is not held, as bushings are not, comes to rest.

    Raises:
        ValueError: both or none of travel and steer have several values, or a name is unknown.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import kinematics_sweep, zoo_corner
        >>> places = [-0.01, 0.0, 0.01]
        >>> bump = kinematics_sweep(zoo_corner("multi_link"), travel=places, observe=["toe"])
        >>> bump(mbd.zoo.multi_link())["toe"].shape
        (3,)
    """
    if travel is None:
        travel = 0.0 if np.ndim(steer) else TRAVEL
    along = [n for n, x in (("travel", travel), ("steer", steer)) if np.ndim(x)]
    if len(along) != 1:
        raise ValueError("give several values of either travel or steer, and one of the other")
    [axis] = along
    names = _scalars(corner) if observe is None else name_list(observe)
    slopes = [n for n in GRADIENTS if n in names] if gradients is None else name_list(gradients)
    wanted: dict[str, Any] = {}
    for name in dict.fromkeys([*names, *slopes]):
        if name in names:
            wanted[name] = Characteristic(corner, name)
        if name in slopes:
            wanted[f"{name}_gradient"] = Characteristic(corner, name, axis)
    held: dict[Any, Any] = {wheel_key(corner): travel}
    if np.any(np.asarray(steer)) or axis == "steer":
        if corner.steering is None:
            raise ValueError("this corner has no steering; name its rack: Corner(steering=)")
        held[corner.steering] = steer
    moved = {key: tuple(np.ravel(x).tolist()) for key, x in held.items() if np.ndim(x)}
    known = {key: x for key, x in held.items() if not np.ndim(x)}
    return CornerSweep(moved, wanted, dim=axis, known=known, settle=settle, corner=corner)


def of_mechanism(sweep: CornerSweep, mech: Mechanism) -> Sweep:
    """The plain sweep for one mechanism, with all that is held in it; warns of doubtful points.

    Raises:
        ValueError: roles or names do not fit the mechanism, or the wheel has a degree of
            freedom that is not held (where nothing is traced).
    """
    assert sweep.corner is not None
    sweep.corner.check(mech)
    sweep.check(mech)
    warn_of_corner(mech, sweep.corner)
    whole, _ = sweep.on(mech)
    if not sweep.settle and (text := _not_held(mech, sweep.corner, whole.keys(mech))):
        raise ValueError(text)
    return whole


def _not_held(mech: Mechanism, corner: Corner, keys: tuple[Key, ...]) -> str:
    """What of a corner's wheel is not held, and the cure; empty if nothing, or while tracing."""
    count, names = unheld_joints(mech, keys, _looked(mech, corner))
    it = "it" if count == 1 else "them"
    cure = f"name {it} in steering= or hold= of the Corner, or let {it} come to rest, settle=True"
    return f"{degrees_not_held(count)}: {', '.join(names)}; {cure}" if count else ""


def _looked(mech: Mechanism, corner: Corner) -> Looked:
    """The wheel, the chassis, all points with a role; a chassis or a rack is likeliest meant."""
    fixed = {GROUND, corner.chassis}

    def order(name: str) -> tuple[bool, bool, bool]:
        joint = mech.joint(name)
        touches = bool(fixed & {joint.a, joint.b})
        slides = touches and joint.speeds == ("travel",)
        return {joint.a, joint.b} != fixed, not slides, not touches

    places = tuple(dict.fromkeys((body, point) for _, body, point in corner.points()))
    turned = tuple(body for body in (corner.upright, corner.chassis) if body != GROUND)
    joints = [e.name for e in mech.structure.joints if e.kind.can_be_in_tree]
    return Looked(places, turned, tuple(sorted(joints, key=order)))


def name_list(names: str | Iterable[str]) -> list[str]:
    """Names as a list, also of a single one."""
    return [names] if isinstance(names, str) else list(names)


def _scalars(corner: Corner) -> list[str]:
    return [n for n in available(corner) if not CHARACTERISTICS[n].vector]
