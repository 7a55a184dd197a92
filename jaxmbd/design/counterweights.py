"""Counterweights for the least shaking force, shaking moment and driving torque.

A weight of mass m at r from the bearing of a body adds ``m r`` to what makes the shaking force, and
``m r²`` to what makes the shaking moment and the torque. So short heavy weights balance a force at
the price of mass, long light ones at that of torque, and with several wanted the best is a trade
(Berkof and Lowen, A new method for completely force balancing simple linkages, J. Eng. Ind. 91,
1969; Norton, Design of Machinery, chapter 12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.design.minimization import minimize
from jaxmbd.design.optimum import Optimum, failure_of
from jaxmbd.design.unknowns import Between, Vary
from jaxmbd.model import Body, Fixed, Mechanism
from jaxmbd.observe import DriveEffort, Driven, HoldingEffort, ShakingForce, ShakingMoment
from jaxmbd.plumbing import hint, refuse, text_table, unknown

_LEAST = 1e-3
"""The least mass over the largest. Of none at all the place would have no derivative, and a search
that comes to it from the wrong side would stay there."""
_UNITS = {"force": "N", "moment": "N m", "torque": "N m"}


@dataclass(frozen=True)
class Counterweight:
    """A weight that is to be bolted to a body: how heavy and how far out it may be.

    It is a point mass, the body ``<body>_counterweight``, fixed to its body.

    Attributes:
        body: name of the body.
        centre: the point about which it is placed, as a rule the bearing: name of a point, or its
            coordinates as drawn [m].
        reach: how far from `centre` it may lie along each axis [m]: one number for all axes, or one
            for each, with zero for an axis along which it stays, such as that of the bearing.
        mass: the largest [kg]; the least is a thousandth of it.

    Example:
        >>> from jaxmbd.design import Counterweight
        >>> Counterweight("crank", "A", reach=(0.1, 0.1, 0.0), mass=2.0).name
        'crank_counterweight'
    """

    body: str
    centre: Any
    reach: Any
    mass: float

    @property
    def name(self) -> str:
        """The name of the body and of the joint that it becomes."""
        return f"{self.body}_counterweight"

    def problems(self, mech: Mechanism) -> list[str]:
        """What does not fit the mechanism, or itself."""
        found = unknown("body", self.body, mech.structure.bodies)
        if isinstance(self.centre, str):
            found += unknown("point", self.centre, mech.structure.points)
        if found:
            return found
        size, reach = 2 if mech.structure.planar else 3, np.asarray(self.reach, float)
        if reach.shape not in ((), (size,)) or not (np.all(reach >= 0.0) and np.any(reach > 0.0)):
            found.append(
                f"reach={self.reach!r} of {self.name}: give a positive number, or {size} of them, "
                "zero for an axis along which it stays [m]"
            )
        if not 0.0 < self.mass < np.inf:
            found.append(f"mass={self.mass!r} of {self.name}: give the largest allowed [kg]")
        if self.name in {*mech.structure.bodies, *(x.name for x in mech.structure.joints)}:
            found.append(f"{self.name!r} is there already; vary its numbers by vary=")
        return found

    def limits(self, mech: Mechanism) -> tuple[np.ndarray, np.ndarray]:
        """Centre and reach along each axis [m]."""
        centre = np.asarray(mech.point(self.centre), float)[: 2 if mech.structure.planar else 3]
        return centre, np.broadcast_to(np.asarray(self.reach, float), centre.shape)

    def bolted(self, mech: Mechanism) -> Mechanism:
        """The mechanism with half of it, opposite to the body's centre of mass, half way out."""
        centre, reach = self.limits(mech)
        away = np.where(reach > 0.0, np.asarray(mech.com(self.body))[: len(centre)] - centre, 0.0)
        if np.max(np.abs(away)) < 1e-9 * np.max(reach):
            away = np.where(reach > 0.0, reach, 0.0)
        ahead = np.max(np.abs(away)[reach > 0.0] / reach[reach > 0.0])
        weight = Body(0.5 * self.mass, centre - 0.5 * away / ahead, 0.0)
        bolt = Fixed(self.body, self.name, at=self.centre)
        return mech.replace(
            bodies={**mech.bodies, self.name: weight}, joints={**mech.joints, self.name: bolt}
        )

    def vary(self, mech: Mechanism) -> Vary:
        """The ranges of its mass and place, by path."""
        centre, reach = self.limits(mech)
        place = {
            f"bodies/{self.name}/com/{axis}": Between(c - r, c + r)
            for axis, c, r in zip("xyz", centre, reach, strict=False)
            if r > 0.0
        }
        return {f"bodies/{self.name}/mass": Between(_LEAST * self.mass, self.mass), **place}


