"""Andrews' squeezer once more, from its published equations and in extended precision.

    python benchmarks/integration_cases/andrews_reference.py

The equations of the test set for IVP solvers (Mazzia & Magherini, problem "andrews"; Hairer &
Wanner II, VII.7), ``M(p) p̈ + Gᵀ λ = f(p, ṗ), G p̈ = −g_pp(ṗ, ṗ)``, in NumPy's long doubles (64 bits
of mantissa on x86), by extrapolated midpoint steps (Gragg, Bulirsch, Stoer). It shares nothing with
jaxmbd and decides between it and the published multipliers. Prints angles, rates, accelerations and
multipliers at 0.03 s, how much they change with half the steps, and the same from the published
angles and rates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parents[2] / "tests" / "data" / "groundtruth" / "andrews_squeezer.json"
ANGLES = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")
LONG = np.longdouble
SEQUENCE = (2, 4, 6, 8, 10, 12, 14)  # midpoint steps in one step of the extrapolation

AT_30_MS = {
    "angle": (
        15.810771195153709,
        -15.75637105841184,
        0.04082224011964579,
        -0.5347301163420796,
        0.5244099658799543,
        0.5347301163420795,
        1.0480807410419377,
    ),
    "rate": (
        1139.920302259106,
        -1424.3792951775401,
        11.032911910618907,
        19.29337410503259,
        0.5735699148295315,
        -19.293374105032594,
        0.3231791492491403,
    ),
    "multiplier": (
        199.1753481045386,
        -29.755309974971684,
        23.06654361162214,
        31.45272527577101,
        22.642494786394376,
        11.617392352611345,
    ),
}
"""What this program prints: the state and the multipliers at 0.03 s."""


def numbers() -> tuple[dict[str, Any], dict[str, Any]]:
    """The test set's parameters, and the whole data file."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    # Decimal numbers are read as such: a double's rounding is larger than a long double's.
    text = json.loads(DATA.read_text(encoding="utf-8"), parse_float=LONG)
    return text["parameters"], data


def solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a x = b`` by Gaussian elimination with partial pivoting, in the numbers' own precision."""
    m = np.concatenate([a, b[:, None]], axis=1)
    n = len(b)
    for i in range(n):
        k = i + int(np.argmax(np.abs(m[i:, i])))
        m[[i, k]] = m[[k, i]]
        m[i + 1 :] -= np.outer(m[i + 1 :, i] / m[i, i], m[i])
    x = np.zeros(n, a.dtype)
    for i in reversed(range(n)):
        x[i] = (m[i, n] - m[i, i + 1 : n] @ x[i + 1 :]) / m[i, i]
    return x


