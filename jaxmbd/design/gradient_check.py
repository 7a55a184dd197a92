"""`check_gradient`: forward and reverse derivatives against differences, and which is wrong.

Three independent answers for every variable: forward mode, reverse mode, and central differences
of two orders on the plateau of their steps, with an estimated error. The one that two others
contradict is wrong. Where the function is not smooth, or NaN flags that the derivative does not
exist, there is nothing to compare, and that is said instead.

Differences are taken with a sweep of steps. With ``h_k = h_0 2^{-k}`` the central difference of
second order is ``D2_k = (f(x + h_k) − f(x − h_k)) / 2 h_k`` and of fourth order ``D4_k = (4
D2_{k+1} − D2_k) / 3``. A large step errs by truncation, a small one by ``ε/h`` with ε the noise of
f. The plateau between is where neighbours agree best, and how well they agree is the error that is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from jaxmbd import lanes
from jaxmbd.design.unknowns import Between, Unknowns
from jaxmbd.kinematics import mechanism_length
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import text_table
from jaxmbd.variables import variables

STEPS = 32
LARGEST = 0.05
"""The first step, relative to the scale of the variable; it is halved `STEPS` − 1 times."""

NOISE_OFFSETS = 2.0**-38 * np.arange(-4, 5)
"""Where `noise` needs the function, along any direction of the size of the scale: so close that a
smooth function is a line between them."""


class Differences(NamedTuple):
    """What differences say of one derivative, or of many (…)."""

    second: np.ndarray  # central differences of second order on their plateau
    fourth: np.ndarray  # and of fourth order
    value: np.ndarray  # the better of the two; beside an edge a one-sided difference
    error: np.ndarray  # estimate of its error
    left: np.ndarray  # the one-sided derivatives, as steps go to zero
    right: np.ndarray
    kink: np.ndarray  # whether they differ beyond their errors
    jump: np.ndarray  # whether the function itself jumps here
    edge: np.ndarray  # whether it is finite on one side only


def steps(scale: np.ndarray | float, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Steps (…, `STEPS`) for the scales (…) of variables; in single precision 16 of them."""
    count = STEPS if np.finfo(dtype).eps < 1e-10 else 16
    factors = LARGEST * 0.5 ** np.arange(count)
    return np.asarray(scale)[..., None] * factors


def noise(values: np.ndarray, eps: float) -> np.ndarray:
    """The noise ε of a function (…), from its `values` (…, 9) at the offsets.

    The differences of order k of pure noise have the variance ``ε² (2k choose k)`` (Hamming,
    "Introduction to applied numerical analysis", 1971). At least rounding.
    """
    sizes = []
    for order in (3, 4, 5):
        table = np.diff(values, n=order, axis=-1)
        sizes.append(np.sqrt(np.mean(table**2, axis=-1) / comb(2 * order, order)))
    middle = np.median(np.stack(sizes), axis=0)
    size = np.max(np.abs(np.where(np.isfinite(values), values, 0.0)), axis=-1)
    return np.maximum(np.where(np.isfinite(middle), middle, 0.0), 0.5 * eps * size)


