"""Checks of derivatives, right ones and wrong ones; Hessians; algorithms that run in step.

Functions are ``Σ_i w_i e^{a_i · x}`` of random vectors: their gradient is ``Σ w_i e_i a_i``, their
Hessian times v ``Σ w_i e_i (a_i · v) a_i``. A rule that is wrong by a share, a kink and a jump are
added to them. None of these may be found to be in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import FLAGGED, RIGHT, WRONG, Judged, compare, or_crash
from jaxmbd import design

PER_CASE = 14
_SUM = "gradient of a sum of exponentials in closed form"
_PENDULUM = "height of a pendulum's bob in closed form"
MODES = ("forward-over-reverse", "reverse-over-forward", "forward-over-forward")
NUMBERS = {
    "check_gradient": f"{_SUM}, with faults that are known; {_PENDULUM}",
    "design.GradientCheck.forward": f"{_SUM}, and the wrong rule's",
    "design.GradientCheck.reverse": f"{_SUM}, and the wrong rule's",
    "design.GradientCheck.differences": _SUM,
    "design.GradientCheck.ok": "the fault that was built in",
    "design.hessian_vector": "Hessian of a sum of exponentials in closed form",
    "design.hessian_vector, float32": "Hessian of a sum of exponentials in closed form",
    "design.in_step": "the same algorithms one after the other",
}
FAULTS = ("none", "none", "none", "rule", "kink", "jump", "no reverse", "not finite")


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Hessians in one batch for each mode; checks, which compile, and algorithms one by one."""
    rng, count = np.random.default_rng(seed), max(1, round(size / PER_CASE))
    yield from _hessians(rng, 2 * count, f"default_rng({seed})")
    for k in range(count):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        judges: list[Any] = [_checked, _stepped] + [_mechanism] * (k % 5 == 0)
        for judge in judges:
            yield from or_crash("check_gradient", judge(rng, text), f"{judge.__name__} | {text}")


def _sum(w: Any, a: Any, x: Any) -> Any:
    return w @ jnp.exp(a @ x)


def _hessians(rng: np.random.Generator, count: int, text: str) -> Iterator[Judged]:
    """The three modes, of arrays and of a pytree, in double and in single precision."""
    for n in (1, 4):
        w, a = rng.normal(size=(count, 3)), rng.normal(size=(count, 3, n))
        x, v = 0.5 * rng.normal(size=(count, n)), rng.normal(size=(count, n))
        e = w * np.exp(np.einsum("sij,sj->si", a, x))
        along = np.einsum("sij,sj->si", a, v)
        wanted = np.einsum("si,sij->sj", e * along, a)
        sizes = np.sum(np.abs(e)[:, :, None] * np.abs(a) * np.max(np.abs(along)), axis=(1, 2))
        for mode in MODES:

            def one(w: Any, a: Any, x: Any, v: Any, mode: str = mode) -> Any:
                tree, along = {"x": x[:1], "y": x[1:]}, {"x": v[:1], "y": v[1:]}

                def fn(t: Any) -> Any:
                    return _sum(w, a, jnp.concatenate([t["x"], t["y"]]))

                found = design.hessian_vector(fn, tree, along, mode=mode)
                return jnp.concatenate([found["x"], found["y"]])

            for number, kind, limit in (
                ("design.hessian_vector", np.float64, 1e-14),
                ("design.hessian_vector, float32", np.float32, 1e-5),
            ):
                given = [y.astype(kind) for y in (w, a, x, v)]
                found = np.asarray(jax.jit(jax.vmap(one))(*given))
                for i in range(count):
                    said = f"{mode}, sample {i} of {count}, {n} numbers, {text}"
                    yield compare(
                        number, found[i], wanted[i], limit=limit, scale=sizes[i], detail=said
                    )


