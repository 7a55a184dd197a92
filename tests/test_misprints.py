"""The papers' equations as corrected hold, and as printed they do not (docs/theory/papers.md).

Each check is independent of the package: derivatives by complex steps, matrices written out. Those
that other tests already make, against the package itself, are named on the page.
"""

from __future__ import annotations

import numpy as np
import pytest

STEP = 1e-30


def draw(*shape):
    """Numbers in general position."""
    return np.random.default_rng(7).normal(size=shape)


def rate(fn, *args):
    """``d fn / dt`` for arguments that move at given rates, pairs (value, rate); exact."""
    return np.imag(fn(*(x + 1j * STEP * v for x, v in args))) / STEP


def tilde(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def turn(axis, angle):
    """Rotation about a coordinate axis; the angle may be complex."""
    c, s = np.cos(angle), np.sin(angle)
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    out = np.eye(3, dtype=np.result_type(angle, float))
    out[i, i], out[j, j], out[i, j], out[j, i] = c, c, -s, s
    return out


def close(a, b):
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9))


# --- Hanzaki, Saha and Rao 2009 -------------------------------------------------------------------


def euler_parameters():
    p, rates = draw(2, 4)
    p /= np.linalg.norm(p)
    return p, rates - p * (p @ rates)


def rotation(p):
    e0, e = p[0], p[1:]
    return (2 * e0**2 - 1) * np.eye(3) + 2 * (np.outer(e, e) + e0 * tilde(e))


def test_000_angular_velocity_and_columns_of_a_ball():
    """(5) with ẽ instead of its derivative; (37) with B1 G*, since (14) is in the frame of #1."""
    p, p_rate = euler_parameters()
    e0, e, e_rate = p[0], p[1:], p_rate[1:]
    spin = rate(rotation, (p, p_rate)) @ rotation(p).T
    omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    right = np.column_stack([-e, tilde(e) + e0 * np.eye(3)])
    printed = np.column_stack([-e, tilde(e_rate) + e0 * np.eye(3)])
    assert close(2 * right @ p_rate, omega) and not close(2 * printed @ p_rate, omega)

    g_star = (rotation(p) + np.eye(3)) / e0
    assert close(g_star @ e_rate, omega)
    b1 = turn(0, 0.4) @ turn(2, 1.1)
    world = rate(lambda x: b1 @ rotation(x), (p, p_rate)) @ (b1 @ rotation(p)).T
    turned = np.array([world[2, 1], world[0, 2], world[1, 0]])
    assert close(b1 @ g_star @ e_rate, turned)
    assert not close(b1 @ rotation(p) @ g_star @ e_rate, turned)


def test_000_equations_about_the_origin_of_a_link():
    """(43) with (44), I_i about O_i, is Newton's and Euler's law about the mass centre."""
    d, omega, alpha, acceleration, velocity = draw(5, 3)
    mass, root = 1.7, draw(3, 3)
    about_com = root @ root.T
    of_com = acceleration + np.cross(alpha, d) + np.cross(omega, np.cross(omega, d))
    force = mass * of_com
    moment = about_com @ alpha + np.cross(omega, about_com @ omega) + np.cross(d, force)
    for inertia, holds in ((about_com - mass * tilde(d) @ tilde(d), True), (about_com, False)):
        m = np.block([[inertia, mass * tilde(d)], [-mass * tilde(d), mass * np.eye(3)]])
        w = np.kron(np.eye(2), tilde(omega))
        e = np.diag([1.0, 1, 1, 0, 0, 0])
        t = np.r_[omega, velocity]
        found = m @ np.r_[alpha, acceleration] + w @ m @ e @ t
        assert close(found, np.r_[moment, force]) is holds


# --- Attia: equivalent particles ------------------------------------------------------------------


