"""Random cams, sound and undercut, against NumPy: envelopes by force, free bodies, closed forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import cam_oracle as oracle
from fails_cases.cam_oracle import DOWN, DWELL, RISE, Sizes
from fails_cases.judged import FLAGGED, RIGHT, WRONG, Judged, compare
from jaxmbd import cams
from jaxmbd.observe import ContactForce, Driven, constant_speed

_ENVELOPE = "envelope of the follower's places, in complex numbers"
_OVERLAP = "whether the follower overlaps the profile or the envelope runs backwards"
_PUSH = "from the velocity of the follower's point to the push, of the envelope"
_BENT = "turning of the push along the profile and the pitch curve"
KINDS = ("TranslatingRoller", "TranslatingFlat", "OscillatingRoller", "OscillatingFlat")
NUMBERS = {
    **{f"cams.{kind}.geometry": _ENVELOPE for kind in KINDS},
    **{f"cams.{kind}.geometry, pressure angle": _PUSH for kind in KINDS},
    **{f"cams.{kind}.geometry, curvature": _BENT for kind in KINDS},
    **{f"cams.{kind}.profile": _ENVELOPE for kind in KINDS},
    **{f"cams.{kind}.status": _OVERLAP for kind in KINDS},
    "cams.Programme.rates": "polynomials of NumPy",
    "cams.Programme.jumps": "jerk of the polynomial 3-4-5 at its ends",
    "cams.pitch_curve": "places of the roller's centre, turned back",
    "cams.profile_curve": _ENVELOPE,
    "cams.least_base_radius": "s + s'' of polynomials, for a flat face",
    "cams.largest_roller_radius": f"{_OVERLAP}, a little smaller and larger",
    "ContactForce": "free bodies in NumPy",
}
PER_CAM = 30
MOST = 16
ANGLES = np.arange(360) * (2 * np.pi / 360)
FINE = np.arange(100_000) * (2 * np.pi / 100_000)
SPEED, MASS, COM, INERTIA = 20.0, 0.4, np.array([0.02, 0.1]), 3e-4
GRAVITY = np.array([0.5, -9.81])
STILL = (1.0, np.zeros(2))
TURN = Driven(
    {"shaft": constant_speed(SPEED)}, ANGLES[::40] / SPEED, {"push": ContactForce("contact")}
)


def drawn(rng: np.random.Generator, kind: str) -> Sizes:
    """A random cam; every third is small for its lift, so that many are undercut."""
    small = 0.3 if rng.random() < 0.3 else 1.0
    swings = kind.startswith("Oscillating")
    return Sizes(
        kind,
        float(rng.uniform(0.1, 0.3) if swings else rng.uniform(0.01, 0.03)),
        base=max(float(small * rng.uniform(0.03, 0.06)), 0.017 if kind == KINDS[2] else 0.0),
        roller=float(rng.uniform(0.005, 0.02)) if kind.endswith("Roller") else 0.0,
        offset=float(rng.uniform(-0.01, 0.01)),
        arm=0.1 if kind == "OscillatingRoller" else 0.0,
        distance=0.12 if swings else 0.0,
        clockwise=bool(rng.random() < 0.5),
    )


def programme(z: Sizes) -> cams.Programme:
    """The programme of the oracle."""
    rise, back = cams.Rise(z.height, RISE, "3-4-5"), cams.Return(z.height, DOWN, "3-4-5")
    return cams.Programme([rise, cams.Dwell(DWELL), back, cams.Dwell()])


def follower(z: Sizes) -> Any:
    """The cam of a drawing."""
    fields: dict[str, Any] = {"clockwise": z.clockwise}
    if z.kind.endswith("Roller"):
        fields |= {"roller_radius": z.roller}
    if z.kind == "TranslatingRoller":
        fields |= {"offset": z.offset}
    if z.distance:
        fields |= {"centre_distance": z.distance}
    if z.kind == "OscillatingRoller":
        fields |= {"arm_length": z.arm}
    if z.kind == "OscillatingFlat":
        fields |= {"face_offset": z.offset}
    return getattr(cams, z.kind)(programme(z), z.base, **fields)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """The cases; a cam counts for `PER_CAM` of them."""
    rng = np.random.default_rng(seed)
    for i in range(min(MOST, math.ceil(size / PER_CAM))):
        z = drawn(rng, KINDS[i % len(KINDS)])
        yield from of_shape(z, f"{z}, seed {seed}")
        if i < len(KINDS):
            yield from of_sizes(z, f"{z}, seed {seed}")


def overlap(z: Sizes) -> float:
    """How far the follower gets into the profile [m]; small numbers are rounding."""
    return -float(oracle.clearances(z, ANGLES, oracle.profile(z, ANGLES)).min())


def of_shape(z: Sizes, said: str) -> Iterator[Judged]:
    """Rates, geometry and status of one cam, and the push if it is sound."""
    one = follower(z)
    rates = one.programme.rates(ANGLES)
    wanted = [oracle.displacement(ANGLES, z.height, k) for k in range(4)]
    yield compare("cams.Programme.rates", rates, wanted, limit=1e-12, detail=said)
    found = one.geometry(ANGLES)
    profile = oracle.profile(z, ANGLES)
    number = f"cams.{z.kind}"
    yield compare(f"{number}.geometry", found.profile, profile, limit=1e-11, detail=said)
    back = oracle.turns_back(z, FINE)
    outline = oracle.profile(z, ANGLES if z.clockwise else (-ANGLES) % (2 * np.pi))
    yield compare(f"{number}.profile", one.profile(360), outline, limit=1e-11, detail=said)
    yield from of_curvature(z, found, said)
    depth, status = overlap(z), one.status()
    if not 1e-13 < depth < 1e-7:  # else a matter of the angles between those looked at
        sound = status == cams.CamStatus.OK
        fine = sound == (depth <= 1e-13 and not back)
        outcome = (RIGHT if sound else FLAGGED) if fine else WRONG
        yield Judged(f"{number}.status", outcome, 0.0 if fine else math.inf, said)
    if status == cams.CamStatus.OK:
        yield from of_force(z, one, said)


def of_curvature(z: Sizes, found: Any, said: str) -> Iterator[Judged]:
    """Pressure angle and curvature of one cam, away from where the programme's pieces meet."""
    angle, radius, pitch = oracle.shape(z, ANGLES)
    meet = np.array([0.0, RISE, RISE + DWELL, RISE + DWELL + DOWN, 2.0 * np.pi])
    clear = np.min(np.abs(ANGLES[:, None] - meet), axis=1) > 1e-3
    number, size = f"cams.{z.kind}.geometry", z.base + z.roller
    yield compare(
        f"{number}, pressure angle", found.pressure_angle, angle,
        limit=1e-9, scale=1.0, detail=said,
    )  # fmt: skip
    for got, want in ((found.profile_radius, radius), (found.pitch_radius, pitch)):
        got, want = np.asarray(got)[clear] / size, want[clear] / size
        off = np.where(np.abs(want) > 1.0, 1.0 / got - 1.0 / want, got - want)
        yield compare(f"{number}, curvature", off, 0.0 * off, limit=1e-6, scale=1.0, detail=said)


