"""Force elements: potentials, dissipation, contact, tyres; each law against what defines it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.kinematics.motion import motion_state

RNG = np.random.default_rng(11)
CURVE = mbd.DamperCurve([0.1, 0.5, 1.0], [300, 500, 600], [0.2, 1.0], [900, 1500])
CENTRE = (0.1, 0.9, 0.25)


def body(at):
    return mbd.Body(2.0, at, np.diag([0.3, 0.4, 0.5]))


def rig(**forces):
    """A floating chassis with two arms, a slider, and a wheel on the left arm."""
    return mbd.Mechanism(
        {
            "chassis": body((0, 0, 0.6)),
            "left": body((0, 0.6, 0.3)),
            "right": body((0, -0.6, 0.3)),
            "slider": body((0.5, 0, 0.9)),
            "wheel": body(CENTRE),
        },
        {
            "float": mbd.Free("ground", "chassis"),
            "left_hinge": mbd.Revolute("chassis", "left", (0, 0.3, 0.35), (1, 0.1, 0)),
            "right_hinge": mbd.Revolute("chassis", "right", (0, -0.3, 0.35), (1, -0.1, 0)),
            "guide": mbd.Prismatic("chassis", "slider", (0.5, 0, 0.9), (0.2, 0.1, 1)),
            "spin": mbd.Revolute("left", "wheel", CENTRE, (0.05, 1, 0.02)),
        },
        forces,
    )


ENDS = dict(a="chassis", b="left", at_a=(0, 0.5, 0.8), at_b=(0, 0.55, 0.3))
ELEMENTS = {
    "bump stop": mbd.BumpStop(**ENDS, gap=-0.2, stiffness=2e3, progression=3e4, dissipation=0.3),
    "rebound stop": mbd.BumpStop(**ENDS, gap=-0.3, progression=3e4, dissipation=2.0, rebound=True),
    "upper limit": mbd.JointLimit("left_hinge", -9, -0.9, 50.0, 20.0, 0.4),
    "lower limit": mbd.JointLimit("guide", lower=0.8, stiffness=300.0, dissipation=0.4),
    "bar": mbd.AntiRollBar(
        "left", "right", (0, 0.6, 0.3), (0, -0.6, 0.3), 4e3, 20.0, "chassis", (0, 0.6, 0.8)
    ),
    "torsion bar": mbd.TorsionBar("left_hinge", "right_hinge", 90.0, 2.0, -0.8, 0.05),
    "damper": mbd.SpringDamper(**ENDS, stiffness=1e3, law=CURVE),
    "tyre": mbd.PacejkaTyre(
        "wheel",
        CENTRE,
        2e5,
        radius=0.9,
        axis=(0.05, 1, 0.02),
        longitudinal=(1.6, 0, 0),
        lateral=(1.3, 0, -1),
    ),
}


def state(scale=1.0):
    m, rng = rig(), np.random.default_rng(3)
    q = mbd.step_coordinates(m, mbd.neutral(m), 0.15 * rng.normal(size=10))
    return q, scale * rng.normal(size=10)


def force(mech, q, v):
    """Efforts of the force elements: what they take from the bias."""
    return mbd.bias(rig(), q, v) - mbd.bias(mech, q, v)


def potential(mech, q):
    m = motion_state(mech, q)
    return sum((f.energy(m) for f in mech.forces.values()), 0.0)


def gradient(mech, q):
    zero = jnp.zeros(10)
    return jax.grad(lambda x: potential(mech, mbd.step_coordinates(mech, q, x)))(zero)


@pytest.mark.parametrize("name", ELEMENTS)
def test_the_force_at_rest_is_the_gradient_of_the_potential(name):
    q, _ = state()
    mech = rig(it=ELEMENTS[name])
    f = force(mech, q, jnp.zeros(10))
    assert np.abs(f).max() > 1.0, "the element does nothing here"
    np.testing.assert_allclose(f, -gradient(mech, q), rtol=0, atol=1e-10 * np.abs(f).max())


def lost(name, mech, q, v):
    """Power that the element takes out, by what its description says."""
    m, element = motion_state(mech, q, v), ELEMENTS[name]
    if hasattr(element, "lost_power"):
        return element.lost_power(m)
    if name == "damper":
        rate = element._extension(m)[4]
        return CURVE(0.0, rate) * rate
    rate = {"bar": lambda: element._twist(m)[4], "torsion bar": lambda: element._difference(m)[1]}
    return element.damping * rate[name]() ** 2 if name in rate else 0.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", ELEMENTS)
def test_power_is_the_loss_of_energy(name, sign):
    q, v = state(sign)
    mech = rig(it=ELEMENTS[name])
    power, loss = force(mech, q, v) @ v, lost(name, mech, q, v)
    size = np.abs(force(mech, q, v)).max() * np.abs(v).max()
    np.testing.assert_allclose(power, -gradient(mech, q) @ v - loss, rtol=0, atol=1e-10 * size)
    assert loss >= 0.0


def test_internal_elements_leave_no_net_force():
    """The free joint of the chassis feels only what comes from outside."""
    q, v = state()
    for name in ("bump stop", "rebound stop", "bar", "damper"):
        m = motion_state(rig(it=ELEMENTS[name]), q, v)
        loads = m.mech.forces["it"].loads(m)
        total = sum(x.force for x in loads)
        moment = sum(x.moment + np.cross(x.point, x.force) for x in loads)
        size = max(np.abs(x.force).max() for x in loads)
        assert size > 1.0 and np.abs([total, moment]).max() < 1e-10 * size, name


def slide(**forces):
    return mbd.Mechanism(
        {"block": mbd.Body(2.0)},
        {"guide": mbd.Prismatic("ground", "block", (0, 0, 0), (1, 0, 0))},
        forces,
        gravity=(0, 0, 0),
    )


def acceleration(mech, q, v):
    return mbd.forward_dynamics(mech, jnp.array([q]), jnp.array([v]))[0][0]


def test_stops_touch_past_their_gap_only():
    ends = dict(a="ground", b="block", at_a=(-1, 0, 0), at_b=(0, 0, 0))
    mech = slide(
        near=mbd.BumpStop(**ends, gap=0.2, stiffness=100.0),
        far=mbd.BumpStop(**ends, gap=0.3, stiffness=100.0, progression=50.0, rebound=True),
        limit=mbd.JointLimit("guide", -0.5, 0.6, 1000.0, dissipation=0.5),
    )
    run = jax.jit(jax.vmap(lambda q, v: acceleration(mech, q, v)))
    q = jnp.array([0.0, -0.19, 0.29, -0.25, 0.4, -0.6, 0.7, 0.7, 0.7])
    v = jnp.array([3.0, -3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 1.0, -4.0])
    far = [-100 * d - 50 * d * d for d in (0.1, 0.4)]
    limit = [40 + 100.0, far[1] - 100, far[1] - 150, far[1]]  # near stop: 100 (0.6 - 0.2)
    expected = np.array([0, 0, 0, 5.0, far[0], *limit]) / 2.0
    np.testing.assert_allclose(run(q, v), expected, rtol=0, atol=1e-12)


def test_a_stop_returns_energy_less_what_it_loses():
    """A rebound at v0 < 1/d loses ``∫ lost power``; without dissipation it returns all."""
    for dissipation, kept in ((0.0, True), (0.4, False)):
        mech = slide(stop=mbd.JointLimit("guide", None, 0.1, 2e3, 1e4, dissipation))
        run = mbd.simulate(mech, [0.0], [1.0], t1=0.4, dt=2.5e-4)
        assert run.q.max() > 0.101 and run.q[-1] < 0.1
        energy = 0.5 * 2.0 * run.v[-1, 0] ** 2
        # Hunt and Crossley's restitution solves y - ln(1 + y) = -(z + ln(1 - z)), y = d v, z = d v'
        assert abs(energy - 1.0) < 1e-5 if kept else energy < 0.8
        if not kept:
            y, z = dissipation, -dissipation * float(run.v[-1, 0])
            assert abs((y - np.log(1 + y)) + (z + np.log(1 - z))) < 1e-6


def test_damper_curve_is_the_interpolated_sheet():
    speeds = np.linspace(-1.0, 1.0, 41)
    x = np.array([-1.0, -0.5, -0.1, 0, 0.2, 1.0])
    y = np.array([-600.0, -500, -300, 0, 900, 1500])
    forces = np.array([CURVE(0.0, s) for s in speeds])
    np.testing.assert_allclose(forces, np.interp(speeds, x, y), rtol=0, atol=1e-10)
    table = mbd.Table(x, y, of_rate=True)
    np.testing.assert_allclose(forces, [table(0.0, s) for s in speeds], rtol=0, atol=1e-10)
    np.testing.assert_allclose(CURVE(0.0, 3.0), 1500 + 2.0 * 750)
    assert all(f * s >= 0.0 for f, s in zip(forces, speeds, strict=True))


def test_roll_bar_does_nothing_in_heave():
    mech = rig(bar=mbd.TorsionBar("left_hinge", "right_hinge", 90.0, ratio=-1.0))
    q = np.array(mbd.neutral(mech))
    top = mbd.topology(mech)
    left, right = (top.layout[n].q.start for n in ("left_hinge", "right_hinge"))
    q[left], q[right] = 0.2, -0.2  # hinges point the same way: mirror images turn oppositely
    assert np.abs(force(mech, jnp.array(q), jnp.zeros(10))).max() < 1e-12
    q[right] = 0.2
    f = force(mech, jnp.array(q), jnp.zeros(10))
    left, right = (top.layout[n].v.start for n in ("left_hinge", "right_hinge"))
    np.testing.assert_allclose(f[np.array([left, right])], [-90 * 0.4] * 2)


# The tyre

TYRE = mbd.PacejkaTyre(
    "wheel", (0, 0, 0.29), 2e5, damping=500.0, radius=0.31, trail=(8.0, 1.1, 0.04), low_speed=0.1
)


def wheel(tyre=TYRE):
    return mbd.Mechanism(
        {"wheel": mbd.Body(20.0, (0, 0, 0.29), (0.5, 0.9, 0.5))},
        {"free": mbd.Free("ground", "wheel")},
        {"tyre": tyre},
    )


def tyre_load(q, v, tyre=TYRE):
    m = motion_state(wheel(tyre), q, v)
    [load] = tyre.loads(m)
    return load


REST = jnp.array([1.0, 0, 0, 0, 0, 0, 0])


def magic(slip, load, shape, slope, sensitivity=0.1, nominal=4000.0):
    """``D sin(C atan(B s − E (B s − atan B s)))``, term by term as printed."""
    (c, mu, e), (c1, c2) = shape, slope
    d = mu * (1 - sensitivity * (load / nominal - 1)) * load
    b = c1 * np.sin(2 * np.arctan(load / c2)) / (c * d)
    return d * np.sin(c * np.arctan(b * slip - e * (b * slip - np.arctan(b * slip))))


@pytest.mark.parametrize("load", [1500.0, 4000.0, 7000.0])
def test_pure_slip_is_the_magic_formula(load):
    slips = jnp.linspace(-0.4, 0.4, 17)
    zero = jnp.zeros(())
    x = [TYRE.forces(load, s, zero)[0] for s in slips]
    y = [TYRE.forces(load, zero, s)[1] for s in slips]
    np.testing.assert_allclose(x, magic(slips, load, (1.65, 1, 0), (1.2e5, 8e3)), rtol=1e-12)
    np.testing.assert_allclose(y, magic(slips, load, (1.3, 0.95, -1), (7e4, 6e3)), rtol=1e-12)
    slope = jax.grad(lambda s: TYRE.forces(load, zero, s)[1])(zero)
    np.testing.assert_allclose(slope, 7e4 * np.sin(2 * np.arctan(load / 6e3)), rtol=1e-12)
    trail = 0.04 * np.cos(1.1 * np.arctan(8.0 * slips))
    z = [TYRE.forces(load, zero, s)[2] for s in slips]
    np.testing.assert_allclose(z, -trail * np.array(y), rtol=1e-12)


def test_combined_slip_stays_in_the_friction_ellipse_and_is_symmetric():
    slips = jnp.array(RNG.normal(size=(500, 2)) * np.array([0.3, 0.2]))
    x, y, _ = jax.vmap(lambda s: TYRE.forces(4000.0, s[0], s[1]))(slips)
    used = (x / 4000) ** 2 + (y / 3800) ** 2
    assert 0.9 < used.max() <= 1.0 + 1e-12
    assert np.all(x * slips[:, 0] >= 0) and np.all(y * slips[:, 1] >= 0)
    mirrored, left, _ = jax.vmap(lambda s: TYRE.forces(4000.0, s[0], -s[1]))(slips)
    np.testing.assert_allclose(mirrored, x, rtol=1e-12)
    np.testing.assert_allclose(left, -y, rtol=1e-12)
    alone, _, _ = jax.vmap(lambda s: TYRE.forces(4000.0, s[0], 0.0 * s[1]))(slips)
    assert np.all(
        np.abs(x[np.abs(slips[:, 0]) < 0.08]) <= np.abs(alone[np.abs(slips[:, 0]) < 0.08])
    )


def test_a_rolling_wheel_slips_as_its_motion_says():
    """Forward speed 20, spin for κ = 0.03, sideways speed for α = 2°, deflection 0.02."""
    speed, kappa, alpha = 20.0, 0.03, np.radians(2.0)
    tyre = mbd.PacejkaTyre("wheel", (0, 0, 0.29), 2e5, radius=0.31, low_speed=1e-3)
    v = jnp.array([0, speed * (1 + kappa) / 0.29, 0, speed, -speed * np.tan(alpha), 0])
    load = tyre_load(REST, v, tyre)
    x, y, _ = tyre.forces(4000.0, kappa, np.tan(alpha))
    np.testing.assert_allclose(load.force, [x, y, 4000.0], rtol=1e-7)
    np.testing.assert_allclose(load.point, [0, 0, 0], rtol=0, atol=1e-12)
    free = jnp.array([0, speed / 0.29, 0, speed, 0, 0])
    np.testing.assert_allclose(tyre_load(REST, free, tyre).force, [0, 0, 4000.0], rtol=0, atol=1e-6)


def test_no_force_off_the_ground_and_no_pull():
    v = jnp.array([1.0, 30, 2, 10, 1, 5])
    assert not np.any(tyre_load(REST.at[6].set(0.021), v).force)
    assert not np.any(tyre_load(REST, v.at[5].set(9.0)).force)  # the damper would pull


def test_gradients_are_finite_at_standstill_and_off_the_ground():
    def total(q, v):
        load = tyre_load(q, v)
        return jnp.sum(load.force) + jnp.sum(load.moment)

    gradient = jax.jit(jax.grad(total, (0, 1)))
    for q in (REST, REST.at[6].set(0.02), REST.at[6].set(0.1)):
        grads = gradient(q, jnp.zeros(6))
        assert all(np.all(np.isfinite(g)) for g in grads)
    push = jax.jit(jax.jacfwd(lambda v: tyre_load(REST, v).force))(jnp.zeros(6))
    assert push[0, 3] < 0.0 and push[1, 4] < 0.0


def test_a_thrown_wheel_rolls_in_the_end():
    """A wheel thrown along the road with no spin: friction rolls it up, then it rolls on."""
    start = REST.at[6].set(0.02 - 20.0 * 9.81 / 2e5)  # resting on its spring
    run = mbd.simulate(wheel(), start, [0, 0, 0, 2.0, 0, 0], t1=0.5, dt=5e-4, save_every=20)
    energy = [
        mbd.kinetic_energy(wheel(), q, v) + mbd.potential_energy(wheel(), q)
        for q, v in zip(run.q, run.v, strict=True)
    ]
    assert np.all(np.diff(energy) < 1e-9)
    spin, speed, height = run.v[-1, 1], run.v[-1, 3], run.q[-1, 6] + 0.29
    assert abs(speed - spin * height) < 1e-2 and spin > 1.0


def test_bad_descriptions_are_named():
    with pytest.raises(ValueError) as error:
        slide(
            end=mbd.JointLimit("guide"),
            range=mbd.JointLimit("guide", 1.0, -1.0, 5.0),
            none=mbd.JointLimit("nowhere", 0.0),
            bar=mbd.TorsionBar("guide", "missing", 1.0),
            roll=mbd.AntiRollBar("block", "ground", (0, 0, 0), (1, 0, 0), 1.0, chassis="car"),
            tyre=mbd.PacejkaTyre("block", (0, 0, 0), 1e5, lateral=(1, 2)),
        )
    text = str(error.value)
    for part in ("neither lower nor upper", "over upper", "'nowhere'", "'missing'", "'car'"):
        assert part in text
    assert "lateral" in text
    with pytest.raises(ValueError, match="must increase"):
        mbd.DamperCurve([0.0, 1.0], [0, 1], [1.0], [1.0])
    with pytest.raises(ValueError, match="takes energy out"):
        mbd.DamperCurve([1.0], [-1.0], [1.0], [1.0])


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ([0.0, 2.0, 1.0], [0.0, 1.0, 2.0], r"x \[0.0, 2.0, 1.0\] must increase"),
        ([0.0, 1.0, 1.0], [0.0, 1.0, 2.0], "must increase"),
        ([0.0, np.nan], [0.0, 1.0], r"x is \[0.0, nan\], not all finite"),
        ([0.0, 1.0], [0.0, np.inf], "y is .*not all finite"),
        ([0.0, 1.0], [0.0, 1.0, 2.0], r"x has shape \(2,\) and y \(3,\)"),
        ([], [], "give two equal lists"),
    ],
)
def test_a_table_that_is_none_is_refused(x, y, says):
    with pytest.raises(ValueError, match=says):
        mbd.Table(x, y)


def test_a_table_of_traced_numbers_passes():
    slope = jax.jit(jax.grad(lambda a: mbd.Table([0.0, a], [0.0, 2.0 * a**2])(0.5, 0.0)))(1.0)
    assert float(slope) == pytest.approx(1.0)