def test_002_acceleration_of_the_dependent_particle():
    """(13), (14) need ṙ_41 and r̈_41 in their second terms; (15) lacks the last term of (14)."""
    r, v, a = draw(3, 3, 3)  # particles 1, 2, 4
    side, mu, tau = 0.6, -0.4, 1.3

    def third(x):
        return (
            x[0]
            + side * np.cross(x[1] - x[0], x[2] - x[0])
            + mu * (x[2] - x[0])
            + tau * (x[1] - x[0])
        )

    def velocity(x, y):
        edges, rates = x[1:] - x[0], y[1:] - y[0]
        both = np.cross(rates[0], edges[1]) + np.cross(edges[0], rates[1])
        return y[0] + side * both + mu * rates[1] + tau * rates[0]

    assert close(velocity(r, v), rate(third, (r, v)))
    exact = rate(velocity, (r, v), (v, a))
    r21, r41, r42 = r[1] - r[0], r[2] - r[0], r[2] - r[1]
    one = np.eye(3)
    printed = (
        ((1 - mu - tau) * one + side * tilde(r42)) @ a[0]
        + (tau * one - side * tilde(r41)) @ a[1]
        + (mu * one + side * tilde(r21)) @ a[2]
    )
    missing = 2 * side * np.cross(v[1] - v[0], v[2] - v[0])
    assert close(printed + missing, exact) and not close(printed, exact)


def test_002_signs_of_the_invariants():
    """(10.1)-(10.4) are right where λ, μ, τ are positive, and only there."""
    r1, r2, r4 = np.zeros(3), np.array([1.0, 0, 0]), np.array([0.3, 0.8, 0])
    for side, mu, tau, holds in (
        (0.7, 0.4, 0.5, True),
        (-0.7, 0.4, 0.5, False),
        (0.7, -0.4, 0.9, False),
    ):
        r21, r41, r42 = r2 - r1, r4 - r1, r4 - r2
        normal = np.cross(r21, r41)
        r3 = side * normal + mu * r41 + tau * r21
        bar = abs(r3 @ normal) / np.linalg.norm(normal)  # (10.1)
        foot = r3 - bar * normal / np.linalg.norm(normal)
        nu = np.linalg.norm(foot)  # (10.2)
        norm = np.linalg.norm
        m = norm(r42) * norm(np.cross(r21, foot)) / norm(np.cross(foot, r42))  # (10.3)
        t = norm(r42) - m  # (10.4)
        along = m * r41 + t * r21
        again = bar * normal / norm(normal) + nu * along / norm(along)  # (11)
        assert close(again, r3) is holds


def test_002_moments_about_a_point_of_an_earlier_body():
    """A_3k under (20): the sum starts at 3k−2, as particle 1 of body k is not the reference."""
    r, a = draw(2, 4, 3)
    mass = np.exp(draw(4))
    middle = np.triu(np.exp(draw(4, 4)), 1)
    middle = middle + middle.T
    exact = sum(mass[i] * np.cross(r[i], a[i]) for i in range(4))
    for i in range(4):
        for j in range(i):
            exact = exact + middle[i, j] * np.cross(r[i] + r[j], a[i] + a[j]) / 4

    def moment(first):
        total = np.zeros(3)
        for i in range(4):
            others = [j for j in range(4) if j != i]
            own = mass[i] + sum(middle[i, j] for j in others) / 4  # (9): ¼, where (7) has ½
            arm = own * r[i] + sum(middle[i, j] * r[j] / 4 for j in others if j >= first)
            total = total + np.cross(arm, a[i])
        return total

    assert close(moment(0), exact) and not close(moment(1), exact)
    r = r - r[0]  # of a single body, about its own particle 1, (8) is right
    assert close(moment(0), moment(1))


# --- Urbaś 2016: flexible connections -------------------------------------------------------------


def test_003_deformation_in_the_axes_of_the_element():
    """(6), (7) are in global axes; with (R^(1,e))ᵀ they do not change as both links turn."""
    r1 = turn(0, 0.2) @ turn(1, 0.5)
    x1, x2 = draw(2, 3)
    both = turn(1, 1.3)
    assert close((both @ r1).T @ (both @ x2 - both @ x1), r1.T @ (x2 - x1))
    assert not close(both @ x2 - both @ x1, x2 - x1)