def differences(
    here: np.ndarray, above: np.ndarray, below: np.ndarray, h: np.ndarray, noise: np.ndarray
) -> Differences:
    """Judge a function along lines, of f(x), f(x + h_k) and f(x − h_k) (…, k).

    Each step is half of the one before; `noise` is ε of f (…).
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        size = np.maximum(np.abs(above), np.abs(below))
        level = np.asarray(noise)[..., None] + np.finfo(np.asarray(here).dtype).eps * size
        second = (above - below) / (2.0 * h)
        fourth = (4.0 * second[..., 1:] - second[..., :-1]) / 3.0
        d2, e2 = _plateau(second, level / h)
        d4, e4 = _plateau(fourth, 2.0 * level[..., :-1] / h[..., 1:])
        right, right_error = _one_sided(here, above, h, level)
        left, left_error = _one_sided(here, below, -h, level)
        last = slice(-6, None)
        up = np.all(np.isfinite(above[..., last]), axis=-1)
        down = np.all(np.isfinite(below[..., last]), axis=-1)
        edge = np.isfinite(here) & (up != down)
        use4 = ~(e2 < e4)
        value, error = np.where(use4, d4, d2), np.where(use4, e4, e2)
        value = np.where(edge, np.where(up, right, left), value)
        error = np.where(edge, np.where(up, right_error, left_error), error)
        gap = np.abs(right - left)
        slope = np.maximum(np.abs(right), np.abs(left))
        kink = ~edge & (gap > 10.0 * (right_error + left_error)) & (gap > 1e-5 * slope)
        apart = np.abs(above - below)
        still = [np.abs(y[..., -1] - y[..., -6]) < 0.1 * apart[..., -1] for y in (above, below)]
        wide = apart[..., -1] > 1e6 * np.finfo(np.asarray(here).dtype).eps * np.abs(here)
        jump = ~edge & wide & still[0] & still[1] & (apart[..., -1] > 0.5 * apart[..., -6])
        value, error = np.where(jump, np.nan, value), np.where(jump, np.inf, error)
    return Differences(d2, d4, value, error, left, right, kink & ~jump, jump, edge)


def _plateau(table: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entry (…) of a table (…, k) that agrees best with both neighbours, and its error."""
    middle = table[..., 1:-1]
    spread = np.maximum(np.abs(middle - table[..., :-2]), np.abs(middle - table[..., 2:]))
    error = spread + floor[..., 1:-1]
    error = np.where(np.isfinite(error), error, np.inf)
    best = np.argmin(error, axis=-1)[..., None]
    for _ in range(2):
        best = _finer(middle, error, best)
    chosen = np.take_along_axis(middle, best, axis=-1)[..., 0]
    least = np.take_along_axis(error, best, axis=-1)[..., 0]
    return np.where(np.isfinite(least), chosen, np.nan), least


def _finer(values: np.ndarray, error: np.ndarray, best: np.ndarray) -> np.ndarray:
    """A plateau at smaller steps, if it contradicts the best: the function has a finer scale."""
    here = np.take_along_axis(values, best, axis=-1)
    known = np.take_along_axis(error, best, axis=-1)
    other = np.abs(values - here) > 10.0 * (error + known)
    later = np.arange(values.shape[-1]) > best
    left = np.where(later & other, error, np.inf)
    new = np.argmin(left, axis=-1)[..., None]
    there = np.isfinite(np.take_along_axis(left, new, axis=-1))
    return np.where(there, new, best)


