"""Problems of the IFToMM library: Andrews' squeezer, Bricard's mechanism, the flyball governor.

The library is that of computational benchmark problems of the Universidade da Coruña
(mbsbenchmark); its other problems here are `simple_pendulum` (A01) and `n_four_bar` (A02).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxmbd.model import (
    Body,
    Mechanism,
    PointOnLine,
    Prismatic,
    Revolute,
    SpringDamper,
    Torque,
)
from jaxmbd.zoo.drawing import downward, functions_for, rod_inertia

_X, _Y, _Z = np.eye(3)

ANDREWS = {
    "masses": (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498),
    "inertias": (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5),
    "A": (-0.06934, -0.00227),
    "B": (-0.03635, 0.03273),
    "C": (0.014, 0.072),
    "d": 0.028,
    "da": 0.0115,
    "e": 0.02,
    "ea": 0.01421,
    "rr": 0.007,
    "ra": 0.00092,
    "ss": 0.035,
    "sa": 0.01874,
    "sb": 0.01043,
    "sc": 0.018,
    "sd": 0.02,
    "ta": 0.02308,
    "tb": 0.00916,
    "u": 0.04,
    "ua": 0.01228,
    "ub": 0.00449,
    "zf": 0.02,
    "zt": 0.04,
    "fa": 0.01421,
}
"""Dimensions [m], masses [kg] and inertias [kg m²] of Andrews' squeezer, by the source's names."""

ANDREWS_START = {
    "beta": -0.06171389001427645,
    "Theta": 0.0,
    "gamma": 0.45527981916307037,
    "Phi": 0.22266839016588588,
    "delta": 0.48736497954384256,
    "Omega": -0.22266839016588588,
    "epsilon": 1.2305474445498212,
}
"""Angles [rad] at which it starts, at rest, by the source's names."""


def _andrews_points(p: Mapping[str, Any], xp: Any) -> dict[str, Any]:
    """Pivots, centres of mass `G1` … `G7` and spring ends at the starting angles, (3,) each."""
    beta, theta, gamma, phi, delta, omega, epsilon = ANDREWS_START.values()

    def polar(length: Any, angle: float) -> Any:
        return length * xp.asarray([np.cos(angle), np.sin(angle), 0.0])

    def across(length: Any, angle: float) -> Any:
        return length * xp.asarray([np.sin(angle), -np.cos(angle), 0.0])

    a, b, c = (xp.asarray([*p[n], 0.0]) for n in "ABC")
    crank = polar(p["rr"], beta)
    g, h = a + polar(p["zt"], delta), a + across(p["u"], epsilon)
    return {
        "O": xp.zeros(3),
        "A": a,
        "B": b,
        "C": c,
        "D": b + across(p["sc"], gamma) + polar(p["sd"], gamma),
        "E": crank - polar(p["d"], beta + theta),
        "F": crank,
        "G": g,
        "H": h,
        "G1": polar(p["ra"], beta),
        "G2": crank - polar(p["da"], beta + theta),
        "G3": b + across(p["sa"], gamma) + polar(p["sb"], gamma),
        "G4": g + across(p["e"] - p["ea"], phi + delta),
        "G5": a + polar(p["ta"], delta) - across(p["tb"], delta),
        "G6": h + polar(p["zf"] - p["fa"], omega + epsilon),
        "G7": a + across(p["ua"], epsilon) - polar(p["ub"], epsilon),
    }


def andrews_squeezer(
    torque: Any = 0.033,
    spring_rate: Any = 4530.0,
    free_length: Any = 0.07785,
    dimensions: Mapping[str, Any] | None = None,
) -> Mechanism:
    """Andrews' squeezing mechanism: seven bodies `K1` … `K7` in the plane xy, three loops.

    Source: problem A03 of the IFToMM library, and problem "andrews" of the test set for IVP solvers
    (Mazzia and Magherini; Hairer and Wanner, Solving Ordinary Differential Equations II, VII.7),
    whose symbols it uses; it runs 0.05 s (the test set: 0.03 s) from rest, without gravity. `O`
    (ground, K1), `F` (K1, K2), `B` (ground, K3), `A5` (ground, K5), `G` (K5, K4), `A7` (ground, K7)
    and `H` (K7, K6) turn about +z: their coordinates are the source's β, Θ, γ, δ, Φ, ε and Ω, from
    `ANDREWS_START` on. K2, K3, K4 and K6 meet in `E`: `E23`, `E24`, `E26` are points on lines along
    z, two rows each, so that no row is redundant. The spring pulls `D` of K3 toward `C`. The
    inertias across z, which have no effect, are those about z.

    Args:
        torque: on K1 about +z [N·m].
        spring_rate: [N/m].
        free_length: of the spring [m].
        dimensions: those that differ from `ANDREWS`; the loops must be closed as drawn.

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.mobility(mbd.zoo.andrews_squeezer()).dof
        1
    """
    p = ANDREWS | dict(dimensions or {})
    numbers = zip(p["masses"], p["inertias"], strict=True)
    turns = {"O": ("ground", "K1"), "F": ("K1", "K2"), "B": ("ground", "K3"), "G": ("K5", "K4")}
    turns |= {"H": ("K7", "K6"), "A5": ("ground", "K5"), "A7": ("ground", "K7")}
    joints: dict[str, Any] = {
        name: Revolute(*turns[name], at=name[0], axis=_Z)
        for name in ("O", "F", "B", "A5", "G", "A7", "H")
    }
    closing = {f"E2{i}": PointOnLine("K2", f"K{i}", at="E", axis=_Z) for i in (3, 4, 6)}
    return Mechanism(
        bodies={
            f"K{i}": Body(mass, com=f"G{i}", inertia=inertia)
            for i, (mass, inertia) in enumerate(numbers, start=1)
        },
        joints=joints | closing,
        forces={
            "spring": SpringDamper(
                "ground", "K3", "C", "D", stiffness=spring_rate, free_length=free_length
            ),
            "motor": Torque("ground", "K1", torque * _Z),
        },
        points=_andrews_points(p, functions_for(list(p.values()))),
        gravity=(0.0, 0.0, 0.0),
    )


