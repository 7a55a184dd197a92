"""The lengths of a five-bar arm and the network that drives it, designed together.

    python examples/16_arm_and_policy.py [folder for the figure]

The tip is to reach points and stay there, with motors that are weak; longer links are heavier. The
environment is built inside the function that is differentiated, so that one gradient has both the
lengths and the network's weights. The rival trains the network alone, on the arm of `zoo.five_bar`.
"""

import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import optax

import jaxmbd as mbd
from jaxmbd import lanes, ml
from jaxmbd.observe import Coordinate, CoordinateRate, Distance, Position
from jaxmbd.sampling import Uniform

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
START, RANGE = jnp.array([0.25, 0.35, 0.20]), 0.08  # proximal, distal, pivots: within ± of it [m]
MIDDLE, STEPS, LANES = (0.1, 0.42), 40, 64  # of the targets [m]; of an episode; in a batch
ZERO, UNIT = jnp.array([0.0] * 4 + [*MIDDLE] * 2), jnp.array([1.0] * 2 + [5.0] * 2 + [0.1] * 4)


def arm(lengths):
    """The five-bar with links of constant mass per length, its motors, and the target."""
    proximal, distal, pivots = lengths
    masses = (2.4 * proximal, 1.43 * distal)
    motor = {"control_range": (-1.0, 1.0), "bias": (0.0, 0.0, -0.05)}  # [N·m], drag [N·m·s]
    return mbd.zoo.five_bar(proximal, distal, pivots, 0.33, masses, gravity=0.0).replace(
        bodies={"target": mbd.Body(0.0, com=MIDDLE)},
        joints={"target": mbd.Fixed("ground", "target", at="target")},
        forces={"left": mbd.Actuator("A", **motor), "right": mbd.Actuator("E", **motor)},
        points={"target": MIDDLE},
    )


def reaching(lengths):
    """The environment: a target for each episode, and minus its distance [dm] from the tip."""
    apart = Distance("left_distal", "C", "target", "target")
    sensors = {f"angle_{x}": Coordinate(x) for x in "AE"}
    sensors |= {f"speed_{x}": CoordinateRate(x) for x in "AE"}
    sensors |= {f"tip_{x}": Position("left_distal", "C", x) for x in "xy"}
    sensors |= {f"target_{x}": Position("target", "target", x) for x in "xy"}
    return ml.Environment(
        arm(lengths),
        control_dt=0.02,
        substeps=4,
        observe=sensors,
        reward=lambda before, action, after: -10.0 * apart.value(after) - 1e-3 * action @ action,
        randomize={f"points/target/{x}": Uniform(0.08) for x in "xy"},
        horizon=STEPS,
    )


def lengths_of(design):
    """Lengths [m] of unbounded numbers, all within their range."""
    return START + RANGE * jnp.tanh(design)


def cost(both, keys):
    """Minus the mean return of a design and its network, and the worst status."""
    numbers, rest = eqx.partition(both, eqx.is_inexact_array)

    def policy(numbers, seen, key):
        return jnp.tanh(eqx.combine(numbers, rest)[1]((seen - ZERO) / UNIT))

    def lane(numbers, key):
        run = ml.rollout(reaching(lengths_of(numbers[0])), policy, numbers, key, STEPS)
        return jnp.sum(run.reward), jnp.max(run.status)

    gained, status = lanes.vmap(lane, in_axes=(None, 0))(numbers, keys)
    return -jnp.mean(gained), jnp.max(status)


improved = eqx.filter_jit(eqx.filter_value_and_grad(cost, has_aux=True))
measured = eqx.filter_jit(cost)


def trained(seed, steps, *, together):
    """Design and network after steps of Adam, or the network alone; the costs on the way."""
    net = eqx.nn.MLP(ZERO.size, 2, 16, 1, jnp.tanh, key=jax.random.key(seed))
    both, history = (jnp.zeros(3), net), []
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(1e-2, steps))
    )
    memory = optimizer.init(eqx.filter(both, eqx.is_inexact_array))
    for step in range(steps):
        (value, _), slope = improved(both, ml.lane_keys(seed, LANES, step * LANES))
        slope = slope if together else (jnp.zeros(3), slope[1])
        change, memory = optimizer.update(slope, memory)
        both = eqx.apply_updates(both, change)
        history.append(float(value))
    return both, history


def main(out):
    _, ax = plt.subplots(layout="constrained")
    for name, together in {"network alone": False, "arm and network": True}.items():
        began = time.perf_counter()
        both, history = trained(0, 300, together=together)
        spent = time.perf_counter() - began
        unseen, status = measured(both, ml.lane_keys(99, 512))
        p, d, base = lengths_of(both[0])
        print(f"{name}: cost {unseen:.2f} for unseen targets, status {status}, {spent:.0f} s")
        print(f"  links {p:.3f} and {d:.3f} m, pivots {base:.3f} m apart")
        ax.semilogy(history, label=name)
    ax.set(xlabel="step", ylabel="cost of an episode")
    ax.legend()
    out.mkdir(parents=True, exist_ok=True)
    plt.savefig(out / "16_arm.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
