"""Samples as inputs, drives, roads and laws of runs, against closed forms and other ways to run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.observe import CoordinateRate, Motion

X = (1.0, 0.0, 0.0)
T = np.linspace(0.0, 1.0, 11)
Y = np.random.default_rng(5).normal(size=11)


def slider(forces=(), **parts):
    """A mass of 2 kg on a line, with a spring of 50 N/m and a damper of 1 N s/m."""
    spring = mbd.SpringDamper("ground", "box", at_a=(-1, 0, 0), at_b=(0, 0, 0), stiffness=50.0,
                              damping=1.0, free_length=1.0)  # fmt: skip
    return mbd.Mechanism(
        bodies={"box": mbd.Body(2.0, (0, 0, 0), (1.0, 1.0, 1.0))},
        joints={"slide": mbd.Prismatic("ground", "box", at=(0, 0, 0), axis=X)},
        forces={"spring": spring, **dict(forces)},
        gravity=(0, 0, 0),
        **parts,
    )


def end(mech, inputs=None, steps=1000, **options):
    run = mbd.simulate(mech, [0.1], [0.0], steps=steps, dt=1.0 / steps, save_every=steps,
                       inputs=inputs, **options)  # fmt: skip
    return jnp.concatenate([run.q[-1], run.v[-1]])


@pytest.mark.parametrize("kind", ["hold", "linear", "cubic"])
def test_a_mass_under_a_sampled_force_is_scipys(kind):
    """Steps of a hundredth of the spacing, so that no corner is inside one."""
    of = {
        "hold": lambda t: Y[np.searchsorted(T, t, side="right") - 1],
        "linear": lambda t: np.interp(t, T, Y),
        "cubic": CubicSpline(T, Y),
    }[kind]
    state = np.array([0.1, 0.0])
    for start, stop in zip(T, T[1:], strict=False):
        inner = lambda t: of(np.clip(t, start, stop - 1e-12))  # noqa: B023, E731
        rates = lambda t, s: [s[1], (inner(t) - 50.0 * s[0] - s[1]) / 2.0]  # noqa: B023, E731
        found = solve_ivp(rates, (start, stop), state, method="DOP853", rtol=1e-11, atol=1e-13)
        state = found.y[:, -1]
    error = np.abs(end(slider(), {"slide": mbd.Sampled(T, Y, kind)}) - state).max()
    # RK4 reads a held force at the corner itself, where the next value has begun.
    assert error < {"hold": 5e-4, "linear": 1e-8, "cubic": 1e-8}[kind]


def test_inputs_laws_and_functions_are_one():
    kind = "linear"
    samples = mbd.Sampled(T, Y, kind)
    expected = end(slider(), lambda t: {"slide": samples(t)})
    pushed = slider({"push": mbd.JointTorque("slide", law=samples)})
    along = slider(
        {"push": mbd.PointForce("box", (0, 0, 0), law=mbd.Sampled(T, Y[:, None] * X, kind))}
    )
    for found in (end(slider(), {"slide": samples}), end(pushed), end(along)):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    acc = mbd.linearize(slider(), [0.0], t=0.33, inputs={"slide": samples})
    np.testing.assert_allclose(acc.B, [[0.0], [0.5]], atol=1e-14)
    still = mbd.equilibrium(slider(), t=0.33, inputs={"slide": samples})
    np.testing.assert_allclose(still.q, samples(0.33) / 50.0, rtol=1e-9)


@pytest.mark.slow
def test_values_and_times_change_without_compiling_and_kernels_agree():
    traced, kind = [], "cubic"

    def ends(t, y, backend):
        traced.append(backend)
        return end(slider(), {"slide": mbd.Sampled(t, y, kind)}, steps=50, backend=backend)

    def gradient(vmap, backend):
        total = lambda t, y: jnp.sum(vmap(lambda y: ends(t, y, backend))(y) ** 2)  # noqa: E731
        return jax.jit(jax.value_and_grad(total, (0, 1)))

    y = np.stack([Y, 2.0 * Y[::-1], np.roll(Y, 3)])
    kernel, plain = gradient(lambda f: lanes.vmap(f), "auto"), gradient(jax.vmap, "xla")
    for got, want in zip(*(jax.tree.leaves(f(T, y)) for f in (kernel, plain)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    count = len(traced)
    moved = T + 0.02 * np.sin(9.0 * T) * T * (1.0 - T)
    value, (by_t, by_y) = kernel(moved, 1.1 * y)
    assert len(traced) == count
    step = 1e-5
    for way, slope in (((1, 0), by_t[4]), ((0, 1), by_y[1, 6])):
        a, b = (
            float(
                kernel(
                    moved + s * way[0] * np.eye(11)[4],
                    1.1 * y + s * way[1] * np.eye(33)[17].reshape(3, 11),
                )[0]
            )
            for s in (step, -step)
        )
        np.testing.assert_allclose(slope, (a - b) / (2 * step), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_a_drive_by_a_cubic_stays_on_it():
    law = mbd.Sampled(T, np.sin(2.0 * T), "cubic")
    mech = mbd.zoo.slider_crank()
    driven = mech.replace(drives={"motor": mbd.Drive("O", law)})
    q0 = mbd.assemble(driven).q
    run = mbd.simulate(driven, q0, mbd.assemble_velocity(driven, q0), t1=0.8, dt=2e-3)
    spline = CubicSpline(T, np.sin(2.0 * T))
    assert np.abs(run.q[:, 0] - spline(run.t)).max() < 1e-12
    assert np.abs(run.v[:, 0] - spline(run.t, 1)).max() < 1e-11
    led = mbd.simulate_driven(mech, {"O": law}, t=run.t[::100])
    np.testing.assert_allclose(led.v[:, 0], spline(led.t, 1), atol=1e-12)
    np.testing.assert_allclose(led.vdot[:, 0], spline(led.t, 2), atol=1e-9)
    np.testing.assert_allclose(led.q, run.q[::100], atol=1e-10)


def test_a_road_pushes_by_its_height_and_its_rate():
    t, z = np.linspace(0.0, 1.0, 401), 0.01 * np.sin(np.linspace(0.0, 9.0, 401))

    def wheel(law):
        return mbd.Mechanism(
            bodies={"hub": mbd.Body(30.0, (0, 0, 0.3), (1.0, 1.0, 1.0))},
            joints={"up": mbd.Prismatic("ground", "hub", at=(0, 0, 0.3), axis=(0, 0, 1))},
            forces={"tyre": mbd.Tyre("hub", (0, 0, 0.3), 2e5, 300.0, 0.31, law=law)},
        )

    def force(law, at):
        return mbd.forward_dynamics(wheel(law), [0.0], [0.0], t=at)[0][0] * 30.0 + 30.0 * 9.81

    spline = CubicSpline(t, z)
    for kind, rate in (("cubic", spline(0.3333, 1)), ("hold", 0.0)):
        law = mbd.Sampled(t, z, kind)
        push = 2e5 * (0.01 + float(law(0.3333))) + 300.0 * rate
        np.testing.assert_allclose(force(law, 0.3333), push, rtol=1e-10)


def test_samples_are_saved_with_the_mechanism(tmp_path):
    law = mbd.Sampled(T, Y, "cubic")
    mech = slider({"push": mbd.JointTorque("slide", law=law)}, drives={})
    mech = mech.replace(drives={"motor": mbd.Drive("slide", mbd.Sampled(T, 0.1 * Y))})
    mbd.save(mech, tmp_path / "m.json")
    assert mbd.load(tmp_path / "m.json") == mech


@pytest.mark.slow
def test_a_motion_takes_samples():
    samples = mbd.Sampled(T, Y)
    fastest = {"fastest": CoordinateRate("slide").peak()}
    found = Motion(0.5, 1e-3, fastest, inputs={"slide": samples})(slider())
    expected = Motion(0.5, 1e-3, fastest, inputs=lambda t: {"slide": samples(t)})(slider())
    np.testing.assert_allclose(found["fastest"], expected["fastest"], rtol=1e-12)


def test_wrong_uses_are_refused():
    samples = mbd.Sampled(T, Y)
    with pytest.raises(ValueError, match="name what it acts on"):
        end(slider(), samples)
    with pytest.raises(ValueError, match="takes no params"):
        mbd.Drive("slide", samples, {"speed": 1.0})
    with pytest.raises(ValueError, match=r"give samples of it, .*Sampled\(t, values\)"):
        end(slider(), {"slide": lambda t: t})
