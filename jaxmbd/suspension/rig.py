"""A rig under an axle: pads that lift and roll under its wheels, as those of a test rig do.

The body stays where it is, as on a rig for kinematics and compliance, and the road moves: it rises
(*heave*), turns about the x axis below the middle of the axle (*roll*), and carries a pad for each
wheel that moves along its normal (*left*, *right*). A wheel is a disc without width that stands on
its pad and slides on it freely. With n the normal of the road, R the tyre's radius, c the contact
and m the wheel centre, the disc's plane contains n's projection: ``c = m + R e``, e the direction
of steepest descent in the wheel's plane (`contact_point`), and ``n · (c − c_pad) = 0``.

No constraint of a new kind is needed. A massless *patch* lies flat on the pad (`Planar`), the
*rim* leans on it about the wheel's heading through the contact (`Revolute`), and turns about the
wheel's axis relative to the upright (`Revolute`): six freedoms less one are those of a disc that
touches a plane.

Loads on a contact act on the patch, along the wheel's heading and across it in the road's plane:
they go with the contact. Of a longitudinal force F the upright gets all of its moment about the
wheel centre, as from a wheel that is locked to it, by a torque ``−σ R F`` about the wheel's axis
from rim to upright (σ = 1 on the left, −1 on the right). A shaft from the body gives that back
where a brake or a motor sits on the body. A moment about the road's normal acts on the upright as a
whole. Each load is an actuator, without a load by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd.graph import topology
from jaxmbd.model import (
    GROUND,
    Actuator,
    Body,
    BodyActuator,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    TorsionSpring,
)
from jaxmbd.plumbing import refuse
from jaxmbd.spatial import cross, unit
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import contact_point, drawn_wheel

RIG = {
    "heave": "rig_heave",
    "roll": "rig_roll",
    "left": "rig_left",
    "right": "rig_right",
}
"""Joints of the rig by what they move."""

ROAD = "rig_road"


def on_rig(car: Mechanism, corners: Sequence[Corner], *, tyre_rate: Any = None) -> Mechanism:
    """An axle with its wheels on the pads of a rig; see the module's text.

    Joints, each with one coordinate that is zero as drawn, are ``rig_heave`` (of the road, upwards
    [m]), ``rig_roll`` (of the body relative to the road, about x as ISO 8855 has it: positive where
    its right side goes down [rad]), ``rig_left`` and ``rig_right`` (of the pads, along the road's
    normal [m]); with `tyre_rate` also ``rig_left_tyre`` and ``rig_right_tyre``, their compressions.
    Actuators take loads as `inputs`: ``rig_left_driving`` [N] forwards, ``rig_left_braking`` [N]
    rearwards, ``rig_left_lateral`` [N] to the left, ``rig_left_aligning`` [N·m] about the road's
    normal, and on the upright about the wheel's axis, outwards, ``rig_left_torque`` [N·m] from the
    rim and ``rig_left_shaft`` from the body; those of the right likewise.

    Args:
        car: the axle; its wheels are on the ground as drawn, at heights of their own.
        corners: roles of the left and the right wheel (`axle_corners`).
        tyre_rate: vertical stiffness of a tyre [N/m], for both or for each (2,); by default wheels
            are rigid. Its deflection counts from the drawing.

    Raises:
        ValueError: roles do not fit, or are not of one left and one right wheel.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car = suspension.axle(mbd.zoo.double_wishbone_kinematic(), shared=["rack"])
        >>> roles = suspension.axle_corners(
        ...     car, suspension.zoo_corner("double_wishbone_kinematic"))
        >>> rig = suspension.on_rig(car, roles)
        >>> int(mbd.mobility(rig).dof)  # heave, roll, two pads and the rack
        5
    """
    pair = corner_pair(corners)
    refuse("the axle", _problems(car, pair))
    wheels = [drawn_wheel(car, c) for c in pair]
    contacts = [contact_point(*wheel, c.tyre_radius) for wheel, c in zip(wheels, pair, strict=True)]
    middle = 0.5 * (contacts[0] + contacts[1]) * jnp.asarray([1.0, 0.0, 1.0], car.dtype)
    x, z = np.eye(3, dtype=car.dtype)[[0, 2]]
    bodies = {"rig_lift": Body(0.0, com=middle), ROAD: Body(0.0, com=middle)}
    joints: dict[str, Any] = {
        RIG["heave"]: Prismatic(GROUND, "rig_lift", at=middle, axis=z),
        RIG["roll"]: Revolute("rig_lift", ROAD, at=middle, axis=-x),
    }
    forces: dict[str, Any] = {}
    rates = jnp.broadcast_to(jnp.asarray(0.0 if tyre_rate is None else tyre_rate, car.dtype), (2,))
    for corner, (centre, spin), at, rate in zip(pair, wheels, contacts, rates, strict=True):
        name = RIG[corner.side]
        pad, patch, rim = (f"{name}_{part}" for part in ("pad", "patch", "rim"))
        bodies |= {pad: Body(0.0, com=at), patch: Body(0.0, com=at), rim: Body(0.0, com=centre)}
        joints[name] = Prismatic(ROAD, pad, at=at, axis=z)
        under = pad
        if tyre_rate is not None:
            under = f"{name}_tread"
            bodies[under] = Body(0.0, com=at)
            joints[f"{name}_tyre"] = Prismatic(pad, under, at=at, axis=-z)
            forces[f"{name}_tyre"] = TorsionSpring(f"{name}_tyre", rate)
        joints[f"{name}_contact"] = Planar(under, patch, at=at, normal=z, x_axis=x)
        heading = corner.sign * unit(cross(spin, jnp.asarray(z)))
        joints[f"{name}_lean"] = Revolute(patch, rim, at=at, axis=heading)
        joints[f"{name}_turn"] = Revolute(rim, corner.upright, at=centre, axis=spin)
        across = cross(jnp.asarray(z), heading)
        forces |= {
            f"{name}_driving": BodyActuator(patch, at, force=heading, a=under),
            f"{name}_braking": BodyActuator(patch, at, force=-heading, a=under),
            f"{name}_lateral": BodyActuator(patch, at, force=across, a=under),
            f"{name}_aligning": BodyActuator(under, at, moment=-z, a=corner.upright),
            f"{name}_torque": Actuator(f"{name}_turn"),
            f"{name}_shaft": BodyActuator(corner.upright, centre, moment=spin, a=corner.chassis),
        }
    cut = (*topology(car).cut, *(f"{RIG[c.side]}_lean" for c in pair))
    return car.replace(bodies=bodies, joints=joints, forces=forces, cut=cut)


def corner_pair(corners: Sequence[Corner]) -> tuple[Corner, Corner]:
    """The left and the right corner; a ValueError unless there is one of each, in this order."""
    if (sides := [c.side for c in corners]) != ["left", "right"]:
        raise ValueError(
            f"an axle has a left and a right corner, in this order; found {sides}. "
            "axle_corners makes both of the roles of one"
        )
    left, right = corners
    return left, right


def _problems(car: Mechanism, corners: Sequence[Corner]) -> list[str]:
    """Roles that do not fit, and names that the rig needs."""
    found = [text for c in corners for text in c.problems(car)]
    names = (*car.bodies, *car.joints, *car.forces)
    return found + [f"{n!r} is a name of the rig; rename it" for n in names if n.startswith("rig_")]
