"""Comparisons of lanes with `jax.vmap` on random programs.

At the usual limits of the compiler, or at low ones, at which small kernels too are split into
pieces and blocks, and spill.
"""

import re
from contextlib import contextmanager

import jax
import numpy as np
import pytest
from random_programs import grid, mode, program

from jaxmbd import lanes
from jaxmbd.lanes import kernel
from jaxmbd.lanes.caching import Recent
from jaxmbd.lanes.codegen import schedule, writer
from jaxmbd.lanes.targets import cpu

SIZES = (1, 7, 8, 9, 33)
TOLERANCE = 500  # rounding units of the type, relative to what a leaf holds at its largest
JUMP = 10_000  # rounding units from which a change of a result is none of rounding
SHORT, LONG = 3, 20  # steps of small and of large programs
SPILL = re.compile(r"store volatile .*%(wait|held)")


def dtype_of(seed: int):
    return np.float32 if seed % 5 == 4 else np.float64


def batch(rng, example, size: int, dtype):
    """The example with some leaves batched at random, and the axes to map over."""
    floats, rest = example
    axes = jax.tree.map(lambda x: None if rng.random() < 0.25 else 0, example)
    axes[0]["a"] = int(rng.integers(floats["a"].ndim + 1))  # at least one is, along any axis

    def draw(x, axis):
        shape = x.shape if axis is None else (*x.shape[:axis], size, *x.shape[axis:])
        if x.dtype == bool:
            return rng.random(shape) < 0.5
        return (
            rng.integers(4, size=shape).astype(x.dtype)
            if x.dtype == np.int32
            else grid(rng, shape, dtype)
        )

    return map_axes(draw, example, axes), axes


