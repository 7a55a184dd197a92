"""Linear modes and state space: closed forms, other coordinates, differences, and bad input."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

MASS, RATE, DAMPING = 2.0, 800.0, 5.0


def oscillator(stiffness=RATE):
    """A mass on a horizontal guide, with a spring and a damper."""
    return mbd.Mechanism(
        bodies={"mass": mbd.Body(mass=MASS)},
        joints={"guide": mbd.Prismatic("ground", "mass", at=(0, 0, 0), axis=(1, 0, 0))},
        forces={"spring": mbd.TorsionSpring("guide", stiffness=stiffness, damping=DAMPING)},
    )


def four_bar(stiffness=4.0, cut=None):
    """A four-bar that hangs on two torsion springs."""
    m = mbd.zoo.four_bar()
    ends = [m.structure.joints[k].name for k in (0, -1)]
    springs = {
        "a": mbd.TorsionSpring(ends[0], stiffness=stiffness, damping=0.02, free_angle=0.2),
        "b": mbd.TorsionSpring(ends[1], stiffness=3.0, free_angle=-0.1),
    }
    parts = {} if cut is None else {"cut": (cut,)}
    return m.replace(forces=springs, gravity=(0.0, -9.81, 0.0), **parts)


def trammel(stiffness=800.0):
    """Two masses on guides along x and z, joined by a rod; a spring on each."""
    points = {"x": (0.4, 0.0, 0.0), "z": (0.0, 0.0, 0.3)}
    return mbd.Mechanism(
        bodies={"a": mbd.Body(2.0, com="x"), "b": mbd.Body(1.0, com="z")},
        joints={
            "across": mbd.Prismatic("ground", "a", at="x", axis=(1, 0, 0)),
            "up": mbd.Prismatic("ground", "b", at="z", axis=(0, 0, 1)),
            "rod": mbd.Rod("a", "b", at_a="x", at_b="z"),
        },
        forces={
            "a": mbd.TorsionSpring("across", stiffness=stiffness, damping=3.0),
            "b": mbd.TorsionSpring("up", stiffness=300.0),
        },
        points=points,
    )


def sorted_values(state):
    values = np.asarray(state.eigenvalues())
    return values[np.lexsort((values.imag, np.abs(values).round(6)))]


def test_an_oscillator_in_closed_form():
    state = mbd.linearize(oscillator(), [0.0], inputs="guide", outputs=lambda t, q, v, a: (q, a))
    np.testing.assert_allclose(state.A, [[0, 1], [-RATE / MASS, -DAMPING / MASS]], rtol=1e-13)
    np.testing.assert_allclose(state.B, [[0], [1 / MASS]], rtol=1e-13)
    np.testing.assert_allclose(state.C, [[1, 0], [-RATE / MASS, -DAMPING / MASS]], rtol=1e-13)
    np.testing.assert_allclose(state.D, [[0], [1 / MASS]], rtol=1e-13)
    assert (state.independent, state.inputs) == (("guide",), ("guide",))
    natural = np.sqrt(RATE / MASS)
    np.testing.assert_allclose(state.frequencies(), natural / (2 * np.pi), rtol=1e-12)
    ratio = DAMPING / (2 * np.sqrt(RATE * MASS))
    np.testing.assert_allclose(state.damping_ratios(), ratio, rtol=1e-12)
    w = jnp.array([3.0, 20.0, 90.0])
    compliance = 1 / (RATE - MASS * w**2 + 1j * DAMPING * w)
    np.testing.assert_allclose(state.response(w)[:, 0, 0], compliance, rtol=1e-12)
    np.testing.assert_allclose(state.response(w)[:, 1, 0], -(w**2) * compliance, rtol=1e-11)


def test_a_double_pendulum_in_closed_form():
    """``ω² = (2 ∓ √2) g/l``, the lower bob swinging ``±√2`` times as far as the upper one."""
    m = mbd.zoo.double_pendulum()
    modes = mbd.linearize(m, mbd.neutral(m)).modes()
    exact = np.sqrt(9.81 * (2 + np.sqrt(2) * np.array([-1, -1, 1, 1])))
    np.testing.assert_allclose(2 * np.pi * modes.frequencies, exact, rtol=1e-12)
    np.testing.assert_allclose(modes.damping_ratios, 0.0, rtol=0, atol=1e-12)
    upper, relative = np.asarray(modes.shapes)
    ratio = np.sqrt(2) * np.array([1, 1, -1, -1])
    np.testing.assert_allclose((upper + relative) / upper, ratio, rtol=0, atol=1e-12)


def test_an_upright_pendulum_is_unstable():
    state = mbd.linearize(mbd.zoo.simple_pendulum(), [-np.pi / 2])
    values = np.sort(np.asarray(state.eigenvalues()).real)
    np.testing.assert_allclose(values, np.sqrt(9.81) * np.array([-1, 1]), rtol=1e-12)


@pytest.mark.slow
def test_a_free_body_on_a_cut_hinge_is_the_open_chain():
    """Seven coordinates and five rows: the same two modes."""
    chain = mbd.zoo.double_pendulum(lengths=(1.0, 0.7), masses=(1.0, 2.0))
    bob = mbd.Body(2.0, com=(0.0, -1.7, 0.0), inertia=(1e-3, 2e-3, 3e-3))
    chain = chain.replace(bodies={"bob_2": bob})
    loop = chain.replace(joints={"free": mbd.Free("ground", "bob_2")}, cut=("hinge_2",))
    assert mbd.topology(loop).nc == 5
    open_chain = mbd.linearize(chain, mbd.neutral(chain))
    # The same independent coordinates, absolute angles and their speeds.
    closed = mbd.linearize(loop, mbd.neutral(loop), independent=("hinge_1", "free[2]"))
    np.testing.assert_allclose(closed.frequencies(), open_chain.frequencies(), rtol=1e-9)
    change = np.kron(np.eye(2), [[1.0, 0.0], [1.0, 1.0]])
    same = change @ open_chain.A @ np.linalg.inv(change)
    np.testing.assert_allclose(closed.A, same, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_eigenvalues_do_not_depend_on_the_cut_or_on_the_choice():
    one = four_bar()
    joints = [e.name for e in one.structure.joints]
    other = four_bar(cut=joints[1])
    assert mbd.topology(one).cut != mbd.topology(other).cut
    states = [mbd.linearize(m, mbd.equilibrium(m).q) for m in (one, other)]
    chosen = states[0].independent[0]
    named = next(name for name in mbd.topology(one).tree if name != chosen)
    states.append(mbd.linearize(one, mbd.equilibrium(one).q, independent=(named,)))
    for s in states:
        np.testing.assert_allclose(sorted_values(s), sorted_values(states[0]), rtol=1e-9)


def test_about_a_motion_it_is_the_derivative_of_the_vector_field():
    """Against differences between assembled neighbours, and against the flow of a simulation."""
    m = mbd.zoo.slider_crank().replace(gravity=(0.0, -9.81, 0.0))
    joint = mbd.topology(m).tree[0]
    i = mbd.topology(m).layout[joint].v.start

    def state(x):
        q = mbd.assemble(m, known={joint: 0.6 + x[0]}).q
        return q, mbd.assemble_velocity(m, q, {joint: 3.0 + x[1]})

    def field(x):
        q, v = state(x)
        vdot, _ = mbd.forward_dynamics(m, q, v)
        return np.array([v[i], vdot[i]])

    linear = mbd.linearize(m, *state(np.zeros(2)), independent=(joint,))
    h = 1e-5
    slope = np.stack([(field(h * e) - field(-h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    assert abs(slope[1]).min() > 1.0
    np.testing.assert_allclose(linear.A, slope, rtol=1e-7, atol=1e-7)

    def flow(x):
        run = mbd.simulate(m, *state(x), t1=4e-3, dt=1e-3)
        return np.stack([run.q[:, i], run.v[:, i]], axis=1)

    moved = np.stack([(flow(1e-4 * e) - flow(-1e-4 * e)) / 2e-4 for e in np.eye(2)], axis=2)
    weights = np.array([-25, 48, -36, 16, -3]) / 12e-3
    np.testing.assert_allclose(np.tensordot(weights, moved, 1), linear.A, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_frequency_has_the_slope_of_its_closed_form():
    """``ω² = (k + m g l cos q)/(m l²)`` at the equilibrium ``k q = −m g l sin q``, which moves."""

    def natural(stiffness):
        m = mbd.zoo.simple_pendulum()  # hangs at q = π/2
        spring = mbd.TorsionSpring("hinge", stiffness=stiffness)
        m = m.replace(forces={"spring": spring})
        q = mbd.equilibrium(m).q
        return 2 * jnp.pi * mbd.linearize(m, q).frequencies()[0], q[0]

    slope, q = jax.jit(jax.grad(natural, has_aux=True))(3.0)
    np.testing.assert_allclose(3.0 * q, 9.81 * np.cos(q), rtol=1e-12)
    square = 3.0 + 9.81 * np.sin(q)
    q_rate = -q / square
    exact = (1.0 + 9.81 * np.cos(q) * q_rate) / (2 * np.sqrt(square))
    np.testing.assert_allclose(slope, exact, rtol=1e-9)


@pytest.mark.slow
def test_derivatives_of_a_loop_are_those_of_differences():
    """The four-bar's frequency, at its equilibrium, which moves with the stiffness; a batch."""

    def frequency(stiffness):
        m = four_bar(stiffness)
        crank = m.structure.joints[0].name
        linear = mbd.linearize(m, mbd.equilibrium(m).q, inputs=crank, independent=(crank,))
        return linear.frequencies()[0], linear

    h = 1e-4
    slope, linear = jax.grad(frequency, has_aux=True)(4.0)
    differences = (frequency(4.0 + h)[0] - frequency(4.0 - h)[0]) / (2 * h)
    np.testing.assert_allclose(slope, differences, rtol=1e-7)
    assert slope > 0.01
    batch = jax.jit(jax.vmap(lambda k: frequency(k)[1].A))(jnp.array([4.0, 5.0]))
    np.testing.assert_allclose(batch[0], linear.A, atol=1e-10)
    np.testing.assert_allclose(batch[1], frequency(5.0)[1].A, atol=1e-10)


