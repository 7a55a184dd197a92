"""Cams with followers against text-book formulas, envelopes by force and free bodies in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fails_cases import cam_oracle as oracle
from fails_cases.cam_oracle import DOWN, DWELL, RISE, Sizes

import jaxmbd as mbd
from jaxmbd.cams import (
    CamGeometry,
    CamStatus,
    Dwell,
    Follower,
    OscillatingFlat,
    OscillatingRoller,
    Programme,
    Return,
    Rise,
    Roller,
    TranslatingFlat,
    TranslatingRoller,
    cam_mechanism,
    largest_roller_radius,
    least_base_radius,
    pitch_curve,
    profile_curve,
)
from jaxmbd.observe import ContactForce, Coordinate, Driven, HoldingEffort, Reaction, constant_speed

ANGLES = np.arange(240) * (2 * np.pi / 240)
FINE = np.arange(360_000) * (2 * np.pi / 360_000)
CAMS = {
    "roller": Sizes("TranslatingRoller", 0.02, 0.04, roller=0.01, offset=0.008),
    "knife, clockwise": Sizes("TranslatingRoller", 0.02, 0.05, offset=-0.01, clockwise=True),
    "flat": Sizes("TranslatingFlat", 0.02, 0.06),
    "flat, clockwise": Sizes("TranslatingFlat", 0.02, 0.06, clockwise=True),
    "arm": Sizes("OscillatingRoller", 0.3, 0.04, roller=0.012, arm=0.08, distance=0.1),
    "arm, clockwise": Sizes(
        "OscillatingRoller", 0.3, 0.04, roller=0.012, arm=0.08, distance=0.1, clockwise=True
    ),
    "flat arm": Sizes("OscillatingFlat", 0.2, 0.05, offset=0.01, distance=0.1),
    "flat arm, clockwise": Sizes(
        "OscillatingFlat", 0.2, 0.05, offset=-0.01, distance=0.1, clockwise=True
    ),
}

EVERY = [
    pytest.param(n, marks=() if n in ("roller", "flat", "arm, clockwise") else pytest.mark.slow)
    for n in CAMS
]


def programme(height, law="3-4-5"):
    return Programme([Rise(height, RISE, law), Dwell(DWELL), Return(height, DOWN, law), Dwell()])


def follower(z: Sizes) -> Follower:
    sense = {"clockwise": z.clockwise}
    swing = programme(z.height)
    match z.kind:
        case "TranslatingRoller":
            return TranslatingRoller(swing, z.base, z.roller, z.offset, **sense)
        case "TranslatingFlat":
            return TranslatingFlat(swing, z.base, **sense)
        case "OscillatingRoller":
            sizes = {"arm_length": z.arm, "centre_distance": z.distance}
            return OscillatingRoller(swing, z.base, z.roller, **sizes, **sense)
    sizes = {"centre_distance": z.distance, "face_offset": z.offset}
    return OscillatingFlat(swing, z.base, **sizes, **sense)


@pytest.mark.parametrize("name", EVERY)
def test_the_profile_is_the_envelope_of_the_follower(name):
    z, one = CAMS[name], follower(CAMS[name])
    found = one.geometry(ANGLES)
    assert isinstance(found, CamGeometry)
    np.testing.assert_allclose(found.profile, oracle.profile(z, ANGLES), rtol=0, atol=1e-14)
    apart = oracle.clearances(z, ANGLES, np.asarray(found.profile))
    np.testing.assert_allclose(np.diag(apart), 0.0, atol=1e-15)
    assert apart.min() > -1e-15
    assert one.status() == CamStatus.OK
    outline = np.asarray(one.profile(240))
    area = 0.5 * np.sum(oracle.cross(outline, np.roll(outline, -1, axis=0)))
    assert area > np.pi * z.base**2  # counterclockwise


@pytest.mark.parametrize("name", EVERY)
def test_curvature_is_that_of_circles_through_neighbours(name):
    """``R = a b c / (4 area)`` of three points; pressure angle from velocity to push."""
    z, one, step = CAMS[name], follower(CAMS[name]), 2e-4
    angle = ANGLES + 0.01
    found = one.geometry(angle)
    for field in ("profile", "pitch"):
        a, b, c = (np.asarray(getattr(one.geometry(angle + k * step), field)) for k in (-1, 0, 1))
        sides = [np.linalg.norm(x, axis=1) for x in (b - a, c - b, a - c)]
        turn = oracle.cross(b - a, c - b) * (1.0 if z.clockwise else -1.0)
        radius = np.prod(sides, axis=0) / (2.0 * turn)
        np.testing.assert_allclose(getattr(found, f"{field}_radius"), radius, rtol=1e-5)
    _, push = oracle.contact(z, angle)
    point = oracle.turned(np.asarray(found.profile), -angle if z.clockwise else angle)
    motion = np.array([0.0, 1.0]) + 0 * point
    if z.distance:
        where = oracle.place(z, angle) if z.kind.endswith("Roller") else point
        motion = np.stack([where[:, 1], z.distance - where[:, 0]], axis=1)
    lean = np.arctan2(oracle.cross(motion, push), np.sum(motion * push, axis=1))
    np.testing.assert_allclose(found.pressure_angle, lean, rtol=0, atol=1e-13)


def test_formulas_of_text_books():
    """Norton, Cam Design and Manufacturing Handbook, chapter 7; Uicker et al., chapter 5."""
    s, s1, s2, _ = (np.asarray(x) for x in programme(0.02).rates(ANGLES))
    e, prime = 0.008, 0.05
    roller = TranslatingRoller(programme(0.02), 0.04, 0.01, e)
    wanted = np.arctan((s1 - e) / (s + np.sqrt(prime**2 - e**2)))
    np.testing.assert_allclose(roller.geometry(ANGLES).pressure_angle, wanted, rtol=0, atol=1e-15)
    radial = TranslatingRoller(programme(0.02), 0.04, 0.01).geometry(ANGLES)
    r = prime + s
    wanted = (r**2 + s1**2) ** 1.5 / (r**2 + 2 * s1**2 - r * s2)
    np.testing.assert_allclose(radial.pitch_radius, wanted, rtol=1e-12)
    np.testing.assert_allclose(radial.profile_radius, wanted - 0.01, rtol=1e-11)
    flat = TranslatingFlat(programme(0.02), 0.06).geometry(ANGLES)
    np.testing.assert_allclose(flat.profile_radius, 0.06 + s + s2, rtol=0, atol=1e-15)
    np.testing.assert_allclose(flat.pressure_angle, 0.0, atol=1e-15)
    at = (
        ANGLES  # profile of a flat face: x = (r + s) sin θ + s' cos θ, y = (r + s) cos θ − s' sin θ
    )
    wanted = [(0.06 + s) * np.sin(at) + s1 * np.cos(at), (0.06 + s) * np.cos(at) - s1 * np.sin(at)]
    np.testing.assert_allclose(flat.profile, np.transpose(wanted), rtol=0, atol=1e-15)
    swing, swing1, _, _ = (np.asarray(x) for x in programme(0.3).rates(ANGLES))
    arm = follower(CAMS["arm"]).geometry(ANGLES).pressure_angle
    lean = np.arccos((0.1**2 + 0.08**2 - 0.052**2) / (2 * 0.1 * 0.08)) + swing
    wanted = (0.08 * (1 + swing1) - 0.1 * np.cos(lean)) / (0.1 * np.sin(lean))
    np.testing.assert_allclose(np.tan(arm), wanted, rtol=0, atol=1e-13)


def test_float32_stays_float32():
    one = jax.tree.map(jnp.float32, follower(CAMS["flat"]))
    for curve in (profile_curve(jnp.float32(0.3), one), one.geometry(jnp.float32(0.3)).profile):
        assert curve.dtype == jnp.float32


def test_an_eccentric_disc():
    """Harmonic motion of a flat face is that of a disc, with the lift twice the eccentricity."""
    lift = Programme([Rise(0.02, np.pi, "harmonic"), Return(0.02, np.pi, "harmonic")])
    found = TranslatingFlat(lift, 0.04).geometry(ANGLES)
    np.testing.assert_allclose(found.profile_radius, 0.05, rtol=1e-13)
    away = np.asarray(found.profile) - [0.0, -0.01]
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), 0.05, rtol=1e-13)


def fine_rates(height):
    return (oracle.displacement(FINE, height, k) for k in range(3))


def test_undercutting():
    cam = TranslatingRoller(programme(0.02), 0.04, 0.01)
    s, s1, s2 = fine_rates(0.02)
    r = 0.05 + s
    limit = 1 / np.max((r**2 + 2 * s1**2 - r * s2) / (r**2 + s1**2) ** 1.5)
    np.testing.assert_allclose(largest_roller_radius(cam), limit, rtol=1e-9)
    np.testing.assert_allclose(largest_roller_radius(cam, radius=0.005), limit - 0.005, rtol=1e-9)
    for share, wanted in ((0.999, CamStatus.OK), (1.01, CamStatus.UNDERCUT)):
        one = TranslatingRoller(programme(0.02), 0.05 - share * limit, share * limit)
        assert one.status() == wanted
        sizes = Sizes("TranslatingRoller", 0.02, 0.05 - share * limit, roller=share * limit)
        apart = oracle.clearances(sizes, ANGLES, oracle.profile(sizes, ANGLES))
        assert (apart.min() < -1e-12) == (wanted == CamStatus.UNDERCUT)
    assert isinstance(cam, Roller)


def short_rise(height, width, law):
    up, down = Rise(height, width, law), Return(height, width, law)
    return Programme([Dwell(1.0043), up, Dwell(1.0), down, Dwell()])


@pytest.mark.parametrize("law", ["cycloidal", pytest.param("parabolic", marks=pytest.mark.slow)])
def test_undercutting_within_a_short_rise(law):
    """Rises of 0.1 to 3 degrees between equal steps; ``s''`` by its closed form."""
    worst = 2 * np.pi if law == "cycloidal" else 4.0
    for width in np.deg2rad([0.1, 0.7, 2.0, 3.0]):
        # A flat face: the least r_b + s + s'' is r_b less the largest deceleration, nearly.
        height = 0.04 * width**2 / worst
        for share, wanted in ((0.99, CamStatus.OK), (1.03, CamStatus.UNDERCUT)):
            lift = share * height
            one = TranslatingFlat(short_rise(lift, width, law), 0.04)
            assert one.status() == wanted, (width, share)
        # A roller: as large as the least radius of the pitch curve.
        lift = 0.3 * height
        one = TranslatingRoller(short_rise(lift, width, law), 0.04, 0.02)
        x = np.linspace(0.0, 1.0, 200_001)[1:-1]
        if law == "cycloidal":
            s, s1 = x - np.sin(2 * np.pi * x) / (2 * np.pi), 1 - np.cos(2 * np.pi * x)
            s2 = 2 * np.pi * np.sin(2 * np.pi * x)
        else:
            early = x < 0.5
            s, s1 = np.where(early, 2 * x**2, 1 - 2 * (1 - x) ** 2), 4 * np.minimum(x, 1 - x)
            s2 = np.where(early, 4.0, -4.0)
        r, s1, s2 = 0.06 + lift * s, lift * s1 / width, lift * s2 / width**2
        limit = 1 / np.max((r**2 + 2 * s1**2 - r * s2) / (r**2 + s1**2) ** 1.5)
        np.testing.assert_allclose(largest_roller_radius(one), limit, rtol=1e-7)


def test_least_base_radii():
    s, s1, s2 = fine_rates(0.02)
    flat = least_base_radius(TranslatingFlat(programme(0.02), 0.06), radius=0.01)
    np.testing.assert_allclose(flat, np.max(0.01 - s - s2), rtol=1e-9)
    limit, e, roller = np.deg2rad(25.0), 0.008, 0.004
    cam = TranslatingRoller(programme(0.02), 0.05, roller, e)
    found = least_base_radius(cam, pressure_angle=limit)
    d = np.max(np.abs(s1 - e) / np.tan(limit) - s)
    np.testing.assert_allclose(found, np.hypot(d, e) - roller, rtol=1e-9)
    arm = follower(CAMS["arm"])
    with pytest.raises(ValueError, match="none up to 4 m will do; allow"):
        least_base_radius(arm, pressure_angle=0.01)
    found = least_base_radius(arm, pressure_angle=0.5)
    one = arm.with_fields({"base_radius": jnp.asarray(found)})
    np.testing.assert_allclose(jnp.abs(one.geometry(FINE).pressure_angle).max(), 0.5, rtol=1e-9)


def test_statuses_while_tracing_and_out_of_reach():
    def status(base, roller, height):
        return TranslatingRoller(programme(height), base, roller, 0.03).status()

    bases, rollers = jnp.array([0.1, 0.005, 0.01, 0.1]), jnp.array([0.01, 0.045, 0.01, 0.01])
    found = jax.jit(jax.vmap(status))(bases, rollers, jnp.array([0.02, 0.02, 0.02, -0.2]))
    names = [CamStatus(int(x)).name for x in found]
    assert names == ["OK", "UNDERCUT", "OUT_OF_REACH", "OUT_OF_REACH"]
    steep = OscillatingFlat(
        Programme([Rise(0.8, 1.0), Return(0.8, 1.0), Dwell()]), 0.02, centre_distance=0.1
    )
    assert steep.status() == CamStatus.OUT_OF_REACH
    high = OscillatingRoller(programme(3.0), 0.04, 0.01, arm_length=0.08, centre_distance=0.1)
    assert high.status() == CamStatus.OUT_OF_REACH


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: TranslatingRoller(programme(0.02), 0.0),
            "base_radius is 0 m; give a positive one",
        ),
        (lambda: TranslatingRoller(programme(0.02), 0.1, -0.1), "roller_radius is -0.1 m"),
        (
            lambda: TranslatingRoller(programme(0.02), 0.1, 0.1, 0.3),
            "offset is 0.3 m, no less than",
        ),
        (
            lambda: OscillatingRoller(programme(0.2), 0.4, arm_length=0.1, centre_distance=0.1),
            "brings the roller's centre to 0 to 0.2 m from the shaft",
        ),
        (lambda: OscillatingFlat(programme(0.2), 0.2, centre_distance=0.1), "move the pivot away"),
        (lambda: TranslatingFlat(lambda x: x, 0.2), "give a Programme or a SplineProgramme"),
    ],
)
def test_impossible_sizes_are_refused(make, text):
    with pytest.raises(ValueError, match="Translating|Oscillating") as error:
        make()
    assert text in str(error.value)


def test_geometry_differs_by_sizes():
    angle = jnp.array([0.4, 1.3, 3.1])

    def of(x):
        one = OscillatingRoller(
            programme(x[0]), x[1], x[2], arm_length=x[3], centre_distance=x[4], clockwise=True
        )
        shape = one.geometry(angle)
        return jnp.concatenate([shape.profile.ravel(), shape.pressure_angle, shape.profile_radius])

    x, step = jnp.array([0.3, 0.04, 0.012, 0.08, 0.1]), 1e-7
    exact = jax.jit(jax.jacfwd(of))(x)
    for i, dx in enumerate(step * np.eye(5)):
        difference = (of(x + dx) - of(x - dx)) / (2 * step)
        np.testing.assert_allclose(exact[:, i], difference, rtol=1e-6, atol=1e-6)


def test_curves_are_those_of_the_cams_and_go_counterclockwise():
    for name in ("arm, clockwise", "flat"):
        one = follower(CAMS[name])
        u = jnp.asarray(0.7)
        shape = one.geometry(-one.sense * u)
        np.testing.assert_allclose(profile_curve(u, one)[:2], shape.profile, atol=1e-16)
        if isinstance(one, Roller):
            np.testing.assert_allclose(pitch_curve(u, one)[:2], shape.pitch, atol=1e-16)


MASS, COM, INERTIA = 0.3, np.array([0.03, 0.09]), 2e-4
HEAVY, OFF = 1.5, np.array([0.004, -0.002])
GRAVITY = np.array([1.0, -9.81])
SPEED = 25.0
TIMES = np.array([0.0, 0.3, 1.1, 1.7, 2.2, 3.0, 4.0, 5.5]) / SPEED
TURN = Driven(
    {"shaft": constant_speed(SPEED)},
    TIMES,
    {
        "displacement": Coordinate("guide"),
        "push": ContactForce("contact"),
        "torque": HoldingEffort("shaft"),
        "contact": Reaction("contact"),
        "bearing": Reaction("shaft"),
        "guide": Reaction("guide"),
        "moment": Reaction("guide", "moment", "z"),
    },
)


def mechanism(one):
    return cam_mechanism(
        one,
        mbd.Body(HEAVY, (*OFF, 0.0), 1e-3 * np.ones(3)),
        mbd.Body(MASS, (*COM, 0.0), INERTIA * np.ones(3)),
        gravity=(*GRAVITY, 0.0),
    )


@pytest.mark.parametrize(
    "name",
    [
        "flat",
        pytest.param("arm, clockwise", marks=pytest.mark.slow),
        pytest.param("roller", marks=pytest.mark.slow),
        pytest.param("flat arm", marks=pytest.mark.slow),
    ],
)
def test_forces_are_those_of_free_bodies(name):
    z = CAMS[name]
    found = TURN(mechanism(follower(z)))
    theta = SPEED * TIMES
    wanted = oracle.loads(z, theta, SPEED, (HEAVY, OFF), (MASS, COM, INERTIA), GRAVITY)
    np.testing.assert_allclose(
        found["displacement"], oracle.displacement(theta, z.height), rtol=0, atol=1e-14
    )
    size = np.abs(wanted.push).max()
    np.testing.assert_allclose(found["push"], wanted.push, rtol=1e-9, atol=1e-11 * size)
    np.testing.assert_allclose(found["contact"][:, :2], wanted.contact, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(found["torque"], wanted.torque, rtol=1e-9, atol=1e-11 * size)
    np.testing.assert_allclose(found["bearing"][:, :2], wanted.bearing, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(found["guide"][:, :2], wanted.guide, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(found["moment"], wanted.guide_moment, rtol=0, atol=1e-11 * size)


def test_a_spring_keeps_the_follower_on_its_cam():
    """Without it the push is ``m (ω² s'' + g)``, negative where the follower would lift off."""
    z = CAMS["flat"]
    mech = mechanism(follower(z)).replace(gravity=np.array([0.0, -9.81, 0.0]))
    theta = SPEED * TIMES
    s, s2 = (oracle.displacement(theta, z.height, k) for k in (0, 2))
    bare = MASS * (SPEED**2 * s2 + 9.81)
    assert bare.min() < -1.0
    rate, preload = 800.0, 12.0
    top = 0.3
    spring = mbd.SpringDamper(
        "ground", "follower", (0, top, 0), (0, z.base, 0), rate, 0.0, top - z.base + preload / rate
    )
    push = TURN(mech)["push"]
    np.testing.assert_allclose(push, bare, rtol=1e-9)
    held = TURN(mech.replace(forces={"spring": spring}))["push"]
    np.testing.assert_allclose(held, bare + preload + rate * s, rtol=1e-9)


def test_a_mechanism_with_a_cam_is_saved_and_loaded(tmp_path):
    mech = mechanism(follower(CAMS["flat arm"]))
    mbd.save(mech, tmp_path / "cam.json")
    assert mbd.load(tmp_path / "cam.json") == mech


@pytest.mark.slow
def test_forces_differ_by_sizes_of_the_cam():
    def push(x):
        one = TranslatingRoller(programme(x[0]), x[1], 0.01, x[2])
        return TURN(mechanism(one))["push"]

    x, dx, step = jnp.array([0.02, 0.04, 0.008]), jnp.array([0.3, -1.0, 0.7]), 1e-6
    exact = jax.jit(lambda x: jax.jvp(push, (x,), (dx,))[1])(x)
    difference = (push(x + step * dx) - push(x - step * dx)) / (2 * step)
    np.testing.assert_allclose(exact, difference, rtol=1e-6, atol=1e-5)


def test_a_pressure_angle_in_degrees_is_refused():
    lift = Programme([Rise(0.02, 1.5), Return(0.02, 1.5), Dwell()])
    with pytest.raises(ValueError, match="must lie between 0 and π/2 rad"):
        least_base_radius(TranslatingRoller(lift, 0.04, 0.01), pressure_angle=30.0)


def test_a_mechanism_of_a_cam_out_of_reach_warns():
    swing = Programme([Rise(2.9, 2.0), Return(2.9, 2.0), Dwell()])
    cam = OscillatingRoller(swing, 0.03, 0.01, arm_length=0.08, centre_distance=0.1)
    with pytest.warns(UserWarning, match="OUT_OF_REACH"):
        cam_mechanism(cam, mbd.Body(1.0), mbd.Body(0.35, (0.06, 0.03, 0.0), 4e-4))