def _one_sided(
    here: np.ndarray, beside: np.ndarray, h: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The derivative to one side, of second order: ``2 d(h/2) − d(h)``."""
    first = (beside - np.asarray(here)[..., None]) / h
    return _plateau(
        2.0 * first[..., 1:] - first[..., :-1], 6.0 * level[..., :-1] / np.abs(h[..., 1:])
    )


class Numbers(NamedTuple):
    """The numbers of an argument of a function as one vector."""

    names: tuple[str, ...]
    start: np.ndarray  # their values (n,)
    scale: np.ndarray  # by how much each changes at most while differences are taken (n,)
    argument: Callable[[Any], Any]  # of a vector (n,); pure


def _numbers_of(x: Any, vary: str | Sequence[str] | None) -> Numbers:
    """Those of a mechanism that fit paths or patterns, or all floating numbers of a pytree."""
    if isinstance(x, Mechanism):
        vary = "*" if vary is None else vary
        return _of_mechanism(x, [vary] if isinstance(vary, str) else vary)
    if vary is not None:
        raise ValueError("vary= names numbers of a Mechanism; another argument varies as a whole")
    return _of_pytree(x)


def _of_mechanism(mech: Mechanism, vary: Sequence[str]) -> Numbers:
    found = {p: v for pattern in vary for p, v in variables(mech, pattern).items()}
    whole = {p: v for p, v in found.items() if p.rpartition("/")[0] not in found}
    unknowns = Unknowns.of(mech, dict.fromkeys(whole, Between(-np.inf, np.inf, scale=1.0)))
    length, start, scale = float(mechanism_length(mech)), unknowns.start, np.ones(len(unknowns))
    for path, variable in whole.items():
        part = [name == path or name.startswith(f"{path}/") for name in unknowns.names]
        typical = length if variable.unit == "m" else 1.0
        largest = np.max(np.abs(start[part]))
        scale[part] = largest if largest > 1e-3 * typical else typical
    return Numbers(unknowns.names, start, scale, lambda vector: unknowns.model(vector - start))


def _of_pytree(x: Any) -> Numbers:
    moving, still = eqx.partition(x, _is_floating)
    start, restore = ravel_pytree(moving)
    names: list[str] = []
    scale: list[float] = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(moving):
        label, shape = jax.tree_util.keystr(path) or "x", np.shape(leaf)
        names += [f"{label}{list(i)}" if i else label for i in np.ndindex(*shape)]
        largest = float(np.max(np.abs(leaf), initial=0.0))
        scale += [largest or 1.0] * int(np.prod(shape))
    if not names:
        raise ValueError("the argument has no floating-point number to differentiate with")

    def argument(vector: Any) -> Any:
        return eqx.combine(restore(jnp.asarray(vector, start.dtype)), still)

    return Numbers(tuple(names), np.asarray(start), np.array(scale), argument)


def _is_floating(x: Any) -> bool:
    return jnp.issubdtype(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype, jnp.floating)


def _weighed(result: Any) -> Array:
    """One number of a result: its floating-point numbers times fixed ones in general position."""
    leaves = [jnp.ravel(jnp.asarray(y)) for y in jax.tree_util.tree_leaves(result)]
    floats = [y for y in leaves if jnp.issubdtype(y.dtype, jnp.floating)]
    if not floats:
        raise ValueError("the function returns no floating-point number")
    whole = jnp.concatenate(floats)
    if whole.shape[0] == 1:
        return whole[0]
    weights = 1.0 + 0.5 * np.sin(1.0 + 2.3 * np.arange(whole.shape[0]))
    return jnp.sum(jnp.asarray(weights, whole.dtype) * whole)


AGREE = "agree"
WRONG = ("forward is wrong", "reverse is wrong", "both modes are wrong", "no two agree")
BROKEN = "the tape is broken: both modes are zero"
_LINES = 30
_BATCH = 512


class GradientCheck(NamedTuple):
    """The outcome of `check_gradient`, a row for each variable.

    Attributes:
        names: of the variables.
        forward, reverse: the derivatives by the two modes (n,); NaN where a mode does not exist.
        differences: those by differences, with their errors, see `Differences`.
        verdicts: for each variable "agree", which one is wrong, or why nothing can be said.
        notes: what concerns all of them.

    Example:
        >>> import jax.numpy as jnp
        >>> import jaxmbd as mbd
        >>> mbd.check_gradient(jnp.sin, jnp.array(0.5)).verdicts
        ('agree',)
    """

    names: tuple[str, ...]
    forward: np.ndarray
    reverse: np.ndarray
    differences: Differences
    verdicts: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether everything agrees everywhere."""
        return all(v == AGREE for v in self.verdicts)

    @property
    def wrong(self) -> tuple[str, ...]:
        """Variables at which a derivative is wrong."""
        bad = (*WRONG, BROKEN)
        return tuple(n for n, v in zip(self.names, self.verdicts, strict=True) if v in bad)

    def __str__(self) -> str:
        order = sorted(range(len(self.names)), key=lambda k: self.verdicts[k] == AGREE)
        rows = []
        for k in order[:_LINES]:
            three = (self.forward[k], self.reverse[k], self.differences.value[k])
            numbers = [f"{x:.15g}" for x in three]
            error = f"{self.differences.error[k]:.0e}"
            rows.append((self.names[k], *numbers, error, self.verdicts[k]))
        head = ("variable", "forward", "reverse", "differences", "error", "")
        lines = [text_table(head, rows)]
        if len(order) > _LINES:
            lines.append(f"... and {len(order) - _LINES} more")
        count = sum(v == AGREE for v in self.verdicts)
        lines.append(f"{count} of {len(self.names)} agree" + (": all" if self.ok else ""))
        return "\n".join([*lines, *self.notes])


def check_gradient(
    fn: Callable[[Any], Any],
    x: Any,
    *,
    vary: str | Sequence[str] | None = None,
    scale: Any = None,
    rtol: float = 1e-6,
) -> GradientCheck:
    """Check the derivatives of a function, in forward and in reverse mode, by differences.

    For second derivatives check ``lambda x: jax.jvp(fn, (x,), (v,))[1]`` or the gradient itself.

    Args:
        fn: a function of x that JAX can differentiate; results of several numbers are weighed into
            one by fixed weights.
        x: a mechanism, an array, or a pytree of arrays.
        vary: for a mechanism, the paths or patterns of the numbers to check; by default all.
        scale: size (n,) or one number of the changes that matter for each variable; by default the
            largest number of the same array (points: or the mechanism's length).
        rtol: relative error above which a derivative is wrong; the error of the differences is
            allowed in addition.

    Returns:
        `GradientCheck`; print it for a table, the worst first.

    Example:
        >>> import jax, jax.numpy as jnp, jaxmbd as mbd
        >>> print(mbd.check_gradient(lambda x: jnp.sum(jnp.sin(x)), jnp.ones(2)).verdicts)
        ('agree', 'agree')

        A rule with a mistake in it:

        >>> @jax.custom_jvp
        ... def square(x):
        ...     return x * x
        >>> square.defjvps(lambda dx, y, x: 3.0 * x * dx)
        >>> print(mbd.check_gradient(square, 2.0).verdicts)
        ('both modes are wrong',)
    """
    numbers = _numbers_of(x, vary)
    if scale is not None:
        sizes = np.broadcast_to(np.asarray(scale, float), numbers.start.shape)
        numbers = numbers._replace(scale=sizes)
    notes: list[str] = []

    def of(vector: Any) -> Any:
        return _weighed(fn(numbers.argument(vector)))

    start = jnp.asarray(numbers.start)
    dtype = np.dtype(of(start).dtype)
    if dtype == np.float32:
        notes.append("computed in float32: differences have about three digits")
    found = _measured(_mapped(of, notes), numbers, dtype)
    forward, reverse = (_derivative(of, start, mode, notes) for mode in ("forward", "reverse"))
    verdicts = _verdicts(forward, reverse, found, rtol)
    return GradientCheck(numbers.names, forward, reverse, found, verdicts, tuple(notes))


def _mapped(of: Callable[..., Any], notes: list[str]) -> Callable[[np.ndarray], np.ndarray]:
    """`of` for many vectors (b, n), in batches of one size; one by one where that is impossible."""
    batched = jax.jit(jax.vmap(of))

    def run(x: np.ndarray) -> np.ndarray:
        size = min(_BATCH, len(x))
        padded = np.concatenate([x, np.repeat(x[:1], -len(x) % size, axis=0)])
        try:
            parts = [batched(padded[k : k + size]) for k in range(0, len(padded), size)]
        except (TypeError, ValueError, jax.errors.JAXTypeError, NotImplementedError) as error:
            notes.append(f"not in batches, one by one: {_first_line(error)}")
            return np.array([float(of(jnp.asarray(row))) for row in x])
        return np.concatenate([np.asarray(p, np.float64) for p in parts])[: len(x)]

    return run


def _measured(run: Callable[[np.ndarray], np.ndarray], numbers: Numbers, dtype: Any) -> Differences:
    """The function on lines along all variables, and differences of it."""
    n = len(numbers.names)
    h = steps(numbers.scale, dtype)
    lines = np.eye(n)[:, None] * h[..., None]
    offsets = NOISE_OFFSETS[:, None] * numbers.scale * np.sin(1.0 + 2.3 * np.arange(n))
    every = np.concatenate([np.zeros((1, n)), offsets, lines.reshape(-1, n), -lines.reshape(-1, n)])
    values = run(numbers.start + every)
    here, near = values[0], values[1 : 1 + len(offsets)]
    above, below = values[1 + len(offsets) :].reshape(2, n, -1)
    level = noise(near, float(np.finfo(dtype).eps))
    return differences(np.full(n, here), above, below, h, np.full(n, level))


def _derivative(of: Callable[..., Any], x: Any, mode: str, notes: list[str]) -> np.ndarray:
    """Compiled, or else operation by operation; NaN and a note if the mode does not exist."""
    eye, gradient, text = jnp.eye(x.shape[0], dtype=x.dtype), jax.grad(of), ""

    def column(direction: Any) -> Any:
        return jax.jvp(of, (x,), (direction,))[1]

    ways: dict[str, list[Callable[[], Any]]] = {
        "forward": [lambda: jax.jit(jax.vmap(column))(eye), lambda: [column(d) for d in eye]],
        "reverse": [lambda: jax.jit(gradient)(x), lambda: gradient(x)],
    }
    for way in ways[mode]:
        try:
            return np.asarray(way(), np.float64)
        except Exception as error:  # whatever the function raises is the finding
            text = _first_line(error)
    notes.append(f"{mode} mode does not exist: {text}")
    return np.full(len(eye), np.nan)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _verdicts(
    forward: np.ndarray, reverse: np.ndarray, found: Differences, rtol: float
) -> tuple[str, ...]:
    known = np.abs(found.value)[np.isfinite(found.value)]
    typical = float(np.max(known, initial=0.0))
    rows = [Differences(*(x[k] for x in found)) for k in range(len(forward))]
    three = zip(forward, reverse, rows, strict=True)
    return tuple(_verdict(a, b, d, rtol, typical) for a, b, d in three)


def _verdict(a: float, b: float, d: Differences, rtol: float, typical: float) -> str:
    """Majority of forward a, reverse b and differences d, each within the errors."""
    if d.jump:
        return "the function jumps here"
    if d.kink:
        sides = f"{d.left:.6g} to the left, {d.right:.6g} to the right"
        return f"not smooth here: the slope is {sides}"
    modes = [x for x in (a, b) if np.isfinite(x)]
    if not modes:
        return "flagged: the derivative is not finite"
    largest = max(abs(x) for x in modes)
    if not np.isfinite(d.value) or d.error > 1e-2 * max(abs(d.value), largest, 1e-6 * typical):
        return "differences do not settle here"

    def same(x: float, y: float, error: float) -> bool:
        return abs(x - y) <= error + rtol * max(abs(x), abs(y)) + 1e-12 * typical

    error = 10.0 * float(d.error)
    first, second = same(a, float(d.value), error), same(b, float(d.value), error)
    if len(modes) < 2:
        missing = "reverse" if np.isfinite(a) else "forward"
        if first or second:
            return f"agree, but the {missing} derivative is not finite"
        return WRONG[0] if np.isfinite(a) else WRONG[1]
    if first and second:
        return AGREE if not d.edge else "agree, at the edge of where it is finite"
    if a == 0.0 and b == 0.0:
        return BROKEN
    if first or second:
        return WRONG[1] if first else WRONG[0]
    return WRONG[2] if same(a, b, 0.0) else WRONG[3]


MODES = ("forward-over-reverse", "reverse-over-forward", "forward-over-forward")


def hessian_vector(
    fn: Callable[[Any], Any], x: Any, v: Any, *, mode: str = "forward-over-reverse"
) -> Any:
    """``∇²f(x) v`` of a scalar function, a pytree like x.

    The three modes are independent of each other and agree to rounding:

    - "forward-over-reverse": the derivative of the gradient along v; one gradient's cost, whatever
      the number of variables.
    - "reverse-over-forward": the gradient of the derivative along v.
    - "forward-over-forward": a row of one kernel for each variable, without reverse mode, so it
      compiles fastest and suits few variables, and functions that only have forward mode.

    Args:
        fn: a function of a pytree that returns one number.
        x: a pytree of floating-point arrays (a mechanism, an array).
        v: a pytree like x.
        mode: one of the three.

    Raises:
        ValueError: the mode is unknown.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import hessian_vector
        >>> hessian_vector(lambda x: x[0] ** 2 * x[1], jnp.array([1.0, 2.0]), jnp.ones(2)).tolist()
        [6.0, 2.0]
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}; give one of {list(MODES)}")
    x = jax.tree_util.tree_map(jnp.asarray, x)
    v = jax.tree_util.tree_map(lambda a, b: jnp.asarray(b, a.dtype), x, v)
    if mode == "forward-over-reverse":
        return jax.jvp(jax.grad(fn), (x,), (v,))[1]
    if mode == "reverse-over-forward":
        return jax.grad(lambda y: jax.jvp(fn, (y,), (v,))[1])(x)
    flat, restore = ravel_pytree(x)
    along, _ = ravel_pytree(v)

    def row(direction: Any, x: Any, v: Any) -> Any:
        def slope(y: Any) -> Any:
            return jax.jvp(lambda z: fn(restore(z)), (y,), (v,))[1]

        return jax.jvp(slope, (x,), (direction,))[1]

    eye = np.eye(flat.shape[0], dtype=flat.dtype)
    return restore(lanes.vmap(row, in_axes=(0, None, None))(eye, flat, along))
