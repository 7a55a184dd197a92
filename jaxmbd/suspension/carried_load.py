"""Springs that carry the car: preloads by which each wheel bears its load where it is drawn.

With z_i the rise of wheel i while the others, racks and what `Corner.hold` names are held, V_i the
speeds of that motion, L_j the length of spring j and T_j a tension that is added to it, virtual
work says

    P_i − Σ_j T_j ∂L_j/∂z_i = 0,    P_i = −h · V_i,

h the efforts of all loads at rest, as weights, other springs and the wheel loads. It is exact in
one step where all is rigid but the springs; where bushings give way the motions are those of the
equilibrium at held wheel heights, and few steps of Newton's method do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis import Key, asked_rows, assemble, equilibrium, parse_known
from jaxmbd.dynamics import bias
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import constraint_residual, mechanism_length, motion_state, speed_units
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import Mechanism, PointForce, Tyre, changed, is_concrete
from jaxmbd.numerics import tolerances
from jaxmbd.plumbing import refuse, warn_user
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import Held, held_joints, speeds_at_rates, wheel_key
from jaxmbd.variables import shown

MISSING_LOAD = (
    "the mechanism carries no wheel load, so its springs hold no car up: give wheel_load= to the "
    "template, or use jaxmbd.suspension.preloaded"
)
_SETTLING = 6
"""Newton steps where bushings give way."""


def preloaded(
    mech: Mechanism,
    corners: Corner | Sequence[Corner],
    wheel_load: Any,
    *,
    settle: bool = False,
) -> Mechanism:
    """A corner or an axle whose springs carry a load on each wheel at the height drawn.

    The load is a force upwards on the wheel centre, the force element ``wheel_load`` (of an axle
    ``left_wheel_load`` and ``right_wheel_load``), which takes the place of one that is there. The
    spring of each wheel (`Corner.spring`) gets the preload that balances it together with all else:
    weights of the mechanism's bodies, other springs, bars. A heave spring keeps its load.

    Dampers, rates and geometry stay. A hardpoint that is moved afterwards leaves the springs as
    they are, as in a car; calling this again sets them anew.

    Args:
        mech: the corner or axle.
        corners: roles of its wheel, or of the left and the right one.
        wheel_load: of the road on each wheel [N], one number or one for each.
        settle: whether what is not held, as bushings are not, comes to rest.

    Raises:
        ValueError: roles do not fit, a wheel has no spring or one that does not work with it, or
            what gives way carries load as drawn and ``settle`` is False.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> roles = suspension.zoo_corner("macpherson")
        >>> strut = suspension.preloaded(mbd.zoo.macpherson(), roles, 4000.0)
        >>> rest = suspension.compliance(strut, roles)
        >>> bool(abs(rest.rise[0]) < 1e-9)
        True
    """
    wheels = (corners,) if isinstance(corners, Corner) else tuple(corners)
    refuse("preloaded", [text for c in wheels for text in _problems(mech, c)])
    loads = jnp.broadcast_to(jnp.asarray(wheel_load, mech.dtype), (len(wheels),))
    car = mech.replace(
        forces={
            load_name(wheels, c): PointForce(
                *c.placed("upright", c.wheel_centre), force=jnp.zeros(3, mech.dtype).at[2].set(x)
            )
            for c, x in zip(wheels, loads, strict=True)
        }
    )
    for _ in range(_SETTLING if settle else 1):
        place = _place(car, wheels, settle)
        added = jnp.linalg.solve(place.slopes, place.work)
        _refuse_idle(wheels, place.slopes, added)
        car = _tensioned(car, wheels, added)
    if not settle:
        _refuse_elastic(_place(car, wheels, settle))
    return car


def load_name(wheels: Sequence[Corner], corner: Corner) -> str:
    """The name of a wheel's load."""
    return "wheel_load" if len(wheels) == 1 else f"{corner.side}_wheel_load"


def _problems(mech: Mechanism, corner: Corner) -> list[str]:
    found = corner.problems(mech)
    if not found and corner.spring is None:
        found = [
            f"the {corner.side} wheel has no spring that carries it: name it, Corner(spring=), or "
            "give a template spring_by="
        ]
    return found


class _Place(NamedTuple):
    """What the springs are to balance at a place.

    Attributes:
        slopes: ∂L_j/∂z_i (n, n) of n wheels.
        work: P_i (n,) [N].
        efforts: h (nv,), in units of one length of the mechanism.
        rows: of loops and held coordinates (k, nv), likewise.
        open: the largest closure error there, over the mechanism's length.
    """

    slopes: Array
    work: Array
    efforts: Array
    rows: Array
    open: Array


def _held(mech: Mechanism, wheels: tuple[Corner, ...]) -> dict[Any, float]:
    """Heights of the wheels first, then joints that are held, then racks."""
    known: dict[Any, float] = {wheel_key(c): 0.0 for c in wheels}
    for corner in wheels:
        known |= held_joints(mech, corner)
    return known | {str(c.steering): 0.0 for c in wheels if c.slides(mech)}