def map_axes(fn, tree, axes):
    """Of a tree and the axes of its leaves."""
    leaves = (jax.tree.leaves(x, is_leaf=lambda x: x is None) for x in (tree, axes))
    found = [fn(x, axis) for x, axis in zip(*leaves, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(tree), found)


def draw_like(rng, tree):
    return jax.tree.map(lambda x: rng.normal(size=x.shape).astype(x.dtype), tree)


def results(mapped, args, tangents, cotangents, kind: str) -> dict:
    """Value, JVP and VJP, as far as the program has them."""
    floats, rest = args

    def of_floats(floats):
        return mapped(floats, rest)

    found = {"value": mapped(floats, rest)}
    if kind != "reverse":
        found["jvp"] = jax.jvp(of_floats, (floats,), (tangents,), has_aux=True)
    if kind != "forward":
        value, pull, other = jax.vjp(of_floats, floats, has_aux=True)
        found["vjp"] = (value, other, pull(cotangents))
    return found


def difference(found, expected) -> float:
    """Difference of a leaf in rounding units; infinite if type, shape or integers differ."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return np.inf
    if found.dtype.kind != "f":
        return 0 if np.array_equal(found, expected) else np.inf
    scale = np.finfo(found.dtype).eps * max(1.0, np.abs(expected).max(initial=0))
    off = np.abs(found - expected).max(initial=0) / scale
    return np.inf if np.isnan(off) else float(off)


def differences(found, expected) -> dict[str, float]:
    """The difference of each leaf by its path."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    leaves = zip(jax.tree.leaves_with_path(expected), jax.tree.leaves(found), strict=True)
    return {jax.tree_util.keystr(path): difference(x, y) for (path, y), x in leaves}


def disagreements(found, expected) -> list[str]:
    """The leaves that differ by more than the tolerance."""
    return [
        f"{path}: off by {off:.3g} rounding units"
        for path, off in differences(found, expected).items()
        if not off < TOLERANCE
    ]


def both(seed: int, dtype, steps: int | None = None, *, one: bool = False) -> tuple[dict, dict]:
    """What lanes and `jax.vmap` find for a random program: its value, JVP and VJP.

    Args:
        seed: of the program and the numbers.
        dtype: of its floats.
        steps: its length; by default as drawn.
        one: also the value of the first sample by `lanes.jit`.
    """
    fn, axes, reference, given = drawn(seed, dtype, steps)
    args, kind = given[0], mode(seed)
    expected = results_of(reference, kind)(*given)
    found = results_of(lanes.vmap(fn, in_axes=axes, strict=True), kind)(*given)
    if one:
        first = map_axes(lambda x, k: x if k is None else np.take(x, 0, axis=k), args, axes)
        found["one"] = lanes.jit(fn, strict=True)(*first)
        expected["one"] = jax.tree.map(lambda x: x[0], expected["value"])
    return found, expected


def drawn(seed: int, dtype, steps: int | None):
    """A program, its axes, `jax.vmap` of it, and arguments, tangents and cotangents."""
    rng = np.random.default_rng([seed, 1])
    fn, example = program(seed, dtype, steps)
    args, axes = batch(rng, example, SIZES[rng.integers(len(SIZES))], dtype)
    tangents = draw_like(rng, args[0])
    reference = jax.jit(jax.vmap(fn, in_axes=axes))  # traced once for value and derivatives
    return fn, axes, reference, (
        args, tangents, draw_like(rng, jax.eval_shape(reference, *args)[0]),
    )  # fmt: skip


def results_of(mapped, kind: str):
    """`results` as one compiled function of arguments, tangents and cotangents."""
    return jax.jit(lambda a, t, c: results(mapped, a, t, c, kind))


def sensitivity(seed: int, dtype, steps: int | None = None) -> dict[str, float]:
    """How much each leaf of `jax.vmap` changes, in rounding units, where floats change by one.

    The largest of ten draws of the signs. More than `JUMP` is no rounding: a decision has changed.
    Where it has in all draws, as at a tie that every change breaks, a leaf is as sensitive as the
    most sensitive of the others.
    """
    rng, (_, _, reference, given) = np.random.default_rng([seed, 3]), drawn(seed, dtype, steps)
    run = results_of(reference, mode(seed))

    def moved(x):
        towards = np.where(rng.random(np.shape(x)) < 0.5, -np.inf, np.inf)
        return np.nextafter(x, towards, dtype=x.dtype) if x.dtype.kind == "f" else x

    expected, worst = run(*given), {}
    for _ in range(10):
        for path, off in differences(run(*jax.tree.map(moved, given)), expected).items():
            worst[path] = max(worst.get(path, -1.0), off if off < JUMP else -1.0)
    most = max(worst.values(), default=0.0)
    return {path: most if off < 0.0 else off for path, off in worst.items()}


@contextmanager
def low_limits(seed: int):
    """Kernels are scheduled, and split into pieces and blocks, at limits drawn at random.

    The processor seems to have few vector registers. Yields the modules' texts.
    """
    rng, texts, target = np.random.default_rng([seed, 2]), [], cpu.target

    def target_of(ir, *rest):
        texts.append(ir)
        return target(ir, *rest)

    registers = int(rng.choice([8, 16, 32]))
    with pytest.MonkeyPatch.context() as m:
        m.setenv("JAXMBD_LANES_CACHE", "")  # neither finds nor leaves kernels of the usual size
        m.setattr(kernel, "CODES", Recent(100))
        m.setattr(schedule, "SHORT", int(rng.choice([1, 20])))
        m.setattr(schedule, "LONG", int(rng.choice([40, 150, 12_000])))
        m.setattr(writer, "LONG_BLOCK", int(rng.choice([40, 200, 800])))
        m.setattr(cpu, "vector_registers", lambda: registers)
        m.setattr(cpu, "target", target_of)
        yield texts


def compared(seed: int, dtype, steps: int | None = None, *, one: bool = True) -> dict:
    """A random program at low limits.

    Returns:
        the differences by path; the limits of those that exceed `TOLERANCE`, twice the program's
        own `sensitivity`; the numbers of branches between blocks and of spills; "failed", if so,
        and why.
    """
    with low_limits(seed) as texts:
        try:
            found = {"off": differences(*both(seed, dtype, steps, one=one))}
        except Exception as error:
            found = {"off": {}, "failed": f"{type(error).__name__}: {error}"[:300]}
    if any(off > TOLERANCE for off in found["off"].values()):
        changes = sensitivity(seed, dtype, steps)
        found["limits"] = {path: max(TOLERANCE, 2.0 * off) for path, off in changes.items()}
    spills = sum(len(SPILL.findall(text)) for text in texts)
    return found | {"blocks": sum(x.count("br i1 %never") for x in texts), "spills": spills}


def problems(seed: int, dtype, found: dict) -> list[str]:
    """What is wrong with a program that was `compared`."""
    label = f"seed {seed} in {np.dtype(dtype)}"
    limits = found.get("limits", {})
    wrong = [
        f"{path}: {off:.3g} units"
        for path, off in found["off"].items()
        if off > limits.get(path, TOLERANCE)
    ]
    return [
        f"{label}: {text}" for text in [*wrong, *([found["failed"]] if "failed" in found else [])]
    ]
