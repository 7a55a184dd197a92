"""The agile wrist: a spherical parallel robot with three legs and three degrees of freedom.

All axes intersect in one centre, and consecutive ones are orthogonal: the agile eye's architecture
(Gosselin and Hamel 1994). Leg i turns about u_i, fixed in the ground (x, z, y for legs 1, 2, 3),
then about w_i, then about v_i, fixed in the platform (−y, −x, −z as drawn). With R the platform's
rotation and θ the angles of the base joints,

    w_1 = (0, −s1, c1),  w_2 = (−s2, c2, 0),  w_3 = (c3, 0, −s3),    w_i · R v_i = 0

(s_i = sin θ_i, c_i = cos θ_i), and R = 1 at θ = 0. With the columns r_1, r_2, r_3 of R the three
conditions are ``w_1 · r_2 = w_2 · r_1 = w_3 · r_3 = 0``.

Inverse: each condition gives ``tan θ_i``, so that each leg has two angles, half a turn apart: 8
working modes.

Direct: with p_1 = (0, c1, s1), p_2 = (c2, s2, 0), p_3 = (s3, 0, c3), orthogonal to u_i and w_i,

    r_1 ∝ A z + p_2,   r_2 ∝ C x + p_1,   r_3 ∝ E y + p_3

and orthogonality of the columns is linear in (A, C, E):

    [ s1  c2  0  ] [A]     [ s2 c1 ]
    [ 0   s3  c1 ] [C] = − [ s1 c3 ],    D = c1 c2 c3 + s1 s2 s3
    [ c3  0   s2 ] [E]     [ s3 c2 ]

The signs of the three columns are free except that det R = 1: four assembly modes. The sign of leg
i's column is that of its working mode, so that one triple of signs names both; a triple can be
assembled if its product is the sign of D. If D = 0 the platform can move with the legs at rest (the
self-motions of Bonev, Chablat and Wenger 2006). Four more solutions exist for all θ, with
``r_1 = ±z, r_2 = ±x, r_3 = ±y``: there the legs can move with the platform at rest.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model import Body, Cylindrical, Mechanism, Revolute, number
from jaxmbd.spatial import axis_rotation, cross
from jaxmbd.zoo.drawing import downward

_X, _Y, _Z = np.eye(3)
BASE_AXES = np.stack([_X, _Z, _Y])
"""u_i, fixed in the ground."""
ELBOW_AXES = np.stack([_Z, _Y, _X])
"""w_i as drawn."""
PLATFORM_AXES = np.stack([-_Y, -_X, -_Z])
"""v_i as drawn, fixed in the platform."""
MODES = tuple(itertools.product((1, -1), repeat=3))
"""The 8 triples of signs that name working and assembly modes."""
_COLUMN = np.array([1, 0, 2])  # the column of R in leg i's condition
_OFFSET = np.array([0, 2, 1])  # component of the column along u_i


def agile_eye_inverse(rotation: Any, mode: Any = (1, 1, 1)) -> Array:
    """Base angles θ (3,) [rad] of the agile eye for an orientation of its platform.

    ``θ_1 = atan2(s_1 R32, s_1 R22)``, ``θ_2 = atan2(s_2 R21, s_2 R11)``,
    ``θ_3 = atan2(s_3 R13, s_3 R33)``.

    Args:
        rotation: R (3, 3) of the platform from the drawn orientation.
        mode: signs (3,) of the working mode; (1, 1, 1) is the drawn one.

    Returns:
        θ in (-π, π]; undetermined for a leg whose platform axis lies along its base axis.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> quarter_about_x = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
        >>> np.degrees(mbd.zoo.agile_eye_inverse(quarter_about_x)).round(6).tolist()
        [90.0, 0.0, 0.0]
    """
    r, s = jnp.asarray(rotation), jnp.asarray(mode)
    sine, cosine = jnp.stack([r[2, 1], r[1, 0], r[0, 2]]), jnp.stack([r[1, 1], r[0, 0], r[2, 2]])
    return jnp.arctan2(s * sine, s * cosine)


def agile_eye_direct(theta: Any, mode: Any = (1, 1, 1)) -> Array:
    """Platform orientation R (3, 3) of the agile eye for its base angles.

    Args:
        theta: base angles (3,) [rad].
        mode: signs (3,) of the assembly mode; (1, 1, 1) is the drawn one.

    Returns:
        R with ``agile_eye_inverse(R, mode)`` = θ (up to whole turns). NaN if the mode cannot be
        assembled: the product of its signs is not the sign of ``D = c1 c2 c3 + s1 s2 s3``, or
        D = 0.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> r = mbd.zoo.agile_eye_direct([0.3, -0.2, 0.1])
        >>> print(np.asarray(mbd.zoo.agile_eye_inverse(r)).round(6))
        [ 0.3 -0.2  0.1]
    """
    theta, signs = 1.0 * jnp.asarray(theta), jnp.asarray(mode)
    s1, s2, s3 = (jnp.sin(x) for x in theta)
    c1, c2, c3 = (jnp.cos(x) for x in theta)
    d = c1 * c2 * c3 + s1 * s2 * s3
    possible = jnp.prod(signs) * d > 0.0
    d = jnp.where(possible, d, 1.0)
    # Cramer's rule, (A, C, E) in the order of r_1, r_2, r_3.
    b1, b2, b3 = s2 * c1, s1 * c3, s3 * c2
    along_z = b1 * s3 * s2 - c2 * (b2 * s2 - c1 * b3)
    along_x = s1 * (b2 * s2 - c1 * b3) + b1 * c1 * c3
    along_y = s1 * s3 * b3 + c3 * (c2 * b2 - b1 * s3)
    offsets = jnp.stack([along_z, along_x, along_y]) / -d
    zero = jnp.zeros_like(s1)
    columns = [
        offsets[0] * _Z + jnp.stack([c2, s2, zero]),
        offsets[1] * _X + jnp.stack([zero, c1, s1]),
        offsets[2] * _Y + jnp.stack([s3, zero, c3]),
    ]
    sizes = jnp.sqrt(1.0 + offsets**2)
    order = signs[jnp.asarray([1, 0, 2])] / sizes  # r_2 belongs to leg 1, r_1 to leg 2
    r = jnp.stack(columns, axis=1) * order
    return jnp.where(possible, r, jnp.nan)


def agile_eye_trivial_orientations() -> np.ndarray:
    """The four orientations (4, 3, 3) in which all legs can turn with the platform at rest.

    There every platform axis lies along its leg's base axis: ``r_1 = ±z, r_2 = ±x, r_3 = ±y``.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.agile_eye_trivial_orientations().shape
        (4, 3, 3)
    """
    base = np.stack([_Z, _X, _Y], axis=1)  # an even permutation of the axes: det 1
    return np.stack([base * np.array(s, float) for s in MODES if np.prod(s) > 0])


def agile_eye_jacobian(theta: Any, rotation: Any) -> Array:
    """J (3, 3) of the agile eye: the platform's angular velocity is ``ω = J θ̇``, world axes.

    The rate of ``w_i · R v_i = 0`` is ``(w_i × R v_i) · ω = ((u_i × w_i) · R v_i) θ̇_i``.

    Args:
        theta: base angles (3,) [rad].
        rotation: R (3, 3) of the platform at these angles.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> abs(mbd.zoo.agile_eye_jacobian(np.zeros(3), np.eye(3))).tolist()  # columns: u_i
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    w = _elbows(1.0 * jnp.asarray(theta))
    v = jnp.asarray(PLATFORM_AXES) @ jnp.asarray(rotation).T
    rows = cross(w, v)
    scale = jnp.sum(cross(jnp.asarray(BASE_AXES), w) * v, axis=1)
    # Rows are three vectors: their reciprocal basis is the inverse.
    basis = jnp.stack([cross(rows[i - 2], rows[i - 1]) for i in range(3)], axis=1)
    return basis * scale / (rows[0] @ cross(rows[1], rows[2]))


