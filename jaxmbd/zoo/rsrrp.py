"""The spatial linkage RSRRP with rigid or soft joints.

Urbaś, "Mathematical description of a flexible connection of links and its applications in
modeling the joints of spatial linkage mechanisms" (2016), figures 5 to 7; after Haug (1989). The
frame is the paper's: z along the axes of the crank and of the slider's guide, y upward.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jax import Array
from jax import numpy as jnp

from jaxmbd.model import (
    Body,
    JointTorque,
    Mechanism,
    Prismatic,
    Revolute,
    Spherical,
    Units,
    number,
    register_law,
    soften,
)
from jaxmbd.zoo.drawing import downward, functions_for, middle, rod_inertia, unit_vector

_Z = np.array([0.0, 0.0, 1.0])


@register_law("ramped_drive")
class RampedDrive(eqx.Module):
    """A drive that ramps up to its peak, and a resistance that balances it at one speed.

    Torque ``peak · min(t/start, 1) − peak · v/speed`` on a joint with speed v.

    Attributes:
        peak: torque of the drive from `start` on [N·m].
        start: time at which the peak is reached [s].
        speed: at which the resistance equals the peak [rad/s].

    Example:
        >>> import jaxmbd as mbd
        >>> drive = mbd.zoo.RampedDrive(peak=10.0, start=5.0, speed=9.0)
        >>> float(drive(2.5, None, 0.0)), float(drive(5.0, None, 9.0))
        (5.0, 0.0)
    """

    peak: Any = eqx.field(converter=number)
    start: Any = eqx.field(converter=number)
    speed: Any = eqx.field(converter=number)

    units: ClassVar[Units] = {"peak": "effort", "start": "s", "speed": "coordinate/s"}

    def __call__(self, t: Any, q: Any, v: Any) -> Array:
        """Torque on the joint [N·m] at time `t` [s] and speed `v` [rad/s]."""
        return self.peak * (jnp.minimum(t / self.start, 1.0) - v / self.speed)


def _drawn(crank: Any, coupler: Any, post: Any, beta: Any) -> dict[str, Any]:
    """Hardpoints with the crank upright and the coupler in the plane yz."""
    xp = functions_for(crank, coupler, post, beta)
    height = crank - coupler * xp.sin(beta)
    travel = -coupler * xp.cos(beta)
    return {
        "A": np.zeros(3),
        "S": number((0.0, crank, 0.0)),
        "R": number((0.0, height, travel)),
        "P": number((0.0, height - post, travel)),
    }


def rsrrp(
    crank: Any = 0.15,
    coupler: Any = 0.5,
    post: Any = 0.1,
    beta: Any = math.pi / 3,
    masses: Any = (0.6, 1.0, 0.3, 0.8),
    torque: Any = 10.0,
    start: Any = 5.0,
    speed: Any = 9.0,
    gravity: Any = 9.81,
    soft: str | None = None,
    stiffness: Any = 1e6,
    damping: Any = 1e3,
) -> Mechanism:
    """The RSRRP linkage, drawn assembled with the crank upright: an equilibrium under gravity.

    Source: Urbaś (2016), from which β = 60°, the drive's 10 N·m at 5 s, the 9 rad/s and the
    arrangement are taken. The lengths and masses, only in its figures, are ours: rods with m l²/12
    across and m·1e-4 m² about their axes, blocks with m·2e-4 m² for rocker and slider. So is the
    resistance, ``torque · ψ̇/speed``. Joints: `A` turns the crank about z (its coordinate is ψ),
    ball `S` joins crank and coupler, `R` joins the coupler's other end and the rocker about an
    axis that is x as drawn, `B` turns the rocker in the slider about z at the same point, and `P`
    guides the slider along z.

    Args:
        crank: its length [m].
        coupler: its length [m]; for a full turn longer than the crank plus the depth of `R` below
            `A`.
        post: height of `R` over the guide [m].
        beta: angle of the coupler and the guide as drawn [rad].
        masses: of crank, coupler, rocker and slider, (4,) [kg].
        torque: of the drive from `start` on [N·m].
        start: time at which the torque is reached [s].
        speed: of the crank at which the resistance balances the drive [rad/s].
        gravity: [m/s²] along −y, or a vector (3,).
        soft: None for rigid joints (the cut-joint technique), or the name of the joint that
            springs and dampers replace: the paper's are "S" and "R".
        stiffness: of that joint, a number or (2,) [N·m/rad; N/m], see `soften`.
        damping: of that joint, a number or (2,) [N·m·s/rad; N·s/m].

    Returns:
        The mechanism, of one degree of freedom if all its joints are rigid.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.rsrrp()).cut, mbd.topology(mbd.zoo.rsrrp(soft="R")).nv
        (('S',), 6)
    """
    points = _drawn(crank, coupler, post, beta)
    m_crank, m_coupler, m_rocker, m_slider = masses
    along = unit_vector(points["S"] - points["R"])
    block = 2e-4 * np.ones(3)
    mech = Mechanism(
        bodies={
            "crank": Body(
                m_crank,
                com=middle(points["A"], points["S"]),
                inertia=rod_inertia((0.0, 1.0, 0.0), 1e-4 * m_crank, m_crank * crank**2 / 12.0),
            ),
            "coupler": Body(
                m_coupler,
                com=middle(points["S"], points["R"]),
                inertia=rod_inertia(along, 1e-4 * m_coupler, m_coupler * coupler**2 / 12.0),
            ),
            "rocker": Body(m_rocker, com="R", inertia=m_rocker * block),
            "slider": Body(m_slider, com="P", inertia=m_slider * block),
        },
        joints={
            "A": Revolute("ground", "crank", at="A", axis=_Z),
            "S": Spherical("crank", "coupler", at="S"),
            "R": Revolute("coupler", "rocker", at="R", axis=(1.0, 0.0, 0.0)),
            "B": Revolute("slider", "rocker", at="R", axis=_Z),
            "P": Prismatic("ground", "slider", at="P", axis=_Z),
        },
        forces={"drive": JointTorque("A", law=RampedDrive(torque, start, speed))},
        points=points,
        gravity=downward(gravity, 1),
    )
    return mech if soft is None else soften(mech, soft, stiffness, damping)
