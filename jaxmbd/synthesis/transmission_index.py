"""How well a linkage transmits its input's motion: one at best, zero at a dead centre."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import JointCoordinate, parse_known
from jaxmbd.graph import Topology
from jaxmbd.kinematics import MotionState, own_jacobian
from jaxmbd.model import Mechanism
from jaxmbd.numerics import unpivoted_lu
from jaxmbd.observe import Observable, Output, Snapshot


def transmission(m: MotionState, joint: str, index: int = 0) -> Array:
    """Transmission index of a configuration with one joint's coordinate as the input.

    The columns of the closure's Jacobian that belong to the other joints span a volume; each
    joint's columns over the size of what it moves at the cut joints, it is one where nothing is
    lost and zero at a dead centre of the input, where the others can move while the input stands
    still. Of a four-bar, planar or RSSR, it is the sine of the transmission angle: between coupler
    and rocker, or between the coupler and the plane in which its far end moves across. Where there
    are as many conditions as dependent speeds it has a sign, and the sign tells the branches apart;
    otherwise (idle freedoms, redundant rows) it is not negative.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.kinematics import motion_state
        >>> from jaxmbd.synthesis import transmission
        >>> m = mbd.zoo.rssr()
        >>> print(f"{transmission(motion_state(m, mbd.neutral(m)), 'crank'):.3f}")
        0.713
    """
    columns = jnp.stack(_scaled_columns(m, joint, index), axis=1)
    rows, count = columns.shape
    if rows == count:
        return _determinant(columns)
    gram = columns @ columns.T if rows < count else columns.T @ columns
    square = _determinant(gram)
    return jnp.sqrt(jnp.maximum(square, 1e-300))


def _scaled_columns(m: MotionState, joint: str, index: int) -> list[Array]:
    """The dependent joints' columns, over the size of what each joint moves at the cuts."""
    jacobian, moved, top = own_jacobian(m), _moved(m), m.top
    held = input_speed(top, joint, index)
    columns: list[Array] = []
    for name in top.tree:
        place = top.layout[name].v
        assert place is not None
        mine = [i for i in range(place.start, place.stop) if i != held]
        if not mine:
            continue
        part = moved[:, np.array(mine)]
        rank = _rank_at_most(len(mine), moved.shape[0])
        size = jnp.sqrt(jnp.sum(part * part) / rank + 1e-300)
        columns += [jacobian[:, k] / size for k in mine]
    return columns


def _moved(m: MotionState) -> Array:
    """What each speed moves at the cuts (k, nv): points, whatever a joint leaves free, and rows."""
    parts = []
    kinds, jacobian = np.array(m.top.row_kinds), own_jacobian(m)
    for name in m.top.cut:
        edge, rows = m.mech.joint(name), m.top.layout[name].rows
        if "force" in kinds[rows]:
            signs = m.moves(edge.a, edge.b)[:, None]
            columns = m.columns_at(m.position(edge.b, edge.point_b))
            parts.append(jnp.where(signs == 0.0, 0.0, signs * columns).T)
        parts.append(jacobian[rows][kinds[rows] == "moment"])
    for name in (*m.top.couplings, *m.top.drives):
        parts.append(jacobian[m.top.layout[name].rows])
    return jnp.concatenate(parts)


def _rank_at_most(columns: int, rows: int) -> int:
    return min(columns, rows, 2 if columns == 3 else columns)  # a ball's lever has no third column


def input_speed(top: Topology, joint: str, index: int) -> int:
    """The place of an input among the speeds."""
    place = top.layout[joint].v
    assert place is not None
    return place.start + index


def _determinant(a: Array) -> Array:
    """Determinant, by elimination without pivoting; of 1 and 2 rows written out."""
    if a.shape[0] == 1:
        return a[0, 0]
    if a.shape[0] == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    if a.shape[0] == 3:
        return a[0] @ jnp.cross(a[1], a[2])
    _, upper = unpivoted_lu(a)
    return reduce(jnp.multiply, [upper[i, i] for i in range(a.shape[0])])


@dataclass(frozen=True)
class Transmission(Observable):
    """Transmission index with a joint as the input: the sine of a four-bar's transmission angle.

    Attributes:
        input: the driving joint, or ``(joint, i)``.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Sweep
        >>> from jaxmbd.synthesis import Transmission
        >>> sweep = Sweep({"crank": [0.0, 0.5]}, {"worst": Transmission("crank").min()})
        >>> print(f"{sweep(mbd.zoo.rssr())['worst']:.3f}")
        0.713
    """

    input: Any

    def value(self, at: Snapshot) -> Array:
        """Its value at an instant."""
        key = input_key(at.mech, self.input)
        return transmission(at.motion, key.joint, key.index or 0)

    def about(self, mech: Mechanism) -> Output:
        """Its unit and meaning."""
        return Output("", f"transmission index of {self.input} (zero at a dead centre)")

    def problems(self, mech: Mechanism) -> list[str]:
        """Names that the mechanism does not have."""
        return input_problems(mech, self.input)


def input_problems(mech: Mechanism, joint: Any) -> list[str]:
    """What is wrong with an input."""
    try:
        keys, _ = parse_known(mech, {joint: 0.0})
    except ValueError as error:
        return [str(error).replace("known", "input", 1)]
    single = len(keys) == 1 and isinstance(keys[0], JointCoordinate)
    return [] if single else [f"input={joint!r} is not one coordinate of a joint"]


def input_key(mech: Mechanism, joint: Any) -> JointCoordinate:
    """The held coordinate that an input names."""
    key = parse_known(mech, {joint: 0.0})[0][0]
    assert isinstance(key, JointCoordinate)
    return key
