"""What `check_state` flags, such as digits lost to rounding, and healthy states that pass."""

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd

INERTIA = np.diag([0.02, 0.03, 0.04])


def braced_pendulum() -> mbd.Mechanism:
    """A rod holds the first of two bodies: its row is met by an acceleration of zero."""
    return mbd.Mechanism(
        {"arm": mbd.Body(2.0, (0.3, 0.1), 0.1), "tip": mbd.Body(1.0, (1.3, -0.2), 0.05)},
        {
            "base": mbd.Revolute("ground", "arm", (0.0, 0.0)),
            "elbow": mbd.Revolute("arm", "tip", (0.9, 0.2)),
            "brace": mbd.Rod("ground", "arm", (0.1, -1.0), (0.7, 0.3)),
        },
        gravity=(0.3, -9.81),
    )


def test_a_body_that_is_held_still_is_not_flagged():
    mech = braced_pendulum()
    q, v = mbd.neutral(mech), np.zeros(2)
    vdot, _ = mbd.forward_dynamics(mech, q, v)
    assert abs(vdot[0]) < 1e-12 < abs(vdot[1])
    assert mbd.check_state(mech, q, v).status == 0


def test_a_balance_of_loads_is_not_flagged():
    """A pendulum that hangs still: all accelerations are only rounding."""
    mech = mbd.zoo.simple_pendulum()
    hanging = mbd.equilibrium(mech, guess=mbd.neutral(mech) + 1.5).q
    assert abs(mbd.forward_dynamics(mech, hanging, np.zeros(1))[0][0]) < 1e-9
    assert mbd.check_state(mech, hanging).status == 0


def sprung(stiffness, shift=0.0, law=None):
    shift = shift * np.array([1.0, 0.7, -0.3])
    return mbd.Mechanism(
        {"arm": mbd.Body(2.0, np.array([0.51, 0.13, 0.2]) + shift, INERTIA)},
        {"hinge": mbd.Revolute("ground", "arm", shift, (0.2, 1.0, 0.1))},
        {
            "spring": mbd.SpringDamper(
                "ground", "arm", np.array([0.1, 0.3, 1.7]) + shift,
                np.array([0.6, 0.1, 0.3]) + shift, stiffness=stiffness, law=law,
            )
        },
        gravity=(1.0, 0.0, -9.81),
    )  # fmt: skip


def test_a_spring_whose_strain_is_rounding_is_flagged():
    """At 1e15 N/m one rounding of the points moves the force by 0.1 N, at 1e5 N/m by nothing."""
    q = 1e-12 * jnp.ones(1)
    found = [mbd.check_state(sprung(k, 0.3), q).status for k in (1e2, 1e5, 1e15)]
    assert found == [0, 0, mbd.Status.INACCURATE]
    stretched = mbd.check_state(sprung(1e15, 0.3), jnp.ones(1))
    assert stretched.status == 0  # its force is far above its rounding error


def test_a_drawing_far_from_the_origin_is_flagged_once_its_digits_are_lost():
    states = [mbd.check_state(sprung(1e3, shift), 0.3 * jnp.ones(1)) for shift in (1e4, 1e6, 1e12)]
    assert [x.status for x in states] == [0, 0, mbd.Status.INACCURATE]
    near, far = (
        mbd.forward_dynamics(sprung(1e3, x), 0.3 * jnp.ones(1), jnp.ones(1))[0] for x in (0.0, 1e6)
    )
    np.testing.assert_allclose(far, near, rtol=1e-6)


def test_a_far_centre_of_mass_spoils_no_other_inertia():
    """A carriage that slides along a body of the ground, declared the other way round."""
    mech = mbd.Mechanism(
        {
            "carriage": mbd.Body(2.0, (6e5, 6e5, 6e5), INERTIA),
            "arm": mbd.Body(1.5, (0.4, 0.3, 0.0), INERTIA),
        },
        {
            "rail": mbd.Prismatic("carriage", "ground", (0.0, 0.5, 0.0), (0, 1, 0)),
            "hinge": mbd.Revolute("carriage", "arm", (0.1, 0.3, 0.0), (0, 0, 1)),
        },
    )
    found = mbd.mass_matrix(mech, np.array([0.2, 0.7]))
    np.testing.assert_allclose(found[1, 1], INERTIA[2, 2] + 1.5 * 0.3**2, rtol=1e-9)


