"""A model predictive controller that is differentiated: what it weighs, learnt from what it does.

    python examples/17_differentiable_mpc.py [folder for the figure]

The controller of a cart-pole plans 0.6 s ahead, through `simulate`, by least squares, and
does the first force of its plan. The derivatives of the plan are those of the optimum, by the
implicit function theorem: no step of the search is differentiated. With them the weights of an
expert's cost are found from the forces that it gave in some states, with noise.
"""

import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import optax

import jaxmbd as mbd
from jaxmbd import ml

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
CART_POLE, PLANNED, DT = ml.cart_pole().mechanism, 12, 0.05  # forces in a plan, their duration [s]
TRUE = jnp.log(jnp.array([1.0, 10.0, 0.1, 0.3]))  # of position, angle and their speeds, squared
SEARCH, NOISE, SPREAD = 20, 0.03, jnp.array([0.3, 0.1, 0.3, 0.3])  # steps; [N]; of the states


def deviations(plan, state, weights):
    """What the cost has half the sum of squares of: weighted states at all times, and forces."""
    forces = mbd.Sampled(DT * jnp.arange(PLANNED), plan, "hold")
    run = mbd.simulate(
        CART_POLE, state[:2], state[2:], steps=PLANNED, dt=DT, inputs={"motor": forces}, throw=False
    )
    states = jnp.concatenate([run.q[1:], run.v[1:]], axis=1)
    return jnp.concatenate([jnp.ravel(states * jnp.exp(0.5 * weights)), 0.1 * plan])


def slope(plan, state, weights):
    """Of the cost by the plan; zero at the optimum."""
    return jax.grad(lambda plan: 0.5 * jnp.sum(deviations(plan, state, weights) ** 2))(plan)


@jax.custom_jvp
def best_plan(state, weights):
    """The forces [N] of least cost, by steps of Levenberg and Marquardt.

    Args:
        state: position, angle and their speeds (4,).
        weights: logarithms of the weights of their squares (4,).
    """

    def step(carry, _):
        plan, damping = carry
        off, rates = (f(deviations)(plan, state, weights) for f in (lambda f: f, jax.jacfwd))
        curvature = rates.T @ rates + damping * jnp.eye(PLANNED)
        new = plan - jnp.linalg.solve(curvature, rates.T @ off)
        better = jnp.sum(deviations(new, state, weights) ** 2) <= (1 + 1e-12) * off @ off
        return (jnp.where(better, new, plan), damping * jnp.where(better, 0.1, 10.0)), None

    return jax.lax.scan(step, (jnp.zeros(PLANNED), 1e-3), None, SEARCH)[0][0]


@best_plan.defjvp
def _(given, changes):
    """``slope(plan, given) = 0``, so ``H · d plan = −∂slope/∂given · d given``."""
    plan = best_plan(*given)
    curvature = jax.jacfwd(slope)(plan, *given)
    _, moved = jax.jvp(lambda *given: slope(plan, *given), given, changes)
    return plan, -jnp.linalg.solve(curvature, moved)


@jax.jit
@jax.vmap
def expert(state):
    """What is imitated."""
    return best_plan(state, TRUE)[0]


def off(weights, states, forces):
    """Mean square of the difference between the forces that the weights give and these [N²]."""
    planned = jax.vmap(lambda state: best_plan(state, weights)[0])(states)
    return jnp.mean((planned - forces) ** 2)


def trained(seed, steps, count=128):
    """Weights after steps of L-BFGS; before each, rms errors of forces [N] and of the weights."""
    keys = jax.random.split(jax.random.key(seed), 3)
    states = SPREAD * jax.random.normal(keys[0], (count, 4))
    forces = expert(states) + NOISE * jax.random.normal(keys[1], (count,))
    cost, optimizer = partial(off, states=states, forces=forces), optax.lbfgs()

    def step(carry, _):
        weights, memory = carry
        value, direction = optax.value_and_grad_from_state(cost)(weights, state=memory)
        told = {"value": value, "grad": direction, "value_fn": cost}
        change, memory = optimizer.update(direction, memory, weights, **told)
        errors = jnp.sqrt(jnp.stack([value, jnp.mean((weights - TRUE) ** 2)]))
        return (optax.apply_updates(weights, change), memory), errors

    first = TRUE + jax.random.normal(keys[2], (4,))
    run = jax.jit(partial(jax.lax.scan, step, length=steps))
    (weights, _), history = run((first, optimizer.init(first)))
    return weights, history


def main(out):
    state, h = jnp.array([0.3, 0.1, 0.0, -0.3]), 1e-4 * jnp.eye(4)
    exact = jax.jit(jax.jacrev(best_plan, argnums=(0, 1)))(state, TRUE)
    plans = jax.jit(jax.vmap(best_plan))
    at, given = jnp.tile(state, (4, 1)), jnp.tile(TRUE, (4, 1))
    pairs = (
        (plans(at + h, given), plans(at - h, given)),
        (plans(at, given + h), plans(at, given - h)),
    )
    for name, found, (more, less) in zip(("state", "weights"), exact, pairs, strict=True):
        wrong = jnp.max(jnp.abs(found - (more - less).T / 2e-4)) / jnp.max(jnp.abs(found))
        print(f"derivatives of the plan by the {name}: {wrong:.0e} from differences")
    began = time.perf_counter()
    weights, history = trained(0, 25)
    print(
        f"{time.perf_counter() - began:.0f} s; forces off by {history[0][0]:.2f} N before, ", end=""
    )
    print(f"{history[-1][0]:.3f} N after, noise {NOISE} N")
    for name, found, true in zip(
        ("position", "angle", "speed", "turning"), weights, TRUE, strict=True
    ):
        print(f"weight of {name:8} {jnp.exp(found):7.3f}, true {jnp.exp(true):7.3f}")
    _, ax = plt.subplots(layout="constrained")
    ax.semilogy(history, label=["forces [N]", "logarithms of the weights"])
    ax.set(xlabel="step", ylabel="root mean square error")
    ax.legend()
    out.mkdir(parents=True, exist_ok=True)
    plt.savefig(out / "17_mpc.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