def test_003_the_offset_is_not_scaled():
    """(9.1): y is no factor of the offset between the two origins; in (11.1) that is zero."""
    r = turn(0, 0.1)
    offset, y = np.array([0.0, 0.0, 0.02]), 0.5
    t = np.block([[r, offset[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    exact = (t @ [0, y, 0, 1])[2]
    assert not close(exact, y * (t @ [0, 1, 0, 1])[2])
    assert close(exact, y * (t @ [0, 1, 0, 1 / y])[2])


def test_003_matrices_that_are_no_rotations():
    """T^(1,2): entry (3, 1) is −sin θ. T^(2,e) of the spherical joint is a reflection."""
    psi, theta, phi = 0.4, 0.7, -0.3
    right = turn(2, psi) @ turn(1, theta) @ turn(0, phi)
    printed = right.copy()
    printed[2, 0] = -np.sin(psi)
    assert close(right[2, 0], -np.sin(theta)) and close(right @ right.T, np.eye(3))
    assert not close(printed @ printed.T, np.eye(3))
    c, s = np.cos(np.radians(60)), np.sin(np.radians(60))
    of_ball = np.array([[0, c, s], [0, s, -c], [1, 0, 0]])
    of_hinge = np.array([[0, -s, c], [0, c, s], [-1, 0, 0]])
    assert close(np.linalg.det(of_ball), -1) and close(np.linalg.det(of_hinge), 1)


# --- Lecture text ---------------------------------------------------------------------------------


def test_004_four_bar_angles():
    """(1.1) and (1.2) together would say d cos θ2 = l cos θ1, whatever the linkage."""
    l, r, d, s, phi = 1.0, 0.4, 0.9, 0.7, 0.8
    b, far = r * np.array([np.cos(phi), np.sin(phi)]), np.array([l, 0.0])
    gap = np.linalg.norm(far - b)
    inner = np.arccos((gap**2 + s**2 - d**2) / (2 * gap * s))
    theta1 = np.arctan2(*(b - far)[::-1]) - inner
    c = far + s * np.array([np.cos(theta1), np.sin(theta1)])
    assert close(np.linalg.norm(c - b), d)
    first = r**2 + l**2 + s**2 - d**2 - 2 * r * l * np.cos(phi) + 2 * l * s * np.cos(theta1)
    assert close(first - 2 * r * s * np.cos(phi - theta1), 0)
    cosine = (d**2 + s**2 - gap**2) / (2 * d * s)  # of the angle at C
    assert close(r**2 + l**2 - s**2 - d**2 - 2 * r * l * np.cos(phi) + 2 * d * s * cosine, 0)
    assert not close(
        first - 2 * l * s * np.cos(theta1) + 2 * d * s * cosine - 2 * r * s * np.cos(phi - theta1),
        0,
    )


def test_004_links_by_their_middles():
    """(1.7), fourth equation: + (d/2) sin φ2, as the third has."""
    r, d, phi1, phi2 = 0.4, 0.9, 0.8, 0.3
    y1 = r / 2 * np.sin(phi1)
    y2 = r * np.sin(phi1) + d / 2 * np.sin(phi2)
    assert close(y1 + r / 2 * np.sin(phi1) - y2 + d / 2 * np.sin(phi2), 0)
    assert not close(y1 + r / 2 * np.sin(phi1) - y2 - d / 2 * np.sin(phi2), 0)


S = draw(3, 2)  # points P and Q of body i, P of body j


def in_plane(x, s):
    c, n = np.cos(x[2]), np.sin(x[2])
    return x[:2] + np.array([c * s[0] - n * s[1], n * s[0] + c * s[1]])


def translational(x, index=0):
    """(3.12): with x_i^Q, where x_j^Q is printed (`index` 1)."""
    p, q, other = in_plane(x[:3], S[0]), in_plane(x[:3], S[1]), in_plane(x[3:], S[2])
    last = (q, in_plane(x[3:], S[1]))[index]
    return (p[0] - other[0]) * (p[1] - q[1]) - (p[1] - other[1]) * (p[0] - last[0])


def test_004_translational_joint():
    """(3.12), table 3.1, (4.19)-(4.21) and the γ of table 3.2."""
    x, v = draw(2, 6)
    i_p, i_q, j_p = in_plane(x[:3], S[0]), in_plane(x[:3], S[1]), in_plane(x[3:], S[2])
    along, ri, rj = i_p - i_q, x[:2], x[3:5]
    slid = x.copy()  # body j slides along the line: the condition must not notice
    parallel = x.copy()
    parallel[3:5] += i_p - j_p
    slid[3:5] = parallel[3:5] + 0.8 * along
    assert close(translational(parallel), 0) and close(translational(slid), 0)
    assert not close(translational(slid, 1), 0)

    exact = np.array([rate(translational, (x, e)) for e in np.eye(6)])
    right = [along[1], -along[0], -(j_p - ri) @ along, -along[1], along[0], (j_p - rj) @ along]
    printed = [*right[:2], -(j_p - rj) @ along, *right[3:]]
    assert close(right, exact) and not close(printed, exact)
    assert close(exact[1], -along[0])  # (4.20) has it with the other sign than (4.19)

    v[5] = v[2]  # no relative rotation
    x[3:5] += i_p - j_p  # on the line
    second = rate(lambda a, b: rate_at(a, b), (x, v), (v, 0 * v))
    i_p, i_q = in_plane(x[:3], S[0]), in_plane(x[:3], S[1])
    along = i_p - i_q
    ri, rj, vi, vj = x[:2], x[3:5], v[:2], v[3:5]
    apart = along[0] * (ri - rj)[1] - along[1] * (ri - rj)[0]
    assert close(-second, -2 * along @ (vi - vj) * v[2] - apart * v[2] ** 2)


def rate_at(x, v):
    """``∂Φ/∂x v`` of the translational joint, written out, for complex arguments."""
    i_p, i_q, j_p = in_plane(x[:3], S[0]), in_plane(x[:3], S[1]), in_plane(x[3:], S[2])
    along, ri, rj = i_p - i_q, x[:2], x[3:5]
    row = [
        along[1],
        -along[0],
        -((j_p - ri) * along).sum(),
        -along[1],
        along[0],
        ((j_p - rj) * along).sum(),
    ]
    return sum(a * b for a, b in zip(row, v, strict=True))


def test_004_acceleration_of_a_revolute_joint():
    """Between (3.24) and table 3.1: γ₂ = (ξ sin φ + η cos φ) φ̇² of i minus that of j."""
    angles, speeds = draw(2, 2)

    def velocity(phi):  # of the second row, ẏ apart
        return sum(
            sign * (S[k][0] * np.cos(phi[k]) - S[k][1] * np.sin(phi[k])) * speeds[k]
            for k, sign in ((0, 1), (1, -1))
        )

    gamma = -rate(velocity, (angles, speeds))
    c, n = np.cos(angles), np.sin(angles)
    up = [S[k][0] * n[k] + S[k][1] * c[k] for k in (0, 1)]
    assert close(gamma, up[0] * speeds[0] ** 2 - up[1] * speeds[1] ** 2)
    printed = (S[0][0] * n[0] - S[0][1] * c[0]) * speeds[0] ** 2 + up[1] * speeds[1] ** 2
    assert not close(gamma, printed)


def test_004_slider_crank():
    """Φ5 has + 200 sin φ3, ⑬ and ㉓ are −100 sin φ2, Φ10 as printed is not the guide's."""
    phi2 = 5.76
    crank = np.array([np.cos(phi2), np.sin(phi2)])
    x2, at_b = -100 * crank, -200 * crank  # O at ξ = 100, B at ξ = −100 of the crank
    phi3 = np.arcsin(at_b[1] / 500)  # the rod: B at ξ = 300, A at ξ = −200, on the line y = 0
    rod = np.array([np.cos(phi3), np.sin(phi3)])
    x3, x4 = at_b - 300 * rod, at_b - 500 * rod
    assert close(x4[1], 0) and close(x2 + 100 * crank, 0)  # Φ8, Φ9
    assert close(x4[1] - x3[1] + 200 * np.sin(phi3), 0)
    assert not close(x4[1] - x3[1] - 200 * np.sin(phi3), 0)
    slope = rate(lambda phi: x2[0] + 100 * np.cos(phi), (phi2, 1.0))
    assert close(slope, -100 * np.sin(phi2)) and not close(slope, 100 * np.sin(phi2))
    printed = 100 * 0 * (100 - x4[1]) + (0 - x4[0]) * 100  # all of φ1, φ4, x1, y1 are zero
    by_data = (x4[0] - 0) * -100 * 0 - (x4[1] - 0) * -100  # (3.12) with the data (b)
    assert close(by_data, 0) and not close(printed, 0)


def test_004_signs_of_the_reactions():
    """The example's λ is that of M q̈ − Φᵀλ = g, (4.7) and (4.12); (4.8), (4.10), (4.11) differ."""
    jacobian = np.array([[1, 0, -1.09, -1, 0, 0.72], [0, 1, 0.35, 0, -1, 1.47]])
    mass, loads = np.diag([1.2, 1.2, 2.5, 2, 2, 4]), [-10, -11.77, 0, 10, -19.62, 0]
    for sign in (1, -1):
        kkt = np.block([[mass, -sign * jacobian.T], [jacobian, np.zeros((2, 2))]])
        found = np.linalg.solve(kkt, [*loads, 0.0017, -0.0002])
        assert np.allclose(found[6:], np.multiply(sign, [6.915, -0.413]), rtol=0, atol=0.012)
        # printed accelerations, with ẍ_j = 1.543, which is printed 1.534
        printed = [-2.571, -10.154, -3.061, 1.543, -9.604, 1.096]
        assert np.allclose(found[:6], printed, rtol=0.005)
    assert abs((10 - 6.915) / 2 - 1.543) < 1e-3 < abs((10 - 6.915) / 2 - 1.534)


@pytest.mark.parametrize("theta", [0.0, 0.7])
def test_004_euler_angles(theta):
    """(5.1); for θ = 0 entry (2, 2) is cos α."""
    psi, phi = 0.4, 1.1
    a = turn(2, psi) @ turn(0, theta) @ turn(2, phi)
    if theta:
        assert close(
            a[2], [np.sin(theta) * np.sin(phi), np.sin(theta) * np.cos(phi), np.cos(theta)]
        )
    else:
        c, s = np.cos(psi + phi), np.sin(psi + phi)
        assert close(a, [[c, -s, 0], [s, c, 0], [0, 0, 1]])
        assert not close(a, [[c, -s, 0], [s, -c, 0], [0, 0, 1]])


def test_004_bryant_angles():
    """(5.5): − in entries (2, 2) and (3, 1); (5.7): cos φ2 cos φ3; (5.8) is its inverse."""
    f, v = np.array([0.4, 0.7, -1.2]), np.array([0.3, -0.5, 0.8])

    def matrix(x):
        return turn(0, x[0]) @ turn(1, x[1]) @ turn(2, x[2])

    (c1, c2, c3), (s1, s2, s3) = np.cos(f), np.sin(f)
    a = matrix(f)
    assert close(a[1, 1], c1 * c3 - s1 * s2 * s3) and not close(a[1, 1], c1 * c3 + s1 * s2 * s3)
    assert close(a[2, 0], s1 * s3 - c1 * s2 * c3) and not close(a[2, 0], s1 * s3 + c1 * s2 * c3)
    spin = a.T @ rate(matrix, (f, v))
    omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    right = np.array([[c2 * c3, s3, 0], [-c2 * s3, c3, 0], [s2, 0, 1]])
    printed = right.copy()
    printed[0, 0] = c1 * c3
    assert close(right @ v, omega) and not close(printed @ v, omega)
    inverse = np.array([[c3, -s3, 0], [s3 * c2, c3 * c2, 0], [-c3 * s2, s3 * s2, c2]]) / c2
    assert close(inverse @ omega, v)