def test_a_spin_whose_inertia_is_rounding_is_flagged():
    """A slider of a nanometre, moved by metres: inertias about the joint cancel.

    The spin is driven, so that all accelerations are right; what the drive carries is not.
    """
    nano = 1e-9

    def spindle(travel):
        inertia = nano**2 * INERTIA
        mech = mbd.Mechanism(
            {
                "slider": mbd.Body(0.4, nano * np.array([-0.2, 0.4, 0.1]), inertia),
                "spindle": mbd.Body(1.0, nano * np.array([0.3, 0.2, 0.5]), inertia),
            },
            {
                "rail": mbd.Prismatic("ground", "slider", np.zeros(3), (0.9, 0.2, 0.4)),
                "guide": mbd.Cylindrical("slider", "spindle", np.zeros(3), (0.3, -0.7, 0.6)),
            },
            drives={"motor": mbd.Drive("guide", lambda t, rate: rate * t, 0.3)},
        )
        q, v = jnp.array([0.2 * travel, 0.0, travel]), jnp.array([0.0, 0.3, 0.0])
        return mbd.mass_matrix(mech, q)[1, 1], mbd.check_state(mech, q, v).status

    near, status = spindle(3.0 * nano)
    assert status == mbd.Status.OK
    far, status = spindle(2.4)
    assert abs(far - near) > 10.0 * near and status == mbd.Status.INACCURATE


def test_accelerations_that_are_not_finite_are_flagged():
    """A law beyond its domain, on one side of the drawn position."""
    mech = sprung(1.0, law=lambda x, _: x**0.5)
    found = [mbd.check_state(mech, s * jnp.ones(1)).status for s in (0.3, -0.3)]
    assert sorted(found) == [0, mbd.Status.NON_FINITE]


def test_a_stiff_spring_as_drawn_is_flagged_where_a_neighbour_differs():
    """As drawn the strain may be zero by luck: of coordinates that are zeros none is rounded."""

    def arm(points, stiffness):
        com, hinge, foot, end = points
        return mbd.Mechanism(
            {"arm": mbd.Body(1.0, com, 0.1)},
            {"hinge": mbd.Revolute("ground", "arm", hinge)},
            {"spring": mbd.SpringDamper("ground", "arm", foot, end, stiffness=stiffness)},
            gravity=(0.0, -9.81),
        )

    points = np.array([[-0.041, 0.098], [-0.413, -0.087], [-0.909, 0.619], [0.815, 0.505]])
    rest, rng = np.zeros(1), np.random.default_rng(0)
    for stiffness, status in ((1e12, mbd.Status.INACCURATE), (1e6, 0)):
        around = np.nextafter(points, rng.choice([-9.0, 9.0], (40, *points.shape)))
        found = [mbd.forward_dynamics(arm(x, stiffness), rest, rest)[0] for x in around]
        assert (np.ptp(found) > 1e-5 * 9.81) == bool(status)
        assert mbd.check_state(arm(points, stiffness), rest).status == status


def test_multipliers_of_least_norm_that_lost_the_balance_are_flagged():
    """Redundant rows of bodies 1e15 times as heavy as others: λ, not the motion, loses digits."""
    plain = mbd.zoo.bricard()
    factors = [1.497413718824768e-08, 3.309343e07, 1.5579204e-08, 0.6213278, 3.5015320]
    for powers, status in ((0.0, 0), (1.0, mbd.Status.INACCURATE)):
        names = zip(plain.structure.bodies, np.power(factors, powers), strict=True)
        parts = {n: (plain.bodies[n], f) for n, f in names}
        bodies = {n: mbd.Body(b.mass * f, b.com, b.inertia * f) for n, (b, f) in parts.items()}
        mech = plain.replace(bodies=bodies, gravity=(1.0, 2.0, -9.0))
        q, rest = mbd.assemble(mech).q, np.zeros(mbd.topology(mech).nv)
        vdot, lam = mbd.forward_dynamics(mech, q, rest)
        mass, bias = mbd.mass_matrix(mech, q), mbd.bias(mech, q, rest)
        rest_force = mass @ vdot + bias - mbd.constraint_jacobian(mech, q).T @ lam
        root = np.sqrt(np.diag(mass))
        lost = np.max(np.abs(rest_force) / root) > 5e-7 * np.max(np.abs(bias) / root)
        assert lost == bool(status) and mbd.check_state(mech, q).status == status


def test_numbers_whose_squares_overflow_are_never_ok():
    mech = mbd.zoo.rssr()
    far = mech.replace(gravity=(0.0, 0.0, 1e300))
    assert mbd.check_state(mech, mbd.neutral(mech)).status == mbd.Status.OK
    assert mbd.check_state(far, mbd.neutral(mech)).status != mbd.Status.OK
