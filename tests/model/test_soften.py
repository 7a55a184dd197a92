"""Softened joints: the graph that is left, convergence to the joint, the models of a ball."""

from __future__ import annotations

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest

import jaxmbd as mbd
from jaxmbd.analysis.methods.diffrax_solver import with_newton
from jaxmbd.numerics import tolerances
from jaxmbd.spatial.rotations import quaternion_product

ORIGIN = (0.0, 0.0, 0.0)
WEIGHT = 2.0 * 9.81


def test_a_joint_that_closed_a_loop_is_gone():
    """S is the rigid linkage's cut; without R, S carries the coupler."""
    rigid = mbd.zoo.rsrrp()
    for joint, tree in (("S", "APBR"), ("R", "ASPB")):
        soft = mbd.soften(rigid, joint=joint, stiffness=1e5, damping=(1.0, 50.0))
        top = mbd.topology(soft)
        assert set(top.tree) == set(tree) and top.nc == 0 and not top.cut
        assert joint not in soft.joints and isinstance(soft.forces[joint], mbd.SoftJoint)
        assert mbd.zoo.rsrrp(soft=joint).structure.joints == soft.structure.joints
        assert list(soft.points) == list(rigid.points), "hardpoints stay leaves"


def _arm():
    return mbd.Mechanism(
        bodies={
            "arm": mbd.Body(1.0, com="middle", inertia=(0.1, 0.1, 0.1)),
            "tip": mbd.Body(2.0, com=(1.0, 0, 0), inertia=(0.1, 0.1, 0.1)),
        },
        joints={
            "base": mbd.Revolute("arm", "ground", at=ORIGIN, axis=("O", "middle")),
            "end": mbd.Universal("arm", "tip", (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        },
        forces={"spring": mbd.TorsionSpring("base", stiffness=1.0)},
        points={"O": ORIGIN, "middle": (0.5, 0, 0)},
    )


def test_a_body_that_nothing_else_holds_is_free():
    soft = mbd.soften(_arm(), joint="end", stiffness=1e4)
    assert isinstance(soft.joints["end"], mbd.Free)
    assert (soft.joints["end"].a, soft.joints["end"].b) == ("arm", "tip")
    other = _arm().replace(forces={"spring": mbd.PointForce("tip", at=(1, 0, 0))})
    soft = mbd.soften(other, joint="base", stiffness=1e4)
    assert (soft.joints["base"].a, soft.joints["base"].b) == ("ground", "arm")
    assert mbd.topology(soft).nv == 8
    # a loop that the user cut elsewhere
    cut = mbd.zoo.rsrrp()
    cut = mbd.Mechanism(cut.bodies, cut.joints, points=cut.points, cut=("S",))
    assert mbd.topology(mbd.soften(cut, joint="R", stiffness=1e4)).layout["R"].v is not None
    assert mbd.soften(cut, joint="S", stiffness=1e4).structure.cut == ()


CARRIED = {
    "revolute": mbd.Revolute("ground", "b", ORIGIN, (0, 0, 1)),
    "prismatic": mbd.Prismatic("ground", "b", ORIGIN, (1, 0, 0)),
    "cylindrical": mbd.Cylindrical("ground", "b", ORIGIN, (1, 0, 0)),
    "helical": mbd.Helical("ground", "b", ORIGIN, (1, 0, 0), 0.1),
    "planar": mbd.Planar("ground", "b", ORIGIN, (0, 0, 1)),
    "spherical": mbd.Spherical("ground", "b", ORIGIN),
    "universal": mbd.Universal("ground", "b", ORIGIN, (0, 0, 1), (1, 0, 0)),
    "fixed": mbd.Fixed("ground", "b", ORIGIN),
    "rod": mbd.Rod("ground", "b", (0, 0, 2.0), ORIGIN),
}


@pytest.mark.parametrize("kind", CARRIED)
def test_stiffness_is_per_row(kind):
    """A body that hangs by its centre in a soft joint sinks by weight/k, whatever the joint."""
    joint = CARRIED[kind]
    k = 1e4
    joints = {"j": joint}
    if isinstance(joint, mbd.Rod):
        joints["guide"] = mbd.Prismatic("ground", "b", ORIGIN, (0, 0, 1))
    mech = mbd.Mechanism({"b": mbd.Body(2.0, ORIGIN, (0.1, 0.2, 0.2))}, joints)
    soft = mbd.soften(mech, joint="j", stiffness=(10.0, k))
    q = mbd.neutral(soft)
    q[-1] = -WEIGHT / k  # the last coordinate is the height
    left = mbd.bias(soft, q, np.zeros(mbd.topology(soft).nv))
    np.testing.assert_allclose(left, 0.0, rtol=0, atol=1e-9)
    assert abs(mbd.bias(soft, mbd.neutral(soft), 0 * left)[-1]) > 1.0


def test_a_hinge_spins_without_wind_up():
    """Full turns of a softened hinge store no energy: only the rows' directions resist."""
    mech = mbd.Mechanism(
        {"b": mbd.Body(1.0, ORIGIN, (0.1, 0.2, 0.2))},
        {"j": mbd.Revolute("ground", "b", ORIGIN, (0, 0, 1))},
        gravity=ORIGIN,
    )
    soft = mbd.soften(mech, joint="j", stiffness=(30.0, 1e4))
    angles = jnp.linspace(0.0, 2 * np.pi, 9)

    def energy(angle, tilt):
        turn = jnp.stack([jnp.cos(angle / 2), 0 * angle, 0 * angle, jnp.sin(angle / 2)])
        lean = jnp.array([np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0])
        return mbd.potential_energy(
            soft, jnp.concatenate([quaternion_product(turn, lean), jnp.zeros(3)])
        )

    spun = jax.vmap(lambda a: energy(a, 0.0))(angles)
    np.testing.assert_allclose(spun, 0.0, rtol=0, atol=1e-25)
    leaning = jax.vmap(lambda a: energy(a, 1e-3))(angles)
    np.testing.assert_allclose(leaning, 0.5 * 30.0 * 1e-6, rtol=1e-6)


def _ball(model, **options):
    mech = mbd.Mechanism(
        {"b": mbd.Body(2.0, ORIGIN, (0.1, 0.1, 0.1))}, {"j": mbd.Spherical("ground", "b", ORIGIN)}
    )
    return mbd.soften(mech, joint="j", stiffness=1e4, damping=20.0, model=model, **options)


def _force(mech, d, u):
    """Force (3,) [N] of the springs on the body displaced by d, moving with u; no weight."""
    q, v = mbd.neutral(mech), np.zeros(6)
    q[4:], v[3:] = d, u
    still = mech.replace(gravity=ORIGIN)
    return np.asarray(-mbd.bias(still, q, v))[3:]


def test_models_of_a_ball_joint():
    rng = np.random.default_rng(2)
    direct = _ball("directional")
    single, three = _ball("single"), _ball("three", reach=0.1)
    assert list(three.forces) == ["j_x", "j_y", "j_z"]
    d, u = 1e-3 * rng.normal(size=3), rng.normal(size=3)
    # one spring along the line of centres is as stiff, but damps along it alone
    np.testing.assert_allclose(_force(single, d, 0 * u), _force(direct, d, 0 * u), rtol=1e-12)
    line = d / np.linalg.norm(d)
    across = u - (u @ line) * line
    np.testing.assert_allclose(
        _force(single, d, across), _force(single, d, 0 * u), rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        _force(direct, d, across) - _force(direct, d, 0 * u), -20.0 * across, rtol=1e-9
    )
    # three springs agree to first order in displacement over reach
    gaps = []
    for s in (1.0, 0.1):
        a, b = (_force(m, s * d, 0 * u) for m in (three, direct))
        gaps.append(np.abs(a - b).max() / np.abs(b).max())
    assert 0.0 < gaps[0] < 0.1 and 7.0 < gaps[0] / gaps[1] < 13.0


@pytest.mark.parametrize("joint", ["R", pytest.param("S", marks=pytest.mark.slow)])
def test_softened_linkage_tends_to_the_rigid_one(joint):
    """From rest at the static equilibrium, by RK4: first order in 1/stiffness."""
    rigid = mbd.zoo.rsrrp()
    run = {"t1": 0.5, "dt": 1e-4, "save_every": 500, "constraints": "none"}
    reference = mbd.simulate(rigid, mbd.neutral(rigid), np.zeros(4), **run)
    assert float(reference.drift) < 1e-9
    errors = []
    for k in (2e3, 2e4):
        c = 2.0 * np.sqrt(0.2 * k)
        soft = mbd.zoo.rsrrp(soft=joint, stiffness=(1e-2 * k, k), damping=(1e-2 * c, c))
        start = mbd.equilibrium(soft, known={"A": 0.0})
        np.testing.assert_allclose(start.held, 0.0, rtol=0, atol=1e-8)
        top = mbd.topology(soft)
        motion = mbd.simulate(soft, start.q, np.zeros(top.nv), **run)
        psi = motion.q[:, top.layout["A"].q][:, 0]
        errors.append(np.abs(psi - reference.q[:, 0]).max())
    assert errors[0] < 1e-2 and 7.0 < errors[0] / errors[1] < 14.0


@pytest.mark.slow
def test_implicit_solver_on_a_stiff_joint():
    """Forces whose rounding is above the tolerance do not stop Newton's method, nor the run."""
    weight = mbd.Mechanism(
        {"b": mbd.Body(1.0, (0.3, 0, 0), (1e-4, 1e-2, 1e-2))},
        {"j": mbd.Revolute("ground", "b", ORIGIN, (0, 1, 0))},
    )
    soft = mbd.soften(weight, joint="j", stiffness=(1e6, 1e8), damping=(1e2, 1e4))
    n = mbd.topology(soft).nv
    motion = mbd.simulate(
        soft, mbd.neutral(soft), np.zeros(n), t1=0.4, dt=0.2, method=diffrax.Kvaerno5()
    )
    rigid = mbd.simulate(weight, [0.0], [0.0], t1=0.4, dt=1e-3, save_every=200)
    angle = 2.0 * np.arctan2(motion.q[:, 2], motion.q[:, 0])
    sag = 9.81 / 1e8 / 0.3  # of the bearing, over the arm
    assert 0.1 * sag < np.abs(angle - rigid.q[:, 0]).max() < 20.0 * sag


STEPS = tolerances.integration(np.float64)


def test_root_finder_of_the_users_own_stays():
    own = diffrax.Kvaerno5(root_finder=diffrax.VeryChord(rtol=1e-5, atol=1e-5))
    assert with_newton(own, STEPS) == own
    assert with_newton(diffrax.Dopri8(), STEPS) == diffrax.Dopri8()
    default = with_newton(diffrax.Kvaerno5(), STEPS)
    assert isinstance(default.root_finder, optimistix.Newton)


def test_bad_input():
    arm = _arm()
    for options, text in (
        ({"joint": "none"}, r"no joint 'none' to soften; known: \['base', 'end'\]"),
        ({"joint": "base"}, r"\['spring'\] act on the coordinates of joint 'base'"),
        ({"joint": "end", "model": "big"}, "model='big'; give one of"),
        ({"joint": "end", "model": "single"}, "'end' is a Universal; leave it 'directional'"),
        ({"joint": "end", "reach": 0.1}, "model='three' needs reach="),
    ):
        with pytest.raises(ValueError, match=text):
            mbd.soften(arm, stiffness=1.0, **options)
    free = mbd.Mechanism({"b": mbd.Body(1.0)}, {"f": mbd.Free("ground", "b")})
    with pytest.raises(ValueError, match="'f' is a Free: it constrains nothing"):
        mbd.soften(free, joint="f", stiffness=1.0)
    taken = arm.replace(forces={"end": mbd.Torque("arm", "tip")})
    with pytest.raises(ValueError, match="a force element is named 'end' too"):
        mbd.soften(taken, joint="end", stiffness=1.0)
    with pytest.raises(ValueError, match=r"stiffness is of shape \(3,\)"):
        mbd.soften(arm, joint="end", stiffness=[1.0, 2.0, 3.0])
