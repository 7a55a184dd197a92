"""The signed distance to a dead centre: closed forms, both sides of it, and what has none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import Status, lanes


def four_bar_distance(x):
    """Pin to pin distance that coupler and rocker have to bridge; x: links and crank angle."""
    crank, _, _, ground, angle = x
    return jnp.hypot(ground - crank * jnp.sin(angle), crank * jnp.cos(angle))


def four_bar_margin(x):
    """In closed form: the triangle of coupler and rocker is stretched, or folded."""
    d = four_bar_distance(x)
    return jnp.minimum(x[1] + x[2] - d, d - jnp.abs(x[1] - x[2]))


def four_bar(x):
    return mbd.dead_centre(mbd.zoo.four_bar(*x[:4]), {"A": x[4]})


@pytest.fixture(scope="module")
def designs():
    rng = np.random.default_rng(4)
    links = rng.uniform(0.2, 1.0, (128, 4))
    return np.concatenate([links, rng.uniform(-3.0, 3.0, (128, 1))], axis=1)


def test_a_four_bar_in_closed_form(designs):
    """The redundant rows of a plane loop in space are no dead centre."""
    values = lanes.vmap(lambda x: four_bar(x).margin)(designs)
    wanted = jax.jit(jax.vmap(four_bar_margin))(designs)
    assert (values < -0.01).sum() > 20 and (values > 0.01).sum() > 20
    np.testing.assert_allclose(values, wanted, rtol=0.0, atol=1e-11)


@pytest.mark.slow
def test_the_gradient_of_a_four_bar_in_closed_form(designs):
    gradients = lanes.vmap(jax.grad(lambda x: four_bar(x).margin))(designs)
    wanted = jax.jit(jax.vmap(jax.grad(four_bar_margin)))(designs)
    np.testing.assert_allclose(gradients, wanted, rtol=0.0, atol=1e-10)


@pytest.mark.slow
def test_second_derivatives(designs):
    directions = np.random.default_rng(5).normal(size=designs.shape)

    def product(fn):
        return lambda x, dx: jax.jvp(jax.grad(fn), (x,), (dx,))[1]

    found = lanes.vmap(product(lambda x: four_bar(x).margin))(designs, directions)
    wanted = jax.jit(jax.vmap(product(four_bar_margin)))(designs, directions)
    size = np.abs(wanted).max(axis=1, keepdims=True)
    assert np.all(np.abs(found - wanted) < 1e-9 * (1.0 + size))


@pytest.mark.slow
def test_status_and_xla_agree(designs):
    some = designs[:6]
    fast = lanes.vmap(four_bar)(some)
    plain = [
        mbd.dead_centre(mbd.zoo.four_bar(*x[:4]), {"A": x[4]}, backend="xla") for x in some[:2]
    ]
    assert np.all(np.isin(fast.status, (Status.OK, Status.NOT_ASSEMBLED)))
    for k, one in enumerate(plain):
        np.testing.assert_allclose(one.margin, fast.margin[k], rtol=0.0, atol=1e-12)


LINE = mbd.zoo.rssr()
DRAWN = {name: np.asarray(x) for name, x in LINE.points.items()}
SPLIT = mbd.Mechanism(
    bodies=dict(LINE.bodies),
    joints={
        "crank": LINE.joint("crank"),
        "A": LINE.joint("A"),
        "B": mbd.Spherical("coupler", "rocker", at="B", at_b="B_rocker"),
        "rocker": LINE.joint("rocker"),
    },
    points={**DRAWN, "B_rocker": DRAWN["B"]},
)


def rssr(x):
    """The RSSR with coupler and rocker of the lengths x[0], x[1], the crank at x[2]."""
    coupler = DRAWN["B"] - DRAWN["A"]
    points = {
        **SPLIT.points,
        "B": DRAWN["A"] + x[0] * coupler / np.linalg.norm(coupler),
        "B_rocker": x[1] * DRAWN["B"] / np.linalg.norm(DRAWN["B"]),
    }
    return mbd.set_variables(SPLIT, {f"points/{k}": v for k, v in points.items()})


def rssr_margin(x):
    """The least and the largest distance of the crank's end from the rocker's circle."""
    tilted = jnp.array([0.0, np.cos(np.pi / 6), np.sin(np.pi / 6)])
    across = jnp.array([1.0, 0.0, 0.0])
    end = DRAWN["crank_pivot"] + 0.05 * (jnp.cos(x[2]) * across + jnp.sin(x[2]) * tilted)
    reach = jnp.hypot(end[0], end[1])
    far, near = jnp.hypot(reach + x[1], end[2]), jnp.hypot(reach - x[1], end[2])
    return jnp.minimum(far - x[0], x[0] - near)


@pytest.mark.slow
def test_a_space_linkage_with_an_idle_spin_through_its_dead_centre():
    """Couplers from too long to short enough, dense about the length that just fits."""
    rocker, angle = 0.1, 0.8
    most = 0.15 + float(rssr_margin(jnp.array([0.15, rocker, angle])))
    inside = np.array([-3e-2, -1e-3, -1e-6, -1e-9, 0.0, 1e-9, 1e-6, 1e-3, 3e-2])
    x = np.stack([most - inside, *(np.full(9, v) for v in (rocker, angle))], axis=1)

    def margin(x):
        return mbd.closure_margin(rssr(x), {"crank": x[2]})

    values, gradients = lanes.vmap(jax.value_and_grad(margin))(x)
    np.testing.assert_allclose(values, inside, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(gradients, jax.vmap(jax.grad(rssr_margin))(x), atol=1e-9)


@pytest.mark.slow
def test_the_margin_is_positive_where_a_wheel_can_be_held():
    mech = mbd.zoo.double_wishbone()
    centre = mbd.PointCoordinate("spindle", "wheel_centre", "z")
    height = mech.points["wheel_centre"][2]

    def both(dz):
        known = {centre: height + dz}
        return mbd.dead_centre(mech, known), mbd.assemble(mech, known, throw=False).status

    travels = np.linspace(-0.1, 0.7, 17)
    found, assembled = lanes.vmap(both)(travels)
    np.testing.assert_array_equal(found.margin > 0.0, assembled == Status.OK)
    assert np.all(found.status == Status.OK) and (found.margin < 0.0).sum() > 3
    beyond = found.margin[-2:]
    np.testing.assert_allclose(np.diff(beyond) / np.diff(travels[-2:]), -0.8, rtol=0, atol=0.2)


@pytest.mark.slow
def test_driven_coordinates_are_kept_as_held_ones_are():
    plain = mbd.zoo.four_bar(0.65, 0.3, 0.4, 0.7)
    driven = mbd.Mechanism(
        bodies=dict(plain.bodies),
        joints={name: plain.joint(name) for name in plain.joints},
        points=dict(plain.points),
        drives={"motor": mbd.Drive("A", lambda t, p: p * t, 2.0)},
    )
    held = mbd.closure_margin(plain, {"A": 1.0})
    np.testing.assert_allclose(mbd.closure_margin(driven, t=0.5), held, rtol=0.0, atol=1e-13)


def test_what_cannot_open_has_a_bound_and_nan_stays_nan():
    pendulum = mbd.zoo.simple_pendulum()
    found = mbd.dead_centre(pendulum)
    assert int(found.status) == Status.DIVERGED and float(found.margin) > 0.0
    broken = lanes.vmap(four_bar)(np.array([[0.3, np.nan, 0.6, 0.7, 0.3]]))
    assert broken.status[0] == Status.NON_FINITE and np.isnan(broken.margin[0])


@pytest.mark.slow
def test_a_sample_that_is_nan_does_not_spoil_the_gradient_of_shared_numbers(designs):
    links = designs[:8].copy()
    links[3, 1] = np.nan

    def total(ground):
        return jnp.nansum(
            lanes.vmap(lambda x: four_bar(x.at[3].set(ground)).margin)(jnp.asarray(links))
        )

    assert np.isfinite(jax.grad(total)(0.7))