def _elbows(theta: Array) -> Array:
    """The w_i as rows (3, 3), at the base angles."""
    s, c, zero = jnp.sin(theta), jnp.cos(theta), jnp.zeros_like(theta[0])
    return jnp.stack(
        [
            jnp.stack([zero, -s[0], c[0]]),
            jnp.stack([-s[1], c[1], zero]),
            jnp.stack([c[2], zero, -s[2]]),
        ]
    )


def agile_wrist_rotations(theta: Any, mode: Any = (1, 1, 1)) -> dict[str, Array]:
    """Rotations (3, 3) of all bodies of `agile_wrist` in closed form, from the drawn orientation.

    A proximal link turns by θ_i about u_i; a distal link carries the frame (w_i, R v_i).

    Args:
        theta: base angles (3,) [rad].
        mode: signs (3,) of the assembly mode.

    Example:
        >>> import jaxmbd as mbd
        >>> list(mbd.zoo.agile_wrist_rotations([0.1, 0.2, 0.3]))[:2]
        ['proximal1', 'distal1']
    """
    theta = 1.0 * jnp.asarray(theta)
    r, w, out = agile_eye_direct(theta, mode), _elbows(theta), {}
    for i in range(3):
        drawn = _frame(ELBOW_AXES[i], PLATFORM_AXES[i])
        out[f"proximal{i + 1}"] = axis_rotation(jnp.asarray(BASE_AXES[i]), theta[i])
        out[f"distal{i + 1}"] = _frame(w[i], r @ PLATFORM_AXES[i]) @ drawn.T
    return {**out, "platform": r}