def motion(p: dict[str, Any], q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations (7,) and multipliers (6,) at the angles q and rates v (7,)."""
    be, th, ga, ph, de, om, ep = q
    bep, thp, gap, php, dep, omp, epp = v
    m1, m2, m3, m4, m5, m6, m7 = (p[f"m{i}"] for i in range(1, 8))
    i1, i2, i3, i4, i5, i6, i7 = (p[f"i{i}"] for i in range(1, 8))
    rr, d, da, e, ea, u, zf, zt, ss = (p[n] for n in "rr d da e ea u zf zt ss".split())
    sc, sd, fa = p["sc"], p["sd"], p["fa"]
    sin, cos = np.sin, np.cos
    m = np.zeros((7, 7), q.dtype)
    m[0, 0] = m1 * p["ra"] ** 2 + m2 * (rr**2 - 2 * da * rr * cos(th) + da**2) + i1 + i2
    m[0, 1] = m[1, 0] = m2 * (da**2 - da * rr * cos(th)) + i2
    m[1, 1] = m2 * da**2 + i2
    m[2, 2] = m3 * (p["sa"] ** 2 + p["sb"] ** 2) + i3
    m[3, 3] = m4 * (e - ea) ** 2 + i4
    m[3, 4] = m[4, 3] = m4 * ((e - ea) ** 2 + zt * (e - ea) * sin(ph)) + i4
    m[4, 4] = m4 * (zt**2 + 2 * zt * (e - ea) * sin(ph) + (e - ea) ** 2) + i4 + i5
    m[4, 4] += m5 * (p["ta"] ** 2 + p["tb"] ** 2)
    m[5, 5] = m6 * (zf - fa) ** 2 + i6
    m[5, 6] = m[6, 5] = m6 * ((zf - fa) ** 2 - u * (zf - fa) * sin(om)) + i6
    m[6, 6] = m6 * ((zf - fa) ** 2 - 2 * u * (zf - fa) * sin(om) + u**2) + i6 + i7
    m[6, 6] += m7 * (p["ua"] ** 2 + p["ub"] ** 2)
    xd = sd * cos(ga) + sc * sin(ga) + p["xb"]
    yd = sd * sin(ga) - sc * cos(ga) + p["yb"]
    x, y = xd - p["xc"], yd - p["yc"]
    length = np.sqrt(x * x + y * y)
    pull = -p["c0"] * (length - p["l0"]) / length
    f = np.array(
        [
            p["mom"] - m2 * da * rr * thp * (thp + 2 * bep) * sin(th),
            m2 * da * rr * bep**2 * sin(th),
            pull * (x * (sc * cos(ga) - sd * sin(ga)) + y * (sd * cos(ga) + sc * sin(ga))),
            m4 * zt * (e - ea) * dep**2 * cos(ph),
            -m4 * zt * (e - ea) * php * (php + 2 * dep) * cos(ph),
            -m6 * u * (zf - fa) * epp**2 * cos(om),
            m6 * u * (zf - fa) * omp * (omp + 2 * epp) * cos(om),
        ]
    )
    g = np.zeros((6, 7), q.dtype)
    g[0::2, 0] = -rr * sin(be) + d * sin(be + th)
    g[1::2, 0] = rr * cos(be) - d * cos(be + th)
    g[0::2, 1], g[1::2, 1] = d * sin(be + th), -d * cos(be + th)
    g[0, 2], g[1, 2] = -ss * cos(ga), -ss * sin(ga)
    g[2, 3], g[3, 3] = -e * cos(ph + de), -e * sin(ph + de)
    g[2, 4], g[3, 4] = g[2, 3] + zt * sin(de), g[3, 3] - zt * cos(de)
    g[4, 5], g[5, 5] = zf * sin(om + ep), -zf * cos(om + ep)
    g[4, 6], g[5, 6] = g[4, 5] - u * cos(ep), g[5, 5] - u * sin(ep)
    both = bep + thp
    gpp = np.zeros(6, q.dtype)  # the second derivatives of the conditions, twice along v
    gpp[0::2] = -rr * cos(be) * bep**2 + d * cos(be + th) * both**2
    gpp[1::2] = -rr * sin(be) * bep**2 + d * sin(be + th) * both**2
    gpp[0] += ss * sin(ga) * gap**2
    gpp[1] -= ss * cos(ga) * gap**2
    gpp[2] += e * sin(ph + de) * (php + dep) ** 2 + zt * cos(de) * dep**2
    gpp[3] += -e * cos(ph + de) * (php + dep) ** 2 + zt * sin(de) * dep**2
    gpp[4] += zf * cos(om + ep) * (omp + epp) ** 2 + u * sin(ep) * epp**2
    gpp[5] += zf * sin(om + ep) * (omp + epp) ** 2 - u * cos(ep) * epp**2
    kkt = np.zeros((13, 13), q.dtype)
    kkt[:7, :7], kkt[:7, 7:], kkt[7:, :7] = m, g.T, g
    found = solved(kkt, np.concatenate([f, -gpp]))
    return found[:7], found[7:]


def integrated(p: dict[str, Any], q: np.ndarray, v: np.ndarray, t1: Any, steps: int) -> Any:
    """Angles and rates at t1."""

    def rates(y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[7:], motion(p, y[:7], y[7:])[0]])

    y, length = np.concatenate([q, v]), LONG(t1) / steps
    for _ in range(steps):
        first, rows = rates(y), []
        for n in SEQUENCE:
            h = length / n
            before, now = y, y + h * first
            for _ in range(n - 1):
                before, now = now, before + 2 * h * rates(now)
            rows.append((before + now + h * rates(now)) / 2)
            for k in range(len(rows) - 2, -1, -1):  # Aitken and Neville's scheme in h²
                ratio = LONG(n) ** 2 / LONG(SEQUENCE[k]) ** 2 - 1
                rows[k] = rows[k + 1] + (rows[k + 1] - rows[k]) / ratio
        y = rows[0]
    return y[:7], y[7:]


def published_state() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The published angles, rates (7,) and multipliers (6,) at 0.03 s."""
    published = numbers()[1]["published_reference_t0_03"]
    q, v = (np.array([LONG(repr(published[k + n])) for n in ANGLES]) for k in ("", "d_"))
    return q, v, np.array([LONG(repr(published[f"lambda{i}"])) for i in range(1, 7)])


def published_multipliers() -> dict[str, float]:
    """Largest relative differences of multipliers that are not jaxmbd's, from `AT_30_MS`."""
    p, exact = numbers()[0], np.array(AT_30_MS["multiplier"])
    q, v, printed = published_state()
    ours = motion(p, q, v)[1]
    return {
        "published": float(np.max(np.abs(printed / exact - 1.0))),
        "by the equations at the published angles and rates": float(
            np.max(np.abs(ours / exact - 1.0))
        ),
    }


def main() -> None:
    p, data = numbers()
    start = np.array([LONG(repr(data["initial_angles"][n])) for n in ANGLES])
    ends = [integrated(p, start, 0 * start, LONG("0.03"), n) for n in (600, 1200)]
    vdot, lam = motion(p, *ends[1])
    kinds = ("angle", "rate", "acceleration", "multiplier")
    for name, x in zip(kinds, (*ends[1], vdot, lam), strict=True):
        print(name, *(np.format_float_scientific(c, 17) for c in x), sep="\n    ")
    changes = [np.abs(a - b).max() for a, b in zip(*ends, strict=True)]
    changes.append(np.abs(lam - motion(p, *ends[0])[1]).max())
    print("changes from half as many steps: angles, rates, multipliers", *changes)
    q, v, printed = published_state()
    print("published angles, off by", np.abs(q - ends[1][0]))
    print("published rates, off by a share of", np.abs(v / ends[1][1] - 1))
    print("published multipliers, off by a share of", np.abs(printed / lam - 1))
    print("multipliers of the published state, off by", np.abs(motion(p, q, v)[1] / lam - 1))


if __name__ == "__main__":
    main()
