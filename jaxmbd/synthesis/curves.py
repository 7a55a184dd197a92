"""Curves of planar motions: links that suit poses, centrodes, and a four-bar's cognates.

Points are complex numbers inside, p = x + i y.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.kinematics import motion_state
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.following import follow, input_key
from jaxmbd.synthesis.tasks import input_speeds


class Centrodes(NamedTuple):
    """Where a body's instant centre of rotation is, along its motion.

    Attributes:
        fixed: on the reference body, world axes as drawn (n, 2) [m].
        moving: on the body, as drawn (n, 2) [m].
        rate: angular velocity of the body, per unit of the input's rate (n,); where it vanishes
            the centre is at infinity.

    Example:
        >>> from jaxmbd.synthesis import Centrodes
        >>> Centrodes._fields
        ('fixed', 'moving', 'rate')
    """

    fixed: Array
    moving: Array
    rate: Array


def centrodes(mech: Mechanism, input: Any, inputs: Any, body: str) -> Centrodes:
    """Fixed and moving centrode of a body in the plane xy: one rolls on the other.

    The centre is where the body's points have no velocity, ``c = p + (−v_y, v_x) / ω``.

    Args:
        mech: a mechanism whose body moves in the plane xy.
        input: the driving joint, or ``(joint, i)``.
        inputs: its values along the motion, from the drawing (n,) [rad, m].
        body: the body.

    Returns:
        `Centrodes`; NaN where the loops do not close.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.synthesis import centrodes, massless_four_bar
        >>> linkage = massless_four_bar({"C": (2.0, 2.0)})
        >>> found = centrodes(linkage, "A", [0.0, 0.1], "coupler")
        >>> np.round(np.asarray(found.fixed[0]), 6).tolist()  # where A B and D C meet
        [0.0, 6.0]
    """
    key = input_key(mech, input)

    def at(q: Array) -> tuple[Array, Array, Array]:
        still = motion_state(mech, q)
        m = motion_state(mech, q, input_speeds(still, key))
        com = mech.com(body)
        place, velocity = m.point(body, com)
        rate = m.vel.angular[m.top.index(body)][2]
        centre = place[:2] + jnp.stack([-velocity[1], velocity[0]]) / rate
        rotation = m.rotation(body)[:2, :2]
        return centre, com[:2] + rotation.T @ (centre - place[:2]), rate

    return Centrodes(*jax.vmap(at)(follow(mech, input, inputs).q))


def cognates(points: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
    """The two other four-bars whose coupler point traces the same curve (Roberts and Chebyshev).

    With ``k = (P − B) / (C − B)`` the third pivot on the ground is ``A + k (D − A)``; the link at A
    of the first is B P, the link at D of the second is C P, each moved beside.

    Args:
        points: `A`, `B`, `C`, `D` and `P` of a four-bar, as `massless_four_bar` names them (2,).

    Returns:
        points of both, named alike, `P` as it was. The link at `A` of the first, from the same
        pivot, turns as the coupler did; that of the second, from `D`, likewise.

    Example:
        >>> from jaxmbd.synthesis import cognates
        >>> at = {"A": (0, 0), "B": (0, 1), "C": (3, 2), "D": (3, 0), "P": (1.5, 1.5)}
        >>> print([f"{x:.6f}" for x in cognates(at)[1]["A"]])
        ['3.000000', '0.000000']
    """
    a, b, c, d, p = (_complex(jnp.asarray(points[name], float)) for name in "ABCDP")
    k = (p - b) / (c - b)
    third = a + k * (d - a)
    first = {"A": a, "B": a + p - b, "C": a + p - b + k * (b - a), "D": third, "P": p}
    turned = 1.0 - k
    second = {"A": d, "B": d + p - c, "C": d + p - c + turned * (c - d), "D": third, "P": p}
    both = ({name: _plane(x) for name, x in found.items()} for found in (first, second))
    return next(both), next(both)


class Dyads(NamedTuple):
    """Links that guide a body through poses: a pin on the ground and one on the body each.

    Attributes:
        ground: centre points (k, 2) [m].
        body: circle points, where they are in the first pose (k, 2) [m].

    Example:
        >>> from jaxmbd.synthesis import Dyads
        >>> Dyads._fields
        ('ground', 'body')
    """

    ground: np.ndarray
    body: np.ndarray


def burmester_curve(targets: Any, rotations: Any, turns: Any = None) -> Dyads:
    """Links that guide a body through four poses: samples of the centre- and circle-point curves.

    A link W from the ground with Z from its end to the body's point has
    ``W (e^{iβ_j} − 1) + Z (e^{iα_j} − 1) = δ_j`` (Sandor and Erdman, Advanced Mechanism Design,
    1984); the determinant of these is ``Δ_1 + Δ_2 e^{iβ_2} + Δ_3 e^{iβ_3} + Δ_4 e^{iβ_4} = 0``, a
    triangle for each β_2, which closes in two ways.

    Args:
        targets: positions of a point of the body (4, 2) [m].
        rotations: its turn at each pose (4,) [rad], no two alike.
        turns: turn β_2 of the link from the first pose to the second (n,) [rad]; by default 360
            over a whole turn.

    Returns:
        `Dyads`, of both ways, those that exist (k ≤ 2 n).

    Raises:
        ValueError: there are not four poses, or two have the same rotation.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.synthesis import burmester_curve
        >>> poses = [[0, 0], [1, 0.6], [2.2, 0.9], [3.1, 0.7]], np.deg2rad([0, -15, -40, -70])
        >>> links = burmester_curve(*poses, turns=[0.5])
        >>> links.ground.shape[1]
        2
    """
    p, alpha = _poses(targets, rotations, 4)
    if turns is None:
        turns = np.linspace(0.0, 2.0 * np.pi, 360, endpoint=False) + np.pi / 360.0
    second = np.exp(1j * np.asarray(turns, np.float64))
    turned, moved = np.exp(1j * alpha[1:]) - 1.0, p[1:] - p[0]
    rest = [1, 2, 0, 1]
    minors = np.array(
        [turned[i] * moved[j] - turned[j] * moved[i] for i, j in zip(rest, rest[1:], strict=False)]
    )  # of β_2, β_3 and β_4
    side = minors.sum() - minors[0] * second
    sizes, far = np.abs(minors), np.abs(side)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = (far**2 + sizes[1] ** 2 - sizes[2] ** 2) / (2.0 * far * sizes[1])
        corner = np.arccos(cosine)
    found = []
    for way in (1.0, -1.0):
        third = np.exp(1j * (np.angle(side) - np.angle(minors[1]) + way * corner))
        a, b = second - 1.0, third - 1.0
        with np.errstate(invalid="ignore", divide="ignore"):
            z = (a * moved[1] - b * moved[0]) / (a * turned[1] - b * turned[0])
            w = (moved[0] - z * turned[0]) / a
        found.append(np.stack([p[0] - z - w, p[0] - z]))
    ground, body = np.concatenate(found, axis=1)
    good = np.isfinite(ground) & np.isfinite(body)
    return Dyads(_plane_of(ground[good]), _plane_of(body[good]))


def burmester_points(targets: Any, rotations: Any) -> Dyads:
    """The links that guide a body through five poses: none, two or four.

    A pin z of the body, in the first pose, and m on the ground keep their distance if
    ``Re[(1 − r_j) z m̄ + r_j z t̄_j − t_j m̄] + |t_j|²/2 = 0``, r_j and t_j the turn and travel of
    the body to pose j: linear in z m̄, z and m. Without z m̄ two equations give m by z; the other
    two are conics in z.

    Args:
        targets: positions of a point of the body (5, 2) [m].
        rotations: its turn at each pose (5,) [rad], no two alike.

    Returns:
        `Dyads`; any two of them make a four-bar.

    Raises:
        ValueError: there are not five poses, or two have the same rotation.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.synthesis import burmester_points
        >>> at = [[0, 0], [1, 0.6], [2.2, 0.9], [3.1, 0.7], [3.5, 0.1]]
        >>> len(burmester_points(at, np.deg2rad([0, -15, -40, -70, -90])).ground) in (0, 2, 4)
        True
    """
    p, alpha = _poses(targets, rotations, 5)
    r = np.exp(1j * alpha[1:])
    t = p[1:] - r * p[0]
    inner, outer = r * np.conj(t), t
    products = np.stack([np.real(1.0 - r), -np.imag(1.0 - r)], axis=1)  # of Re and Im of z m̄
    points = np.stack([np.real(inner), -np.imag(inner), -np.real(outer), -np.imag(outer)], axis=1)
    full = np.concatenate([products, points, np.abs(t[:, None]) ** 2 / 2.0], axis=1)
    left = np.linalg.qr(products, mode="complete")[0].T  # its last rows are without z m̄
    reduced = left[2:] @ full
    m_of = -np.linalg.solve(reduced[:, 4:6], reduced[:, [2, 3, 6]])  # (x, y, 1) to (u, v)
    upper = left[:2] @ full
    product_of = -np.linalg.solve(
        upper[:, :2], upper[:, [2, 3, 6]] + upper[:, 4:6] @ m_of
    )  # (x, y, 1) to Re and Im of z m̄
    real = _form([1, 0, 0], m_of[0]) + _form([0, 1, 0], m_of[1]) - _form([0, 0, 1], product_of[0])
    imag = _form([0, 1, 0], m_of[0]) - _form([1, 0, 0], m_of[1]) - _form([0, 0, 1], product_of[1])
    z = _common(real, imag)
    return Dyads((m_of[:, :2] @ z.T + m_of[:, 2:]).T, z)


def _form(a: Any, b: Any) -> np.ndarray:
    """The product of two linear forms of (x, y, 1), as a symmetric matrix (3, 3)."""
    product = np.outer(a, b)
    return (product + product.T) / 2.0


def _common(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Real points (k, 2) of two conics: their resultant in x is of fourth order."""
    scale = max(np.abs(first[2, 2]), np.abs(second[2, 2])) / max(
        np.abs(first[:2, :2]).max(), np.abs(second[:2, :2]).max()
    )
    unit = np.diag([np.sqrt(scale) or 1.0] * 2 + [1.0])
    conics = [unit @ c @ unit / np.abs(unit @ c @ unit).max() for c in (first, second)]

    def in_y(conic: np.ndarray, x: Any) -> list[Any]:
        """Coefficients of y², y and 1."""
        line, rest = 2.0 * (conic[0, 1] * x + conic[1, 2]), conic[0, 0] * x**2
        return [conic[1, 1], line, rest + 2.0 * conic[0, 2] * x + conic[2, 2]]

    def resultant(x: Any) -> Any:
        (a, b, c), (d, e, f) = (in_y(conic, x) for conic in conics)
        return (a * f - c * d) ** 2 - (a * e - b * d) * (b * f - c * e)

    nodes = np.exp(2j * np.pi * np.arange(5) / 5.0)  # of a polynomial of fourth order, exactly
    roots = np.roots(np.fft.fft(np.array([resultant(x) for x in nodes]))[::-1] / 5.0)
    found = []
    for x in roots:
        (a, b, c), (d, e, f) = (in_y(conic, x) for conic in conics)
        at = np.array([x, -(a * f - c * d) / (a * e - b * d)])
        for _ in range(6):
            whole = np.append(at, 1.0)
            value = np.array([whole @ conic @ whole for conic in conics])
            slope = 2.0 * np.array([(conic @ whole)[:2] for conic in conics])
            at = at - np.linalg.solve(slope, value)
        if np.abs(np.imag(at)).max() < 1e-7 * (1.0 + np.abs(at).max()):
            found.append(np.real(at) * unit[0, 0])
    return np.array(found).reshape(-1, 2)


def _poses(targets: Any, rotations: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n,) as complex numbers, and turns from the first pose."""
    at, turned = np.asarray(targets, np.float64), np.asarray(rotations, np.float64)
    if at.shape != (count, 2) or turned.shape != (count,):
        raise ValueError(
            f"targets and rotations have shapes {at.shape} and {turned.shape}; give {count} poses, "
            f"({count}, 2) and ({count},)"
        )
    turned = turned - turned[0]
    apart = np.abs(np.exp(1j * turned[:, None]) - np.exp(1j * turned)) + np.eye(count)
    if apart.min() < 1e-9:
        raise ValueError(
            f"rotations={rotations!r}: two poses are turned alike, so that the pole between them "
            "is at infinity; turn one by a little"
        )
    return at[:, 0] + 1j * at[:, 1], turned


def _complex(x: Array) -> Array:
    return x[0] + 1j * x[1]


def _plane(x: Array) -> Array:
    return jnp.stack([x.real, x.imag])


def _plane_of(x: np.ndarray) -> np.ndarray:
    return np.stack([np.real(x), np.imag(x)], axis=1)
