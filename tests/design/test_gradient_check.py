"""Derivatives against differences: what is right, which one is wrong, and where there is none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import GradientCheck, hessian_vector
from jaxmbd.design import gradient_check as d
from jaxmbd.design.gradient_check import MODES


@jax.custom_jvp
def wrong_both(x):
    return x * x


wrong_both.defjvps(lambda dx, y, x: 3.0 * x * dx)


@jax.custom_vjp
def only_reverse(x):
    return x * x


only_reverse.defvjp(lambda x: (x * x, x), lambda x, g: (3.0 * x * g,))


@jax.custom_jvp
def reverse_differs(x):
    return x * x


@reverse_differs.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents

    def forward(dx):
        return 2.0 * x * dx

    solve = jax.custom_derivatives.linear_call
    return x * x, solve(lambda _, v: forward(v), lambda _, v: 5.0 * x * v, (), dx)


@pytest.mark.parametrize(
    ("fn", "x", "verdict"),
    [
        (lambda x: jnp.sin(x) * x**3, 1.3, "agree"),
        (wrong_both, 2.0, "both modes are wrong"),
        (only_reverse, 2.0, "reverse is wrong"),
        (reverse_differs, 2.0, "reverse is wrong"),
        (lambda x: jax.lax.stop_gradient(x) ** 2, 2.0, "the tape is broken: both modes are zero"),
        (lambda x: jnp.where(x < 1.0, x, x + 1e-3), 1.0, "the function jumps here"),
        (lambda x: jnp.sqrt(x), 0.0, "flagged: the derivative is not finite"),
        (lambda x: jnp.where(x > 0.5, jnp.nan, x**2), 0.1, "agree"),
    ],
)
def test_verdicts(fn, x, verdict):
    assert mbd.check_gradient(fn, x).verdicts == (verdict,)


def test_a_kink_is_told_with_both_slopes():
    found = mbd.check_gradient(lambda x: jnp.abs(x[0]) + x[1] ** 2, jnp.array([0.0, 2.0]))
    assert found.verdicts[0].startswith("not smooth") and found.verdicts[1] == "agree"
    assert float(found.differences.left[0]) == pytest.approx(-1.0)
    assert float(found.differences.right[0]) == pytest.approx(1.0)
    assert not found.ok and not found.wrong and "1 of 2 agree" in str(found)
    assert isinstance(found, GradientCheck) and found.names == ("x[0]", "x[1]")
    assert (found.forward[1], found.reverse[1]) == (4.0, 4.0)


def test_errors_of_differences_are_bounds():
    """Of functions with two scales as well, and with noise."""
    rng = np.random.default_rng(3)
    for width in (1.0, 1e-3, 1e-6):
        h = d.steps(1.0)

        def f(x, width=width):
            return np.sin(1.0 + x) + width * np.tanh(x / width)

        noise = d.noise(f(d.NOISE_OFFSETS), 2.0**-52)
        found = d.differences(f(0.0), f(h), f(-h), h, noise)
        assert abs(found.value - (np.cos(1.0) + 1.0)) < 10.0 * found.error < 1e-4
    shaken = 1e-9 * rng.normal(size=9)
    assert 2e-10 < d.noise(1.0 + d.NOISE_OFFSETS + shaken, 2.0**-52) < 5e-9


def test_numbers_of_a_mechanism_by_path():
    found = mbd.check_gradient(
        lambda m: mbd.constraint_residual(m, jnp.array([0.4, 0.1, 0.2])),
        mbd.zoo.four_bar(),
        vary=["points/B", "points/D/x"],
    )
    assert found.names == ("points/B/x", "points/B/y", "points/B/z", "points/D/x") and found.ok


@pytest.mark.slow
def test_hessian_vector_products_agree_in_all_modes_and_with_differences():
    def height(x):
        mech = mbd.zoo.four_bar(x[0], 0.8, x[1], 0.7)
        q = mbd.assemble(mech, {"A": x[2]}, throw=False).q
        return mbd.point_position(mech, q, "rocker", "C_rocker")[2]

    x, v = jnp.array([0.3, 0.6, 0.4]), jnp.array([1.0, -0.5, 0.7])
    gradient = jax.jit(jax.grad(height))
    h = 1e-4
    wanted = (gradient(x + h * v) - gradient(x - h * v)) / (2.0 * h)
    found = [hessian_vector(height, x, v, mode=mode) for mode in MODES]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-6)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9)
    with pytest.raises(ValueError, match="forward-over-reverse"):
        hessian_vector(height, x, v, mode="backward")


def test_a_spring_of_no_length_has_its_stiffness_or_no_derivative():
    def pull(x, free):
        mech = mbd.Mechanism(
            bodies={"mass": mbd.Body(1.0, inertia=np.ones(3))},
            joints={"table": mbd.Planar("ground", "mass", at=np.zeros(3), normal=(0.0, 0.0, 1.0))},
            forces={
                "spring": mbd.SpringDamper(
                    "ground", "mass", np.zeros(3), np.zeros(3), stiffness=50.0, free_length=free
                )
            },
            gravity=np.zeros(3),
        )
        return mbd.forward_dynamics(mech, jnp.concatenate([jnp.zeros(1), x]), jnp.zeros(3))[0]

    rate = jax.jacfwd(pull)(jnp.zeros(2), 0.0)
    singular = np.linalg.svd(rate[1:], compute_uv=False)
    np.testing.assert_allclose(singular, 50.0)
    np.testing.assert_allclose(jax.jacrev(pull)(jnp.zeros(2), 0.0), rate)
    assert np.all(np.isnan(jax.jacfwd(pull)(jnp.zeros(2), 0.1)[1:]))
    assert np.any(np.isnan(jax.jvp(lambda f: pull(jnp.zeros(2), f), (0.0,), (1.0,))[1]))
