"""A damper's law by a network from measured motions, beside a curve found by `identify`.

    python examples/15_learn_a_damper.py [folder for the figure]

A corner of two wishbones is pushed and let go, or struck, on a bench. The angle of its lower arm is
measured, with noise; nothing measures the damper. A network in its force law is trained through
`simulate`. Its rival are the eight points of a `DamperCurve`, with standard errors.
"""

import sys
import time
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax

import jaxmbd as mbd
from jaxmbd.design import Between
from jaxmbd.identification import Measured
from jaxmbd.observe import Configuration, Coordinate, Motion

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
RUN, NOISE = {"t1": 0.4, "dt": 2e-3, "save_every": 2}, 1e-3  # [s], [rad]
STARTS = ((0.15, 0.0), (-0.12, 0.0), (0.08, 0.0), (0.0, 5.0), (0.0, -4.0), (0.0, 2.0))
KNOTS = np.array([0.05, 0.15, 0.35, 0.8])  # of the rival, in both directions [m/s]
SEEN = np.linspace(-1.2, 1.0, 111)  # the rates of the strut that the motions have [m/s]
BEYOND = np.r_[-2.0:-1.3:0.02, 1.1:2.0:0.02]


def true_law(x, rate):
    """The tension to be found [N]: more in rebound than in bump, with knees."""
    size = jnp.abs(rate)
    rebound, bump = 550 * jnp.tanh(size / 0.12), 200 * jnp.tanh(size / 0.2) + 100 * size
    return jnp.sign(rate) * (jnp.where(rate > 0.0, rebound, bump) + 400 * size)


class NetworkLaw(eqx.Module):
    """A damper whose coefficient is a positive function of the rate: it never gives energy."""

    net: eqx.nn.MLP

    def __call__(self, x, rate):
        return 1e3 * jnp.exp(self.net(jnp.arcsinh(rate / 0.1))) * rate


def corner(law):
    """A four-bar as wishbones and wheel, x up; the strut stands on the lower arm, its crank."""
    arms = mbd.zoo.four_bar(0.35, 0.25, 0.3, 0.27, masses=(4.0, 34.0, 2.0), gravity=(-9.81, 0, 0))
    strut = mbd.SpringDamper("ground", "crank", (0.46, 0, 0.17), (0, 0, 0.26), 3e4, law=law)
    return arms.replace(forces={"strut": strut})


def motions(law):
    """Angles of the lower arm (motions, times) [rad]."""

    def motion(angle, speed):
        mech = corner(law)
        q = mbd.assemble(mech, {"A": angle}, throw=False).q
        v = mbd.assemble_velocity(mech, q, {"A": speed})
        return mbd.simulate(mech, q, v, **RUN, throw=False).q[:, 0]

    return jax.vmap(motion)(*jnp.array(STARTS).T)


def measured(seed):
    """What `motions` of the true law gives, with noise."""
    angles = jax.jit(lambda: motions(true_law))()
    return np.asarray(angles) + NOISE * np.random.default_rng(seed).normal(size=angles.shape)


def trained(data, seed, steps):
    """A law after steps of L-BFGS, and its mean squared difference, in noises, before each."""
    net = eqx.nn.MLP("scalar", "scalar", 12, 2, jnp.tanh, key=jax.random.key(seed))
    numbers, rest = eqx.partition(NetworkLaw(net), eqx.is_inexact_array)
    optimizer = optax.lbfgs()

    def cost(numbers):
        return jnp.mean((motions(eqx.combine(numbers, rest)) - data) ** 2) / NOISE**2

    def step(carry, _):
        numbers, memory = carry
        value, slope = optax.value_and_grad_from_state(cost)(numbers, state=memory)
        told = {"value": value, "grad": slope, "value_fn": cost}
        change, memory = optimizer.update(slope, memory, numbers, **told)
        return (optax.apply_updates(numbers, change), memory), value

    start = numbers, optimizer.init(numbers)
    (numbers, _), history = jax.jit(partial(jax.lax.scan, step, length=steps))(start)
    return eqx.combine(numbers, rest), history


def identified(data):
    """The rival, by `identify`."""
    given = []
    for (angle, speed), series in zip(STARTS, data, strict=True):
        start = {"start": Configuration({"A": angle}), "speeds": {"A": speed}}
        motion = Motion(observe={"angle": Coordinate("A")}, **start, **RUN, keep=None)
        given.append(Measured(motion, {"angle": series}))
    thought = corner(mbd.DamperCurve(KNOTS, 1e3 * KNOTS, KNOTS, 1e3 * KNOTS))
    unknown = {"forces/strut/law/*_forces/*": Between(1.0, 3000.0)}
    return mbd.identify(thought, unknown, given, noise={"angle": NOISE})


def error(law, rates):
    """Root mean square error of a law at rates of the strut [N]."""
    off = jax.vmap(lambda v: law(0.0, v) - true_law(0.0, v))(rates)
    return jnp.sqrt(jnp.mean(off**2))


def main(out):
    data, began = measured(0), time.perf_counter()
    (network, history), spent = trained(data, 0, 300), time.perf_counter() - began
    print(f"network, {spent:.0f} s: {history[0]:.0f} before, {history[-1]:.2f} after, 1 is noise")
    found, spent = identified(data), time.perf_counter() - began - spent
    far = np.abs(found.estimates - np.abs(true_law(0.0, np.r_[-KNOTS, KNOTS])))
    print(f"curve, {spent:.0f} s: within {np.max(far / found.standard_errors):.1f} standard errors")
    every, (_, ax) = np.linspace(-2.0, 2.0, 401), plt.subplots(layout="constrained")
    laws = {"network": network, "curve": found.model.forces["strut"].law, "truth": true_law}
    for name, law in laws.items():
        inside, outside = error(law, SEEN), error(law, BEYOND)
        print(f"{name:8} off by {inside:.1f} N where there are data, {outside:.1f} N beyond")
        ax.plot(every, jax.vmap(partial(law, 0.0))(every), label=name)
    ax.axvspan(SEEN[0], SEEN[-1], color="#eef2f5", label="rates in the data")
    ax.set(xlabel="rate of the strut [m/s]", ylabel="tension [N]")
    ax.legend()
    out.mkdir(parents=True, exist_ok=True)
    plt.savefig(out / "15_damper.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