def bricard(length: Any = 1.0, mass: Any = 1.0, width: Any = 0.1, gravity: Any = 9.81) -> Mechanism:
    """Bricard's rectangular mechanism: five rods and the ground, six hinges, one degree of freedom.

    Source: problem A04 of the IFToMM library, "rectangular Bricard mechanism", with rods of square
    section; it runs 10 s from rest as drawn, along six edges of a cube. Kutzbach's formula gives no
    degree of freedom, but one of its constraints is redundant. `J0` (ground, rod1) … `J5` (rod5,
    ground) turn about +y, +z, +x, +y, +z, +x; gravity acts along −y. The library plots the point
    `P3` between rod2 and rod3.

    Args:
        length: of each rod [m].
        mass: of each rod [kg].
        width: of the rods' square section [m].
        gravity: [m/s²] along −y, or a vector (3,).

    Returns:
        The mechanism, of one degree of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.mobility(mbd.zoo.bricard())
        >>> found.kutzbach, found.dof
        (0, 1)
    """
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)
    axial, across = mass * width**2 / 6.0, mass * (length**2 + width**2) / 12.0
    bodies, joints, names = {}, {}, ["ground", *(f"rod{i}" for i in range(1, 6)), "ground"]
    for i in range(1, 6):
        middle, along = 0.5 * (corners[i - 1] + corners[i]), corners[i] - corners[i - 1]
        bodies[names[i]] = Body(mass, length * middle, rod_inertia(along, axial, across))
    for i, axis in enumerate((_Y, _Z, _X) * 2):
        joints[f"J{i}"] = Revolute(names[i], names[i + 1], at=f"P{i + 1}", axis=axis)
    points = {f"P{i + 1}": length * corner for i, corner in enumerate(corners)}
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 1))


def flyball_governor(
    stiffness: Any = 8e5,
    damping: Any = 4e4,
    free_length: Any = 0.5,
    ball: Any = 5.0,
    density: Any = 3000.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """Watt's flyball governor, its coupler rods replaced by stiff springs with dampers.

    Source: problem A05 of the IFToMM library, "stiff flyball governor"; it runs 10 s, starting with
    the shaft at 2π rad/s and no other relative speed:
    ``assemble_velocity(mech, q, {"shaft": 2π})``. The shaft stands on the origin along z, 1 m high,
    and like the rods (1 m) has a section of 10 mm × 10 mm; the slider is a cube of 0.1 m. `shaft`
    (ground, shaft) and `slide` (shaft, slider) are along +z; `left` and `right` carry a rod each at
    ∓50 mm from the shaft's top, 30° below the horizontal, with a point mass at its end;
    `spring_left`, `spring_right` connect the rods' midpoints to the slider. The coordinate s of the
    source, 0.5 m at the start, is the slider's height.

    Args:
        stiffness: of the springs [N/m].
        damping: [N·s/m].
        free_length: [m].
        ball: each point mass [kg].
        density: of shaft, rods and slider [kg/m³].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of four degrees of freedom, without a loop.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.flyball_governor()).nv
        4
    """
    thin, cube = 0.01, 0.1
    bar, block = density * thin**2, density * cube**3
    axial, across = bar * thin**2 / 6.0, bar * (1.0 + thin**2) / 12.0
    along = np.array([np.cos(np.pi / 6), 0.0, -np.sin(np.pi / 6)])
    points: dict[str, Any] = {"foot": np.zeros(3), "s": 0.5 * _Z}
    bodies = {
        "shaft": Body(bar, 0.5 * _Z, rod_inertia(_Z, axial, across)),
        "slider": Body(block, "s", block * cube**2 / 6.0),
    }
    joints: dict[str, Any] = {
        "shaft": Revolute("ground", "shaft", at="foot", axis=_Z),
        "slide": Prismatic("shaft", "slider", at="s", axis=_Z),
    }
    forces = {}
    for side, sign in (("left", -1.0), ("right", 1.0)):
        mirror = np.array([sign, 1.0, 1.0])
        u, top = mirror * along, np.array([sign * 0.05, 0.0, 1.0])
        points[f"{side}_top"], points[f"{side}_middle"] = top, top + 0.5 * u
        points[f"{side}_ear"] = np.array([sign * 0.05, 0.0, 0.5])
        arm = (0.5 * bar + ball) / (bar + ball)
        # Rod and ball about their common centre: the rod's own inertia and m1 m2/(m1 + m2) l²/4.
        both = across + bar * ball / (bar + ball) * 0.25
        bodies[side] = Body(bar + ball, top + arm * u, rod_inertia(u, axial, both))
        joints[side] = Revolute("shaft", side, at=f"{side}_top", axis=_Y)
        ends = dict(at_a=f"{side}_ear", at_b=f"{side}_middle")
        forces[f"spring_{side}"] = SpringDamper(
            "slider", side, **ends, stiffness=stiffness, damping=damping, free_length=free_length
        )
    return Mechanism(bodies, joints, forces, points=points, gravity=downward(gravity, 2))