def _place(mech: Mechanism, wheels: tuple[Corner, ...], settle: bool) -> _Place:
    held, options = _held(mech, wheels), (wheels, settle, mech)
    if any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(mech)):
        rest = equilibrium if settle else assemble
        return _measured(*options, rest(mech, known=held, throw=False).q)
    if settle:
        return _compiled(*options, equilibrium(mech, known=held).q)
    place = _compiled(*options, jnp.asarray(neutral(mech), mech.dtype))
    if float(place.open) <= tolerances.closing(mech.dtype):
        return place
    return _compiled(*options, assemble(mech, known=held).q)  # it is drawn with open loops


@host_jit
def _compiled(wheels: tuple[Corner, ...], settle: bool, mech: Mechanism, q: Array) -> _Place:
    return compiled("auto", lambda mech, q: _measured(wheels, settle, mech, q), mech, q)


def _measured(wheels: tuple[Corner, ...], settle: bool, mech: Mechanism, q: Array) -> _Place:
    keys, nc = _keys(mech, _held(mech, wheels)), topology(mech).nc
    m = motion_state(mech, q)
    rates = np.zeros((len(wheels), nc + len(keys)))
    rates[:, nc : nc + len(wheels)] = np.eye(len(wheels))
    speeds = speeds_at_rates(m, keys, Held(keys, settle), jnp.asarray(rates, mech.dtype))
    joints = {e.name: mech.joint(e.name) for e in mech.structure.joints}
    moved = [motion_state(mech, q, v) for v in speeds]
    springs = [mech.forces[str(c.spring)] for c in wheels]
    slopes = [jnp.stack([s.measures(x, joints)["rate"].value for s in springs]) for x in moved]
    h = bias(mech, q, jnp.zeros_like(speeds[0]))
    units = jnp.asarray(speed_units(mech))
    rows = asked_rows(m, keys).matrix * units
    gap = jnp.max(jnp.abs(constraint_residual(mech, q)), initial=0.0) / mechanism_length(mech)
    return _Place(jnp.stack(slopes), -speeds @ h, h * units, rows, gap)


def _keys(mech: Mechanism, held: Mapping[Any, float]) -> tuple[Key, ...]:
    """The held coordinates."""
    return parse_known(mech, dict(held))[0]


def _tensioned(mech: Mechanism, wheels: tuple[Corner, ...], added: Array) -> Mechanism:
    """The springs with further tension (n,)."""
    forces = {}
    for corner, x in zip(wheels, added, strict=True):
        spring: Any = mech.forces[str(corner.spring)]
        forces[str(corner.spring)] = changed(spring, preload=spring.preload + x)
    return mech.replace(forces=forces)


def _refuse_idle(wheels: tuple[Corner, ...], slopes: Array, added: Array) -> None:
    """A ValueError where a spring does not work with its wheel."""
    if not is_concrete(added):
        return
    least = np.linalg.svd(np.asarray(slopes), compute_uv=False)[-1]
    if np.all(np.isfinite(np.asarray(added))) and least > tolerances.rank(slopes.dtype):
        return
    names = ", ".join(f"{c.spring} of the {c.side} wheel" for c in wheels)
    raise ValueError(
        f"{names}: lengths change by {np.round(np.asarray(slopes), 6).tolist()} m per metre of "
        "wheel travel, so no preload carries the wheels; correct the springs' ends"
    )


def _refuse_elastic(place: _Place) -> None:
    """A ValueError where a load is left on what gives way, as on a bushing as drawn."""
    if not is_concrete(place.efforts):
        return
    rows, efforts = np.asarray(place.rows), np.asarray(place.efforts)
    left = efforts - rows.T @ np.linalg.lstsq(rows.T, efforts, rcond=None)[0]
    if not np.linalg.norm(left) <= tolerances.agreement(rows.dtype) * np.linalg.norm(efforts):
        raise ValueError(
            "preloaded: what gives way (bushings, springs that hold no wheel, a body that nothing "
            "holds) carries load where it is drawn; settle=True lets it come to rest"
        )


def warn_of_pull(car: Mechanism, wheels: Sequence[Corner], table: Any) -> None:
    """Warn where a pad pulls a wheel down in a `Kinematics` table of an axle: no road does."""
    for corner in wheels:
        if (pad := table.columns.get(f"{corner.side}_load")) is None:
            continue
        own = _carried(car, wheels, corner)
        load = np.asarray(pad, float) + own
        k = int(np.argmin(load))
        if not load[k] < -tolerances.agreement(car.dtype) * np.max(np.abs(pad)):
            continue
        unit, factor = shown(table.unit)
        text = (
            f"at {table.axis} {factor * float(table.x[k]):+.4g} {unit} the {corner.side} pad pulls "
            f"its wheel down, with {-load[k]:.0f} N"
        )
        if own:
            text += f" beside the wheel load of {own:.0f} N: on a road the wheel would lift off"
        warn_user(text if own else f"{text}: {MISSING_LOAD}")


def _carried(car: Mechanism, wheels: Sequence[Corner], corner: Corner) -> float:
    """The load on a wheel that the mechanism has itself [N]."""
    element = car.forces.get(load_name(wheels, corner))
    return float(np.asarray(element.force)[2]) if isinstance(element, PointForce) else 0.0


def missing_load(mech: Mechanism) -> str:
    """What is to be said of a mechanism that carries no wheel load; empty for others."""
    loaded = any(isinstance(x, (PointForce, Tyre)) for x in mech.forces.values())
    return "" if loaded else MISSING_LOAD
