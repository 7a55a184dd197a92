"""Bushings and soft joints: exactly conservative, dissipating by Rayleigh's function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_body, random_joint

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.kinematics import motion_state
from jaxmbd.spatial.rotations import axis_rotation, rotation_vector

POINTS = np.array([[0.2, 0.4, -0.1], [0.3, 0.3, 0.2]])
JOINTS = (
    "revolute",
    "prismatic",
    "helical",
    "universal",
    "planar",
    "fixed",
    "rod",
)


def _matrix(rng, size):
    """A symmetric positive definite 6×6 matrix."""
    x = rng.normal(size=(6, 6))
    return size * (x @ x.T + np.eye(6))


def _elements(rng):
    """Both measures, six numbers and matrices, halves together and apart; most joint types."""
    turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    turned *= np.linalg.det(turned)
    six, damping = rng.uniform(5, 20, 6), rng.uniform(1, 3, 6)
    found = {
        "finite": mbd.Bushing("p", "q", POINTS[0], six, damping, turned),
        "small": mbd.Bushing("p", "q", POINTS[0], six, damping, turned, "small"),
        "matrix": mbd.Bushing(
            "p", "q", POINTS[0], _matrix(rng, 4.0), _matrix(rng, 0.3), at_b=POINTS[1]
        ),
        "small matrix": mbd.Bushing(
            "q", "p", "corner", _matrix(rng, 4.0), _matrix(rng, 0.3), turned[:2], "small"
        ),
        "laws": mbd.Bushing(
            "p",
            "q",
            "corner",
            six,
            damping,
            turned,
            laws={"x": mbd.SignedSquare(40.0), "ry": lambda x, rate: 9.0 * x**3 + 2.0 * rate},
        ),
    }
    for kind in JOINTS:
        joint = random_joint(rng, kind, "p", "q", POINTS[1])
        found[kind] = mbd.SoftJoint(joint, (7.0, 11.0), (0.4, 0.9))
    return found


@pytest.fixture(scope="module")
def pair():
    """Two free bodies far from their drawn poses, in motion; another direction of motion."""
    rng = np.random.default_rng(5)
    mech = mbd.Mechanism(
        bodies={"p": random_body(rng, POINTS[0] - 0.5), "q": random_body(rng, POINTS[1] + 0.4)},
        joints={"p": mbd.Free("ground", "p"), "q": mbd.Free("ground", "q")},
        forces=_elements(rng),
        points={"corner": (0.1, 0.0, 0.3)},
    )
    q = mbd.step_coordinates(mech, mbd.neutral(mech), 0.4 * rng.normal(size=12))
    return mech, jnp.asarray(q), jnp.asarray(rng.normal(size=12)), jnp.asarray(rng.normal(size=12))


NAMES = list(_elements(np.random.default_rng(0)))


def _all(mech, q, v, w):
    """Of all elements by name: loads' powers, derivatives of energies and Rayleigh's functions."""
    moving, along = motion_state(mech, q, v), motion_state(mech, q, w)
    elements = {name: mech.forces[name] for name in NAMES}

    def powers(loads, at):
        return {
            name: sum(
                x.force @ at.velocity_at(x.body, x.point) + x.moment @ at.angular_velocity(x.body)
                for x in each
            )
            for name, each in loads.items()
        }

    def potentials(x):
        m = motion_state(mech, x)
        return {n: (e.energy(m), e.deformation(m)[0]) for n, e in elements.items()}

    def rayleigh(u):
        m = motion_state(mech, q, u)
        return {n: e.dissipation(m) for n, e in elements.items()}

    def derivative(u):
        return jax.jvp(potentials, (q,), (mbd.coordinate_rates(mech, q, u),))[1]

    loads = {n: e.loads(moving) for n, e in elements.items()}
    steepness, passing = derivative(w), derivative(v)
    lost, lost_slope = jax.jvp(rayleigh, (v,), (w,))
    return {
        "moving": powers(loads, along),
        "power": powers(loads, moving),
        "slope": {n: x[0] for n, x in steepness.items()},
        "energy rate": {n: x[0] for n, x in passing.items()},
        "deformation slope": {n: x[1] for n, x in passing.items()},
        "rate": {n: e.deformation(moving)[1] for n, e in elements.items()},
        "rayleigh": lost,
        "rayleigh slope": lost_slope,
        "force": {n: sum(x.force for x in each) for n, each in loads.items()},
        "moment": {
            n: sum(x.moment + jnp.cross(x.point, x.force) for x in each)
            for n, each in loads.items()
        },
    }


@pytest.fixture(scope="module")
def found(pair):
    return lanes.jit(_all)(*jax.tree_util.tree_map(jnp.asarray, pair))


@pytest.mark.parametrize("name", NAMES)
def test_identities(found, name):
    x = {key: values[name] for key, values in found.items()}
    size = sum(abs(float(x[key])) for key in ("slope", "moving", "power"))
    assert size > 0.1 and float(x["rayleigh"]) > 0.01, "the element must do something"

    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * size)

    close(x["moving"], -x["slope"] - x["rayleigh slope"])  # −∂E/∂q − ∂R/∂q̇, along w
    close(x["power"], -x["energy rate"] - 2.0 * x["rayleigh"])
    close(x["rate"], x["deformation slope"])
    close(x["force"], 0.0)  # an internal force
    close(x["moment"], 0.0)


def test_small_measure_is_equation_12(pair):
    mech, q, v, _ = pair
    m = motion_state(mech, q, v)
    element = mech.forces["small"]
    axes = np.asarray(element.axes())
    s = (m.rotation("p") @ axes).T @ (m.rotation("q") @ axes)
    j1, j2, j3 = np.eye(3)
    rho = [j3 @ s @ j2, j1 @ s @ j3, j2 @ s @ j1]
    delta, _ = element.deformation(m)
    np.testing.assert_allclose(delta[:3], rho, rtol=1e-14)
    gap = m.point("q", POINTS[0])[0] - m.point("p", POINTS[0])[0]
    np.testing.assert_allclose(delta[3:], (m.rotation("p") @ axes).T @ gap, rtol=1e-12)


@pytest.mark.parametrize("measure", ["finite", "small"])
def test_a_turn_about_an_axis(measure):
    """Closed forms: the moment is kθ by the finite measure, k sin θ cos θ by the small one."""
    mech = mbd.Mechanism(
        bodies={"b": mbd.Body(1.0)},
        joints={"hinge": mbd.Revolute("ground", "b", (0, 0, 0), (0, 0, 1))},
        forces={"bush": mbd.Bushing("ground", "b", (0, 0, 0), [0, 0, 3, 0, 0, 0], measure=measure)},
    )
    angles = np.array([0.0, 1e-9, 1e-3, 1.0, 3.0, -3.0])
    moments = lanes.vmap(lambda q: -mbd.bias(mech, q, jnp.zeros(1)))(angles[:, None])[:, 0]
    expected = angles if measure == "finite" else np.sin(angles) * np.cos(angles)
    np.testing.assert_allclose(moments, -3.0 * expected, rtol=1e-12, atol=1e-15)


def test_measures_agree_to_first_order(pair):
    mech, _, v, _ = pair
    for size, bound in ((1e-3, 1e-6), (1e-5, 1e-10)):
        q = mbd.step_coordinates(mech, mbd.neutral(mech), size * v)
        m = motion_state(mech, q)
        a, b = (mech.forces[n].deformation(m)[0] for n in ("finite", "small"))
        assert 0.0 < np.abs(a - b).max() < 5 * bound


def test_derivatives_are_finite_as_drawn(pair):
    mech, _, v, w = pair
    few = {"finite": mech.forces["finite"]}
    mech = mbd.Mechanism(mech.bodies, mech.joints, few, points=mech.points)
    q, numbers = jnp.asarray(mbd.neutral(mech)), jax.tree_util.tree_map(jnp.asarray, mech)

    def second(mech):
        along = mbd.coordinate_rates(mech, q, w)
        slope = jax.grad(lambda x: mbd.potential_energy(mech, x))
        return jax.jvp(slope, (q,), (along,))[1], jax.grad(lambda m: mbd.bias(m, q, v) @ w)(mech)

    assert all(
        np.all(np.isfinite(x)) for x in jax.tree_util.tree_leaves(lanes.jit(second)(numbers))
    )


def test_rotation_vector():
    rng = np.random.default_rng(1)
    for angle in (0.0, 1e-12, 1e-5, 1e-4, 1.1e-4, 0.3, 3.0, 3.14159):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        r = axis_rotation(jnp.asarray(axis), jnp.asarray(angle))
        np.testing.assert_allclose(rotation_vector(r), angle * axis, rtol=1e-11, atol=3e-16)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"measure": "big"}, r"measure='big'; give one of \['finite', 'small'\]"),
        ({"damping": np.triu(np.ones((6, 6)))}, "'bush': damping is not symmetric"),
        ({"frame": 2.0 * np.eye(3)}, "frame is no rotation"),
        ({"frame": np.diag([1.0, 1.0, -1.0])}, "frame is no rotation"),
        ({"frame": [[1, 0, 0], [2, 0, 0]]}, "span no plane"),
        (
            {"laws": {"r_x": mbd.SignedSquare(1.0)}},
            "laws: there is no direction 'r_x'; did you mean 'rx'",
        ),
    ],
)
def test_bad_numbers(options, text):
    with pytest.raises(ValueError, match=text):
        mbd.Mechanism(
            bodies={"b": mbd.Body(1.0)},
            joints={"free": mbd.Free("ground", "b")},
            forces={"bush": mbd.Bushing("ground", "b", (0, 0, 0), np.ones(6), **options)},
        )


def test_bad_input():
    ends = ("ground", "b", (0, 0, 0))
    hinge = mbd.Revolute("ground", "nobody", (0, 0, 0), (0, 0, 0))
    with pytest.raises(ValueError) as error:
        mbd.Mechanism(
            bodies={"b": mbd.Body(1.0)},
            joints={"free": mbd.Free("ground", "b")},
            forces={
                "bush": mbd.Bushing(*ends, np.ones(5), np.full(6, np.inf)),
                "soft": mbd.SoftJoint(hinge, [1.0, 2.0, 3.0]),
            },
        )
    text = str(error.value)
    assert "stiffness is of shape (5,); give 6 numbers or 6×6 numbers" in text
    assert "damping is [inf" in text
    assert "names the body 'nobody'" in text and "axis is zero" in text
    assert "'soft': stiffness is of shape (3,); give one number or 2 numbers" in text
