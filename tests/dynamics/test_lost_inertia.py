"""Bodies without inertia: each sample's numbers decide, however they were given."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.kkt import kkt_system
from jaxmbd.kinematics import motion_state


@pytest.fixture(scope="module")
def four_bar():
    mech = mbd.zoo.four_bar()
    q = mbd.assemble(mech, {"A": 0.4}).q
    return mech, q, mbd.assemble_velocity(mech, q, {"A": 2.0})


def scaled(mech, share, name="coupler"):
    """The mechanism with a share of a body's inertia."""
    body = mech.bodies[name]
    new = mbd.Body(share * body.mass, body.com, share * body.inertia)
    return eqx.tree_at(lambda m: m.bodies[name], mech, new)


def dense(mech, q, v):
    """Accelerations by the whole KKT matrix, with a pseudo-inverse."""
    m = motion_state(mech, q, v)
    system = kkt_system(m)
    mass, rows = np.asarray(system.mass.array()), np.asarray(system.jacobian)
    none = np.zeros((len(rows),) * 2)
    rhs = np.concatenate(
        [-np.asarray(mbd.bias(mech, q, v)), np.asarray(system.own.scale * mbd.gamma(mech, q, v))]
    )
    kkt = np.block([[mass, -rows.T], [rows, none]])
    return (np.linalg.pinv(kkt, rcond=1e-12) @ rhs)[: len(mass)]


@pytest.mark.parametrize("share", [0.0, 1e-7, 1e-4, 1.0])
def test_accelerations_are_those_of_the_dense_system(four_bar, share):
    mech, q, v = four_bar
    link = scaled(mech, share)
    found, _ = mbd.forward_dynamics(link, q, v)
    assert mbd.check_state(link, q, v).status == mbd.Status.OK
    np.testing.assert_allclose(found, dense(link, q, v), rtol=1e-8)
    rebuilt, _ = mbd.forward_dynamics(link.replace(), q, v)
    np.testing.assert_array_equal(found, rebuilt)


def test_only_the_crank_has_inertia(four_bar):
    mech, q, v = four_bar
    link = scaled(scaled(mech, 0.0), 0.0, "rocker")
    found, _ = mbd.forward_dynamics(link, q, v)
    np.testing.assert_allclose(found, dense(link, q, v), rtol=1e-8)


def test_samples_with_and_without_inertia_share_a_batch(four_bar):
    mech, q, v = four_bar
    shares = jnp.array([1.0, 0.0, 0.5, 1e-7, 0.0, 2.0, 1.0, 0.0, 0.3])

    def both(share):
        found = mbd.forward_dynamics(scaled(mech, share), q, v)
        check = mbd.check_state(scaled(mech, share), q, v)
        return found, check.status

    together = jax.jit(lanes.vmap(both))(shares)
    plain = jax.jit(jax.vmap(lambda s: mbd.forward_dynamics(scaled(mech, s), q, v, backend="xla")))
    assert not np.any(together[1])
    for found, reference in zip(together[0], plain(shares), strict=True):
        np.testing.assert_allclose(found, reference, rtol=1e-9, atol=1e-12)
    for k, share in enumerate(shares):
        alone = mbd.forward_dynamics(scaled(mech, share), q, v)
        np.testing.assert_allclose(together[0][0][k], alone[0], rtol=1e-10)


def test_derivatives_without_inertia(four_bar):
    """Forward and reverse agree, and with differences across the limit of no inertia."""
    mech, q, v = four_bar

    def first(share):
        return mbd.forward_dynamics(scaled(mech, share), q, v)[0][0]

    forward = jax.jvp(first, (0.0,), (1.0,))[1]
    reverse = jax.jit(jax.grad(first))(0.0)
    batch = jax.jit(lanes.vmap(jax.grad(first)))(jnp.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(reverse, forward, rtol=1e-10)
    np.testing.assert_allclose(batch[jnp.array([0, 2])], forward, rtol=1e-10)
    step = 1e-5
    values = [float(first(step * k)) for k in range(3)]
    slope = (-3 * values[0] + 4 * values[1] - values[2]) / (2 * step)
    np.testing.assert_allclose(forward, slope, rtol=1e-6)


def test_a_run_without_inertia_keeps_its_energy(four_bar):
    mech, q, v = four_bar
    link = scaled(mech, 0.0)
    run = mbd.simulate(link, q, v, t1=0.2, dt=1e-3)
    energy = [
        float(mbd.kinetic_energy(link, q, v) + mbd.potential_energy(link, q))
        for q, v in zip(run.q[::50], run.v[::50], strict=True)
    ]
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)