def _checked(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """One function, with or without a fault in its first variable."""
    n, fault = int(rng.integers(1, 4)), str(rng.choice(FAULTS))
    size = 10.0 ** rng.uniform(-6, 6)
    w, a, x = rng.normal(size=3), rng.normal(size=(3, n)), size * rng.normal(size=n)
    share = 10.0 ** rng.uniform(-4, -0.5) * rng.choice([-1.0, 1.0])
    e = w * np.exp(a @ x / size)
    slope = e @ a / size
    while abs(slope[0]) < 1e-3 * np.max(np.sum(np.abs(e[:, None] * a), axis=0)) / size:
        w = rng.normal(size=3)
        e = w * np.exp(a @ x / size)
        slope = e @ a / size
    smooth = partial(_smooth, w, a, size)
    told = slope.copy()
    if fault in ("rule", "no reverse"):
        told[0] *= 1.0 + (share if fault == "rule" else 0.0)
    found = design.check_gradient(_faulty(fault, smooth, x, size, share, told), x, scale=size)
    text = f"{fault} {share:.1e}, {n} numbers of {size:.1e}, {text}"
    ok, right = bool(found.ok), fault == "none"
    outcome = WRONG if ok and not right else RIGHT if ok == right else FLAGGED
    for number in ("check_gradient", "design.GradientCheck.ok"):
        yield Judged(number, outcome, math.nan, f"{found.verdicts} | {text}")
    key, scale = (
        "design.GradientCheck.",
        float(np.max(np.sum(np.abs(e[:, None] * a), axis=0)) / size),
    )
    if fault in ("none", "rule"):
        for mode in ("forward", "reverse"):
            got = getattr(found, mode)
            yield compare(f"{key}{mode}", got, told, limit=1e-12, scale=scale, detail=text)
    if fault in ("none", "rule", "no reverse"):
        value, error = found.differences.value, found.differences.error
        over = np.maximum(np.abs(value - slope) - 10.0 * error, 0.0)
        yield compare(f"{key}differences", over, np.zeros(n), limit=1e-9, scale=scale, detail=text)
    if fault == "no reverse":
        none = np.full(n, np.nan)
        yield compare(f"{key}reverse", found.reverse, none, limit=0.0, detail=text)


def _smooth(w: np.ndarray, a: np.ndarray, size: float, x: Any) -> Any:
    return _sum(w, a, x / size)


def _faulty(
    fault: str, smooth: Callable[[Any], Any], x: np.ndarray, size: float, share: float,
    told: np.ndarray,
) -> Callable[[Any], Any]:  # fmt: skip
    """The function with its fault at x; a kink is a share of the slope, and over its tolerance."""
    if fault == "kink":
        return lambda y: smooth(y) + share * told[0] * jnp.abs(y[0] - x[0])
    if fault == "jump":
        return lambda y: smooth(y) + jnp.where(y[0] > x[0], share, 0.0)
    if fault == "not finite":
        return lambda y: smooth(y) + jnp.sqrt(jnp.abs(y[0] - x[0]) / size)
    if fault == "rule":
        wrong = jax.custom_jvp(smooth)

        @wrong.defjvp
        def _(y: Any, dy: Any) -> Any:
            value, rate = jax.jvp(smooth, y, dy)
            slope = jax.grad(smooth)(y[0])[0]
            return value, rate + share * slope * dy[0][0]

        return wrong
    if fault == "no reverse":

        def looped(y: Any) -> Any:  # a loop without a known end has no reverse derivative
            return jax.lax.while_loop(
                lambda c: c[0] < 1, lambda c: (c[0] + 1, smooth(y)), (0, 0.0)
            )[1]

        return looped
    return smooth


def _mechanism(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Potential energy ``−m g l sin q`` of a pendulum, by its mass and by gravity."""
    q, mass = float(rng.uniform(0.3, 1.2)), float(10.0 ** rng.uniform(-3, 3))
    mech = mbd.zoo.simple_pendulum(2.0, mass, 9.81)
    found = design.check_gradient(
        lambda m: mbd.potential_energy(m, jnp.array([q])), mech,
        vary=["bodies/bob/mass", "gravity/y"],
    )  # fmt: skip
    height = -2.0 * math.sin(q)  # it turns downwards
    wanted = [9.81 * height, -mass * height]
    text = f"pendulum of {mass:.3g} kg at {q:.3f}, {text}"
    key = "design.GradientCheck."
    yield compare("check_gradient", found.ok, True, limit=0.0, detail=text)
    for mode in ("forward", "reverse"):
        for got, want in zip(getattr(found, mode), wanted, strict=True):
            yield compare(f"{key}{mode}", got, want, limit=1e-12, detail=text)
    for got, want in zip(found.differences.value, wanted, strict=True):
        yield compare(f"{key}differences", got, want, limit=1e-8, detail=text)


def _stepped(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Sums of answers, of algorithms that ask a different number of times; one may fail."""
    count, fails = int(rng.integers(1, 9)), bool(rng.random() < 0.25)
    rounds = rng.integers(0, 6, count)
    numbers = [rng.normal(size=k) for k in rounds]
    broken = int(rng.integers(count)) if fails else -1
    batches: list[int] = []

    def task(i: int, ask: Callable[[Any], Any]) -> float:
        total = 0.0
        for x in numbers[i]:
            total = 0.5 * total + ask((i, total + x))
        if i == broken:
            raise KeyError("broken")
        return total

    def answered(i: int, x: float) -> float:
        return math.sin(x) + i

    def evaluate(questions: list[Any]) -> list[float]:
        batches.append(len(questions))
        return [answered(*q) for q in questions]

    text = f"{count} algorithms of {rounds.tolist()} rounds, {text}"
    number = "design.in_step"
    if fails:
        try:
            design.in_step(task, count, evaluate)
            outcome = WRONG
        except KeyError:
            outcome = RIGHT
        yield Judged(number, outcome, 0.0, f"{broken} fails, {text}")
        return
    found = design.in_step(task, count, evaluate)
    wanted = [task(i, lambda q: answered(*q)) for i in range(count)]
    yield compare(number, found, wanted, limit=0.0, detail=text)
    together = [int(np.sum(rounds > k)) for k in range(int(rounds.max(initial=0)))]
    yield compare(number, batches, together, limit=0.0, detail=f"questions at a time, {text}")
