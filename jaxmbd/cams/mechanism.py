"""A cam and its follower as a mechanism, for forces, reactions and runs."""

from __future__ import annotations

from typing import Any

import jax

from jaxmbd.cams.base import CamStatus, Follower
from jaxmbd.model import GROUND, Body, Mechanism, Revolute, is_concrete
from jaxmbd.plumbing import warn_user


def cam_mechanism(
    follower: Follower, cam: Body, follower_body: Body, *, gravity: Any = (0.0, 0.0, 0.0)
) -> Mechanism:
    """A cam on a shaft and its follower, in contact by the curve: all forces act where they do.

    Bodies "cam" and "follower"; joints "shaft", "guide" and "contact". The coordinate of "shaft" is
    the cam's angle in its sense of turning, that of "guide" the displacement [m or rad]. The
    contact holds both ways; where its force (`observe.ContactForce`) is negative, a real follower
    would lift off. A cam that is undercut or out of the follower's reach is told by a warning: its
    mechanism may move, but by another programme or through metal.

    Args:
        follower: the cam and its follower.
        cam: its body, drawn at the cam's angle 0, the shaft being the z axis.
        follower_body: drawn at displacement 0.
        gravity: (3,) [m/s²].

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise, TranslatingRoller, cam_mechanism
        >>> lift = Programme([Rise(0.02, 1.5), Return(0.02, 1.5), Dwell()])
        >>> mech = cam_mechanism(
        ...     TranslatingRoller(lift, 0.04, 0.01), mbd.Body(1.0), mbd.Body(0.3, (0.0, 0.1, 0.0))
        ... )
        >>> round(float(mbd.assemble(mech, known={"shaft": 0.75}).q[1]), 12)
        0.01
    """
    if all(is_concrete(x) for x in jax.tree_util.tree_leaves(follower)):
        if status := CamStatus(int(follower.status())):
            warn_user(f"cam_mechanism: the cam is {status.name}; see status and least_base_radius")
    axis = (0.0, 0.0, follower.sense)
    joints = {"shaft": Revolute(GROUND, "cam", (0.0, 0.0, 0.0), axis)}
    return Mechanism(
        {"cam": cam, "follower": follower_body},
        {**joints, "guide": follower.guide_joint(), "contact": follower.contact_joint()},
        gravity=gravity,
    )