def test_eigenvalues_of_any_matrix_have_the_derivatives_of_differences():
    rng = np.random.default_rng(0)
    a, dot = rng.normal(size=(2, 5, 5))

    def values(s):
        empty = jnp.zeros((0, 0))
        return mbd.Linearization(a + s * dot, empty, empty, empty, empty, (), ()).eigenvalues()

    rates = jax.jit(partial(jax.jvp, values))((0.0,), (1.0,))[1]
    np.testing.assert_allclose(rates, (values(1e-6) - values(-1e-6)) / 2e-6, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_eigenvalues_do_not_depend_on_what_is_independent():
    """``ẋ = −(z/x) ż`` on the rod; the default is chosen from numbers, under `jax.grad` too."""
    m = trammel()
    q = mbd.equilibrium(m).q
    one, other = (mbd.linearize(m, q, independent=(name,)) for name in ("across", "up"))
    np.testing.assert_allclose(sorted_values(one), sorted_values(other), rtol=1e-10)
    x, z = 0.4 + q[0], 0.3 + q[1]
    np.testing.assert_allclose(one.motions[:, 0], [1.0, -x / z], rtol=1e-12)
    chosen = jax.jacfwd(lambda k: mbd.linearize(trammel(k), q).A)(800.0)
    assert np.isfinite(chosen).all() and abs(chosen[1, 0]) > 0.01


def test_bad_input_is_named():
    m = trammel()
    q = mbd.neutral(m)
    with pytest.raises(ValueError, match="inputs name 'nothing', which is no joint"):
        mbd.linearize(m, q, inputs="nothing")
    with pytest.raises(ValueError, match=r"independent=\['x'\].*speeds are"):
        mbd.linearize(m, q, independent=("x",))
    with pytest.raises(ValueError, match=r"do not determine all others.*freedom \(1\)"):
        mbd.linearize(m, q, independent=("across", "up"))
    with pytest.raises(ValueError, match="name them with independent="):
        jax.jit(lambda q: mbd.linearize(m, q).A)(q)
    with pytest.raises(ValueError, match="not finite"):
        mbd.linearize(m, q * np.nan, np.zeros(2), independent=("up",))
    both = jax.jit(lambda q: mbd.linearize(m, q, independent=("across", "up")).A)(q)
    assert np.isnan(both).all()