def of_force(z: Sizes, one: Any, said: str) -> Iterator[Judged]:
    """The push of a sound cam on its follower."""
    follows = mbd.Body(MASS, (*COM, 0.0), INERTIA * np.ones(3))
    still = mbd.Body(1.0, (0.0, 0.0, 0.0), 1e-3 * np.ones(3))
    found = TURN(cams.cam_mechanism(one, still, follows, gravity=(*GRAVITY, 0.0)))
    loads = oracle.loads(z, ANGLES[::40], SPEED, STILL, (MASS, COM, INERTIA), GRAVITY)
    ok = int(found["status"]) == mbd.Status.OK
    yield compare("ContactForce", found["push"], loads.push, limit=1e-8, detail=said, ok=ok)


def of_sizes(z: Sizes, said: str) -> Iterator[Judged]:
    """Jumps, curves, and the sizes that a cam needs."""
    one = follower(z)
    jumps = [(j.angle, j.before, j.after) for j in one.programme.jumps()]
    up, down = 60.0 * z.height / RISE**3, -60.0 * z.height / DOWN**3
    back = RISE + DWELL
    ends = [(0.0, 0.0, up), (RISE, up, 0.0), (back, 0.0, down), (back + DOWN, down, 0.0)]
    yield compare("cams.Programme.jumps", jumps, ends, limit=1e-11, detail=said)
    u = 0.9
    angle = np.array([u if z.clockwise else 2 * np.pi - u])
    point = np.append(oracle.profile(z, angle)[0], 0.0)
    found = cams.profile_curve(jnp.asarray(u), one)
    yield compare("cams.profile_curve", found, point, limit=1e-11, detail=said)
    if z.kind.endswith("Roller"):
        centre = np.append(oracle.profile(z._replace(base=z.base + z.roller, roller=0.0), angle), 0)
        found = cams.pitch_curve(jnp.asarray(u), one)
        yield compare("cams.pitch_curve", found, centre, limit=1e-11, detail=said)
        roller = cams.largest_roller_radius(one)
        prime = z.base + z.roller
        depths = [
            overlap(z._replace(roller=share * roller, base=prime - share * roller))
            for share in (0.999, 1.03)
        ]
        free = depths[0] <= 1e-13 and (depths[1] > 1e-13 or roller > 0.97 * prime)
        outcome = RIGHT if free else WRONG
        yield Judged("cams.largest_roller_radius", outcome, 0.0 if free else math.inf, said)
    if z.kind == "TranslatingFlat":

        def need(theta: np.ndarray) -> np.ndarray:
            s, s2 = (oracle.displacement(theta, z.height, k) for k in (0, 2))
            return 0.01 - s - s2

        near = FINE[np.argmax(need(FINE))] + np.linspace(-FINE[1], FINE[1], 2001)
        found, want = cams.least_base_radius(one, radius=0.01), np.max(need(near))
        yield compare("cams.least_base_radius", found, want, limit=1e-9, detail=said)