def _frame(x: Any, y: Any) -> Array:
    x, y = jnp.asarray(x), jnp.asarray(y)
    return jnp.stack([x, y, cross(x, y)], axis=1)


def _arc(mass: Any, radius: Any, start: np.ndarray, end: np.ndarray) -> Body:
    """A thin quarter circle about the centre, from the direction `start` to `end`.

    The mean of its directions e is ``(2/π)(u + w)``, the mean of ``e eᵀ`` is
    ``½ (u uᵀ + w wᵀ) + (u wᵀ + w uᵀ) / π``.
    """
    direction = 2.0 / np.pi * (start + end)
    square = 0.5 * (np.outer(start, start) + np.outer(end, end))
    square = square + (np.outer(start, end) + np.outer(end, start)) / np.pi
    central = np.eye(3) - square
    central = central - (direction @ direction) * np.eye(3) + np.outer(direction, direction)
    return Body(mass, com=radius * direction, inertia=mass * radius**2 * central)


def agile_wrist(
    masses: Any = (0.30, 0.25, 0.80),
    radii: Any = (0.12, 0.09),
    platform_com: Any = (-0.02, -0.02, -0.02),
    platform_inertia: Any = (1.1e-3, 1.2e-3, 1.0e-3),
    gravity: Any = 9.81,
    overconstrained: bool = True,
) -> Mechanism:
    """The agile wrist, drawn assembled at θ = 0, R = 1.

    Source: the case study of Ghaedrahmati et al. (2019), whose dimensions are not given: the agile
    eye's axes (see this module), and numbers of our own. Links are thin quarter circles about the
    centre, proximal ones from u_i to w_i, distal ones from w_i to v_i.
    Bodies: `proximal1`, `distal1` and so on, `platform`. Joints: `base1` (its coordinate is θ_1),
    `elbow1`, `wrist1` and so on, at the ends of the links.
    Its two loops of revolutes through one point have six redundant rows: a force that is passed
    around a loop through the centre has no resultant on any link, so that the joints' forces are
    only partly determinate.

    Args:
        masses: of a proximal link, a distal link and the platform, (3,) [kg].
        radii: of the proximal and the distal links, (2,) [m].
        platform_com: the platform's centre of mass as drawn, from the centre, (3,) [m].
        platform_inertia: about its centre of mass: three moments, or (3, 3) [kg m²].
        gravity: a vector (3,), or a number along −z [m/s²].
        overconstrained: if false, the joints of legs 2 and 3 are cylindrical: these legs orient
            the platform but do not constrain its centre, no row is redundant and all reactions
            are determinate; the motion is the same.

    Returns:
        The mechanism, of three degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mobility = mbd.mobility(mbd.zoo.agile_wrist())
        >>> mobility.dof, len(mobility.redundant)
        (3, 6)
    """
    proximal, distal, platform = masses
    outer, inner = radii
    points: dict[str, Any] = {"centre": np.zeros(3)}
    bodies: dict[str, Body] = {}
    joints: dict[str, Any] = {}
    for i in range(3):
        u, w, v = BASE_AXES[i], ELBOW_AXES[i], PLATFORM_AXES[i]
        k, kind = i + 1, Revolute if overconstrained or i == 0 else Cylindrical
        bodies[f"proximal{k}"] = _arc(proximal, outer, u, w)
        bodies[f"distal{k}"] = _arc(distal, inner, w, v)
        points |= {f"base{k}": outer * u, f"elbow{k}": outer * w, f"wrist{k}": inner * v}
        chain = ("ground", f"proximal{k}", f"distal{k}", "platform")
        for a, b, name in zip(chain, chain[1:], ("base", "elbow", "wrist"), strict=False):
            joints[f"{name}{k}"] = kind(a, b, at=f"{name}{k}", axis=("centre", f"{name}{k}"))
    bodies["platform"] = Body(platform, com=number(platform_com), inertia=platform_inertia)
    cut = ("wrist2", "wrist3")
    return Mechanism(bodies, joints, points=points, gravity=downward(gravity, 2), cut=cut)