@dataclass(frozen=True)
class Balance:
    """What counterweights do for a machine; printed as a table.

    Attributes:
        mechanism: the mechanism with them.
        before, after: "force" [N], "moment" [N·m] and "torque" [N·m] without and with them, root
            mean squares over the motion.
        weights: name of each counterweight's body to its mass [kg] and place as drawn [m].
        optimum: what `minimize` found.

    Example:
        >>> from jaxmbd.design import Balance
        >>> [*Balance.__dataclass_fields__]
        ['mechanism', 'before', 'after', 'weights', 'optimum']
    """

    mechanism: Mechanism
    before: dict[str, float]
    after: dict[str, float]
    weights: dict[str, tuple[float, np.ndarray]]
    optimum: Optimum

    def __str__(self) -> str:
        rows = [
            (f"{name} [{_UNITS[name]}]", f"{old:.4g}", f"{self.after[name]:.4g}")
            for name, old in self.before.items()
        ]
        for name, (mass, place) in self.weights.items():
            where = ", ".join(f"{x:.4g}" for x in np.round(place, 9) + 0.0)
            rows.append((f"{name} [kg]", "", f"{mass:.4g} at ({where}) m"))
        own = tuple(f"bodies/{name}/" for name in self.weights)
        found = self.optimum
        others = [path for path in found.values if not path.startswith(own)]
        rows += [(x, f"{found.before[x]:.4g}", f"{found.values[x]:.4g}") for x in others]
        head = f"counterweights: {found.status}"
        if abs(found.objective - found.objective_before) <= 1e-9 * abs(found.objective_before):
            head += ", but they change nothing of what has a share"
        return "\n".join(
            [head, "", text_table(("root mean squares, numbers", "before", "after"), rows)]
        )


def counterbalance(
    mech: Mechanism,
    motion: Driven,
    weights: Sequence[Counterweight],
    *,
    shares: Mapping[str, float] | None = None,
    about: Any = None,
    vary: Vary | None = None,
    **options: Any,
) -> Balance:
    """Counterweights that make a machine's shaking and its driving torque least over a motion.

    Minimises ``Σ share (x / x₀)²`` over force, moment and torque, with x the root mean square over
    the motion's times and x₀ that without counterweights. The torque is the effort of the one
    drive (N where it drives a travel).

    Args:
        mech: the mechanism.
        motion: what is driven, and when; what it observes does not matter here.
        weights: where weights may be bolted on.
        shares: "force", "moment" and "torque" to how much each counts; by default the force alone.
        about: the point of the ground about which the moment is taken, by name or coordinates [m];
            needed where the moment has a share. It does not matter if the force vanishes.
        vary: further numbers that may change, as of `minimize`: the rate of a spring that balances
            the torque, a flywheel's inertia.
        **options: of `minimize`: `constraints` on "force", "moment" and "torque", `starts`.

    Returns:
        `Balance`.

    Raises:
        ValueError: lists what does not fit; the motion fails without counterweights; a share of
            what is zero from the start.

    Example:
        >>> import jax, numpy as np, jaxmbd as mbd
        >>> from jaxmbd.design import Counterweight, counterbalance
        >>> from jaxmbd.observe import Driven, constant_speed
        >>> machine = mbd.zoo.slider_crank(gravity=0.0)
        >>> turn = Driven({"O": constant_speed(20.0)}, np.linspace(0.0, 0.3, 37))
        >>> weight = Counterweight("crank", "O", reach=(0.1, 0.1, 0.0), mass=10.0)
        >>> found = counterbalance(machine, turn, [weight])
        >>> bool(found.after["force"] < 0.6 * found.before["force"])
        True
    """
    shares = {"force": 1.0} if shares is None else dict(shares)
    refuse("counterbalance", _problems(mech, weights, shares, about))
    seen = replace(motion, observe=_observed(mech, motion, about))
    before = _numbers(seen, mech)
    idle = [x for x in shares if not before[x] > 0.0]
    if idle:
        raise ValueError(f"counterbalance: {', '.join(idle)} is zero as drawn; leave its share out")

    def objective(found: Any) -> Any:
        return sum(share * (found[x] / before[x]) ** 2 for x, share in shares.items())

    start, ranges = mech, dict(vary or {})
    for weight in weights:
        start = weight.bolted(start)
        ranges |= weight.vary(mech)
    optimum = minimize(objective, start, ranges, observe=seen, **options)
    best = optimum.mechanism
    placed = {
        x.name: (float(best.bodies[x.name].mass), np.asarray(best.com(x.name))) for x in weights
    }
    return Balance(best, before, _numbers(seen, best), placed, optimum)


def _problems(
    mech: Mechanism, weights: Sequence[Counterweight], shares: Mapping[str, float], about: Any
) -> list[str]:
    found = [f"shares: there is no {x!r}; {hint(x, _UNITS)}" for x in shares if x not in _UNITS]
    wrong = {x: s for x, s in shares.items() if not 0.0 < s < np.inf}
    found += [f"shares: {x}={s!r} must be positive" for x, s in wrong.items()]
    if not shares:
        found.append(f"shares is empty; give some of {list(_UNITS)}")
    if "moment" in shares and about is None:
        found.append("the moment has a share, so give the point about which it is taken, about=")
    if not weights:
        found.append("weights is empty; give a Counterweight of a body, or use minimize")
    for weight in weights:
        found += weight.problems(mech)
    if len({x.body for x in weights}) < len(weights):
        found.append("two counterweights of one body; give one each")
    return found


def _observed(mech: Mechanism, motion: Driven, about: Any) -> dict[str, Any]:
    """The root mean squares by name: the torque where one coordinate is driven."""
    efforts: list[Any] = [HoldingEffort(key) for key in motion.known]
    efforts += [DriveEffort(drive[0]) for drive in mech.structure.drives]
    found: dict[str, Any] = {"force": ShakingForce("norm").rms()}
    if about is not None:
        found["moment"] = ShakingMoment(about, "norm").rms()
    if len(efforts) == 1:
        found["torque"] = efforts[0].rms()
    return found


def _numbers(seen: Driven, mech: Mechanism) -> dict[str, float]:
    found = seen(mech)
    if int(found["status"]) != Status.OK:
        raise ValueError(f"counterbalance: {failure_of(seen, mech)}")
    return {name: float(found[name]) for name in seen.observe}