def test_numbers_do_not_change_the_tree(four_bar):
    mech, _, _ = four_bar
    trees = []

    @jax.jit
    def traced(mass):
        made = mech.replace(bodies={"coupler": mbd.Body(mass, mech.bodies["coupler"].com)})
        trees.append(jax.tree.structure(made))
        return mass

    traced(1.0)
    point = mech.replace(bodies={"coupler": mbd.Body(0.0, mech.bodies["coupler"].com)})
    assert trees == [jax.tree.structure(mech)] == [jax.tree.structure(point)]


def test_a_motion_without_inertia_and_constraint_is_named():
    """A massless link with a ball at one end and a universal joint at the other may spin freely."""
    bodies = {"link": mbd.Body(0.0, (0.25, 0, 0)), "slider": mbd.Body(1.0, (0.5, 0, 0))}
    joints = {
        "A": mbd.Spherical("ground", "link", (0, 0, 0)),
        "B": mbd.Spherical("link", "slider", (0.5, 0, 0)),
        "S": mbd.Prismatic("ground", "slider", (0.5, 0, 0), (1, 1, 0)),
    }
    mech = mbd.Mechanism(bodies, joints, cut="B")
    q, v = mbd.neutral(mech), np.zeros(mbd.topology(mech).nv)
    with pytest.raises(ValueError, match=r"motion along \['A\[0\]'\] has neither inertia"):
        mbd.forward_dynamics(mech, q, v)
    assert mbd.check_state(mech, q, v).status == mbd.Status.SINGULAR
    found, _ = jax.jit(lanes.vmap(lambda q: mbd.forward_dynamics(mech, q, v)))(q[None])
    assert np.isnan(found).all()


def test_a_spin_that_only_rounding_constrains_is_indeterminate():
    """A massless link turns about a skew axis; a rod holds a pendulum from a point on the axis."""
    axis = np.array([0.3, 0.5, 0.81])
    end = 0.7 * axis / np.linalg.norm(axis)
    bodies = {
        "link": mbd.Body(0.0, end),
        "pendulum": mbd.Body(2.0, (1.5, 0, 0), np.diag([0.1, 0.2, 0.3])),
    }
    joints = {
        "spin": mbd.Revolute("ground", "link", (0, 0, 0), axis),
        "hinge": mbd.Revolute("ground", "pendulum", (1, 0, 0), (0, 1, 0.2)),
        "rod": mbd.Rod("link", "pendulum", end, (1.6, 0.1, 0)),
    }
    mech = mbd.Mechanism(bodies, joints)
    q = mbd.neutral(mech)
    assert mbd.check_state(mech, q).status == mbd.Status.SINGULAR
    with pytest.raises(ValueError, match="neither inertia nor constraint"):
        mbd.forward_dynamics(mech, q, np.zeros(2))


@pytest.mark.parametrize("name", ["coupler", "rocker"])
def test_a_negative_mass_is_never_ok(four_bar, name):
    """It is refused where a mechanism is built, so only a traced one meets the equations."""
    mech, q, v = four_bar

    def status(share):
        body = mech.bodies[name]
        new = (share * body.mass, share * body.inertia)
        link = eqx.tree_at(lambda m: (m.bodies[name].mass, m.bodies[name].inertia), mech, new)
        return mbd.check_state(link, q, v).status

    found = jax.jit(lanes.vmap(status))(jnp.array([-1e-3, -0.3, -3.0, 1.0]))
    assert found.tolist() == [mbd.Status.INACCURATE] * 3 + [mbd.Status.OK]
