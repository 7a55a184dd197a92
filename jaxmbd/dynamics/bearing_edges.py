"""A joint's reaction as forces at the two ends of its bearing.

A translational joint transmits no force along its axis u, but a force f normal to it and a moment
n. The lecture text (section 4.2, figure 4.4) puts the points of the constraint at the edges of the
slider, where the bodies touch. Two forces normal to the axis, at ``c ± (ℓ/2) u`` with c the middle
of the bearing, satisfy

    F1 + F2 = f − u (u·f),   (ℓ/2) u × (F1 − F2) = n − u (u·n)

so ``F1,2 = (f − u (u·f)) / 2 ± (n × u) / ℓ``. The remainder is the force ``u·f`` along the axis
(the thrust of a revolute; zero in a translational joint) and the torque ``u·n`` about it (carried
by the key of a slider; zero in a cylindrical joint).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxmbd.kinematics.motion import motion_state
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.spatial.rotations import cross


class EdgeForces(NamedTuple):
    """Forces at the two edges of a bearing, world axes.

    Attributes:
        points: the edges (2, 3) [m], first the one in the direction of +axis.
        forces: forces on b, normal to the axis (2, 3) [N].
        thrust: force on b along the axis [N].
        torque: on b about the axis [N·m].

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.EdgeForces._fields
        ('points', 'forces', 'thrust', 'torque')
    """

    points: Array
    forces: Array
    thrust: Array
    torque: Array


def edge_forces(
    mech: Mechanism,
    q: Array,
    reactions: Mapping[str, Array],
    joint: str,
    length: Any,
    offset: Any = 0.0,
    *,
    slider: str | None = None,
) -> EdgeForces:
    """The reaction of a joint with one axis as forces at the two edges of its bearing.

    If both forces have the same sense, the slider is pressed against one side of its guide; if they
    are opposite, it is tilted and touches both sides.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        reactions: constraint wrenches from `joint_reactions`, or from another formulation.
        joint: name of a joint with one axis (prismatic, cylindrical, helical, revolute).
        length: length of the bearing along the axis [m].
        offset: distance from the slider's joint point to the middle of the bearing, along the axis
            [m].
        slider: the body that the bearing moves with: a, or by default b.

    Returns:
        Edges, forces on b, thrust and torque: together the joint's whole wrench.

    Raises:
        ValueError: there is no such joint, it has no single axis, or `slider` is not one of its
            bodies.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.Mechanism(
        ...     bodies={"drawer": mbd.Body(mass=2.0, com=(0.3, 0, 0))},
        ...     joints={"rail": mbd.Prismatic("ground", "drawer", at=(0, 0, 0), axis=(1, 0, 0))},
        ... )
        >>> rest = jnp.zeros(1)
        >>> reactions = mbd.joint_reactions(m, rest, rest, rest, jnp.zeros(0))
        >>> edges = mbd.edge_forces(m, rest, reactions, "rail", length=0.2)
        >>> edges.forces[:, 2].round(2).tolist()  # the weight hangs 0.2 m outside the front edge
        [39.24, -19.62]
    """
    if joint not in mech.joints:
        raise ValueError(f"'{joint}' is no joint here: {list(mech.joints)}")
    kind = mech.joint(joint)
    axis = kind.bearing_axis()
    if axis is None:
        raise ValueError(
            f"joint '{joint}' is a {type(kind).__name__} and has no axis for a bearing"
        )
    if slider not in (None, kind.a, kind.b):
        raise ValueError(f"joint '{joint}': slider '{slider}' is neither '{kind.a}' nor '{kind.b}'")
    m = motion_state(mech, q)
    u = m.rotation(kind.a) @ jnp.asarray(axis, mech.dtype)
    x = m.position(kind.b, kind.point_b)
    start = m.position(kind.a, kind.point_a) if slider == kind.a else x
    middle = start + offset * u
    force = jnp.asarray(reactions[joint])[3:]
    moment = jnp.asarray(reactions[joint])[:3] + cross(x - middle, force)
    across, couple = 0.5 * (force - u * (u @ force)), cross(moment, u) / length
    half = 0.5 * length * u
    return EdgeForces(
        points=jnp.stack([middle + half, middle - half]),
        forces=jnp.stack([across + couple, across - couple]),
        thrust=u @ force,
        torque=u @ moment,
    )
