"""Random small JAX programs over one sample's arrays, drawn from a seed.

`program(seed)` is a function of a small pytree with example arguments. Its steps are drawn while
it is traced; shapes are static, so every trace draws the same ones. Values stay within a few units
and every step is well-conditioned, so that two correct compilations agree to a small multiple of
the rounding unit. Arguments lie on a grid of 1/64 and decisions (comparisons, indices, trip counts)
have thresholds half a cell off it, so that rounding changes none of them in float32; in float64
most are taken on computed values.
"""

from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve_triangular

from jaxmbd import lanes

SHAPES = ((), (3,), (3, 3), (4,), (2, 3), (1, 2), (2, 2, 3))
GRID = 64
LARGEST = 12  # elements of a value; larger ones are cut


def mode(seed: int) -> str:
    """Which derivatives the program has: "both", "reverse" (custom_vjp) or "forward" (while)."""
    return {2: "reverse", 3: "forward"}.get(seed % 4, "both")


def tame(x):
    """Limit a value smoothly to 3 units."""
    return x / jnp.sqrt(1 + 0.1 * x * x)


def fit(x, shape):
    return jnp.resize(x, shape) if x.shape != shape else x


@dataclass
class Draw:
    """State of the drawing of steps: random numbers, arguments, and what is allowed.

    Attributes:
        rng: decides on steps, operands and constants.
        arguments: the program's float arguments, on the grid.
        mode: as in `mode`.
        depth: how deep control flow may still nest.
        names: the steps taken, in order, for reports.
    """

    rng: np.random.Generator
    arguments: list
    mode: str
    depth: int
    names: list = field(default_factory=list)

    def below(self, n):
        return int(self.rng.integers(n))

    def number(self):
        return round(float(self.rng.uniform(-1, 1)), 3)

    def pick(self, pool, shape=None):
        """A random value, later ones with higher probability, fitted to a shape if one is given."""
        x = pool[max(self.below(len(pool)), self.below(len(pool)))]
        return x if shape is None else fit(x, shape)

    def array(self, pool):
        """A value with at least one axis, and one of its axes."""
        x = self.pick(pool)
        x = x if x.ndim else jnp.stack([x, 0.5 - x, x * x])
        return x, self.below(x.ndim)

    def decider(self, pool, shape=()):
        """A value to base a decision on, shifted off the grid."""
        off = (2 * self.below(GRID) + 1) / (2 * GRID)
        exact = self.rng.random() < 0.3 or self.arguments[0].dtype == jnp.float32
        return fit(self.pick(self.arguments if exact else pool), shape) + off

    def body(self, steps=3, mode=None):
        """A function of arrays drawn like a program; it may be traced more than once."""
        seed, depth = self.below(2**31), self.depth - 1

        def run(*xs):
            rng = np.random.default_rng(seed)
            inner = Draw(rng, self.arguments, mode or self.mode, depth)
            y = take_steps(inner, list(xs), steps)[-1]
            self.names.append(inner.names)
            return y

        return run


UNARY = {
    "neg": lambda x: 0.3 - x,
    "abs": lambda x: abs(x + 0.0371),
    "square": lambda x: 0.5 * jnp.square(x),
    "integer_pow": lambda x: tame(0.3 * x**3) + (2.5 + tame(x) * 0.3) ** -2,
    "pow": lambda x: (1.1 + x * x) ** 0.37,
    "pow_both": lambda x: (1.2 + jnp.sin(x)) ** jnp.tanh(x),
    "sqrt": lambda x: jnp.sqrt(0.5 + x * x),
    "rsqrt": lambda x: lax.rsqrt(0.5 + x * x),
    "cbrt": lambda x: jnp.cbrt(0.5 + x * x),
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": lambda x: jnp.tan(0.7 * jnp.tanh(x)),
    "asin": lambda x: jnp.arcsin(0.8 * jnp.sin(x)),
    "acos": lambda x: jnp.arccos(jnp.clip(0.4 * x, -0.9, 0.9)),
    "atan": jnp.arctan,
    "sinh": lambda x: tame(jnp.sinh(0.5 * x)),
    "cosh": lambda x: tame(jnp.cosh(0.5 * x)),
    "tanh": jnp.tanh,
    "asinh": jnp.arcsinh,
    "acosh": lambda x: jnp.arccosh(1.5 + x * x),
    "atanh": lambda x: jnp.arctanh(0.7 * jnp.sin(x)),
    "exp": lambda x: tame(jnp.exp(0.5 * x)),
    "exp2": lambda x: tame(jnp.exp2(0.5 * x)),
    "log": lambda x: jnp.log(0.4 + x * x),
    "log1p": lambda x: jnp.log1p(x * x),
    "expm1": lambda x: tame(jnp.expm1(0.5 * x)),
    "logistic": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "clip": lambda x: jnp.clip(x, -0.71, 1.03),
    "reciprocal": lambda x: 1 / (1.3 + x * x),
    "stop_gradient": lambda x: 0.5 * x + lax.stop_gradient(0.5 * x * x),
    "cast": lambda x: (x + x.astype(jnp.float64) * 0.5).astype(x.dtype),
}
BINARY = {
    "add": lambda a, b: 0.6 * (a + b),
    "sub": lambda a, b: 0.6 * (a - b),
    "mul": lambda a, b: tame(a * b),
    "div": lambda a, b: a / (1.4 + b * b),
    "atan2": lambda a, b: jnp.arctan2(a, 1.2 + b * b),
    "maximum": lambda a, b: 0.6 * a + lax.stop_gradient(jnp.maximum(a, 0.3 - b)) * 0.5,
    "logaddexp": lambda a, b: jnp.logaddexp(a, b + 0.0371),
    "rem": lambda a, b: jnp.fmod(a, 9.1 + b * b),
    "pow": lambda a, b: (1.5 + jnp.sin(a)) ** jnp.tanh(b),
}
REDUCE = {
    "sum": lambda x, i: tame(jnp.sum(x, axis=i)),
    "sum_all": lambda x, i: tame(jnp.sum(x)),
    "mean": lambda x, i: jnp.mean(x, axis=i, keepdims=True),
    "prod": lambda x, i: jnp.prod(1.1 + 0.3 * jnp.sin(x), axis=i),
    "logsumexp": lambda x, i: jax.nn.logsumexp(x, axis=i),
    "softmax": lambda x, i: jax.nn.softmax(x, axis=i),
    "norm": lambda x, i: jnp.sqrt(0.3 + jnp.linalg.norm(x + 1.7, axis=i) ** 2) * 0.5,
    "cumsum": lambda x, i: tame(jnp.cumsum(x, axis=i)),
    "cumsum_reverse": lambda x, i: tame(lax.cumsum(x, axis=i, reverse=True)),
    "cumprod": lambda x, i: jnp.cumprod(1.1 + 0.3 * jnp.sin(x), axis=i),
}
SHAPE = {
    "reshape": lambda d, x, i: x.reshape(-1),
    "transpose": lambda d, x, i: x.T,
    "moveaxis": lambda d, x, i: jnp.moveaxis(x, i, 0),
    "concatenate": lambda d, x, i: jnp.concatenate([x, 0.3 - x], axis=i),
    "stack": lambda d, x, i: jnp.stack([x, 0.3 - x], axis=i),
    "pad": lambda d, x, i: jnp.pad(x, [(1, 0)] * x.ndim, constant_values=0.3),
    "lax_pad": lambda d, x, i: lax.pad(x, x.dtype.type(0.5), [(d.below(2) - (n > 1), 1, d.below(2))
                                                            for n in x.shape]),
    "flip": lambda d, x, i: jnp.flip(x, axis=i),
    "broadcast": lambda d, x, i: jnp.broadcast_to(x, (2, *x.shape)),
    "expand": lambda d, x, i: jnp.expand_dims(x, i),
    "squeeze": lambda d, x, i: jnp.squeeze(x),
    "tile": lambda d, x, i: jnp.tile(x, 2),
    "roll": lambda d, x, i: jnp.roll(x, 1, axis=i),
    "slice": lambda d, x, i: lax.slice_in_dim(x, d.below(x.shape[i]), None, axis=i),
    "stride": lambda d, x, i: x[::-2],
    "gather": lambda d, x, i: jnp.take(x, d.rng.integers(x.shape[i], size=3), axis=i),
    "diagonal": lambda d, x, i: jnp.diag(fit(x, (3,))) + jnp.tril(fit(x, (3, 3))),
    "set": lambda d, x, i: x.at[d.below(len(x))].set(d.number()),
    "scatter_add": lambda d, x, i: x.at[jnp.array([0, len(x) - 1, 0])].add(0.3 * x[:1]),
    "scatter_mul": lambda d, x, i: x.at[..., d.below(x.shape[-1])].mul(d.number()),
}  # fmt: skip


@jax.custom_jvp
def crooked_forward(x):
    return jnp.sin(x)


@crooked_forward.defjvp
def _(primals, tangents):
    """A rule that is not the true derivative, to detect differentiation of the sine itself."""
    return jnp.sin(primals[0]), 0.7 * tangents[0] * primals[0]


@jax.custom_vjp
def crooked_reverse(x, y):
    return jnp.sin(x) * y


crooked_reverse.defvjp(
    lambda x, y: (jnp.sin(x) * y, (x, y)),
    lambda saved, ct: (0.7 * ct * saved[1], ct * tame(saved[0])),
)


def dot(d, pool):
    a, b = d.pick(pool, (2, 3)), d.pick(pool, (3, 2))
    c, e = d.pick(pool, (2, 3)), d.pick(pool, (2, 3, 2))
    products = (
        lambda: a @ b,
        lambda: jnp.dot(a, c[0]),
        lambda: jnp.vdot(a, c),
        lambda: jnp.einsum("ij,kj->ik", a, c),
        lambda: jnp.einsum("bi,bij->bj", a, e),
        lambda: jnp.einsum("bi,bi->b", a, c),
        lambda: jnp.einsum("ij,ij,jk->ki", a, c, b),
        lambda: jnp.tensordot(a, e, 2),
        lambda: jnp.outer(a[0], c[1]),
        lambda: jnp.cross(a, c),
        lambda: jnp.kron(a[0], b[0]),
        lambda: e @ e[0].T @ a.T,
    )
    return tame(0.4 * products[d.below(len(products))]())


def cholesky(d, pool):
    n = 2 + d.below(2)
    a, b = jnp.tanh(d.pick(pool, (n, n))), d.pick(pool, (n, 2))
    lower = jnp.linalg.cholesky(a @ a.T + 1.5 * jnp.eye(n, dtype=a.dtype))
    solved = solve_triangular(lower, b[:, 0] if d.below(2) else b, lower=True)
    factor = jnp.tril(a, -1) + jnp.eye(n, dtype=a.dtype) * 3
    return tame(solve_triangular(factor.T, solved, trans=d.below(2), unit_diagonal=d.below(2) > 0))


def linear(d, pool):
    """LU, with rows that must be exchanged, and eigenvalues that are apart."""
    n = 2 + d.below(3)
    a, b = jnp.tanh(d.pick(pool, (n, n))), d.pick(pool, (n,))
    rows, places = jnp.array(d.rng.permutation(n)), jnp.arange(n, dtype=a.dtype)
    strong = (0.4 * a + 2.5 * jnp.eye(n, dtype=a.dtype))[rows]
    w, v = jnp.linalg.eigh(0.2 * (a + a.T) + jnp.diag(3.0 * places)[rows][:, rows])
    uses = (
        lambda: jnp.linalg.solve(strong, b),
        lambda: jnp.linalg.inv(strong),
        lambda: 0.1 * jnp.linalg.det(strong) + jnp.linalg.slogdet(strong)[1],
        lambda: w,
        lambda: v * v * b,
        lambda: jnp.linalg.qr(strong)[1] @ b,
        lambda: 0.3 * jnp.linalg.svd(strong * (1.0 + places), compute_uv=False),
    )
    return tame(uses[d.below(len(uses))]())


def ordered(d, pool):
    """Numbers that are apart, and what goes with them."""
    x = fit(d.pick(d.arguments), (5,)) + jnp.arange(5, dtype=d.arguments[0].dtype) / 1024
    y = d.pick(pool, (5,))
    uses = (
        lambda: jnp.sort(x) * y,
        lambda: y[jnp.argsort(-x)],
        lambda: lax.sort((x, y), num_keys=1)[1],
        lambda: lax.top_k(x, 2)[0] * y[lax.top_k(x, 3)[1][1:]],
        lambda: jnp.median(x) * y,
    )
    return uses[d.below(len(uses))]()


def compare(d, pool):
    x = d.pick(pool)
    y, key = d.pick(pool, x.shape), d.decider(pool, x.shape)
    masks = (
        lambda: key > 0.5,
        lambda: ~(key <= 0.2) & (key < 1),
        lambda: (key >= 1) | (key != key),
        lambda: jnp.logical_xor(key > 0, jnp.any(key > 1)),
        lambda: jnp.all(key > -1) & (jnp.isfinite(key) == (key < 1)),
        lambda: jnp.floor(key) == 0,
    )
    return jnp.where(masks[d.below(len(masks))](), x, y)


def rounded(d, pool):
    key, x = d.decider(pool, (3,)), d.pick(pool, (3,))
    rounders = (jnp.floor, jnp.ceil, jnp.round, jnp.trunc, jnp.sign, lambda x: x % 2)
    return tame(rounders[d.below(len(rounders))](1.5 * key + 1 / 512) + x)


def integers(d, pool):
    n = (32 * d.decider(pool, (4,))).astype(jnp.int32)
    operations = (
        lambda: n * 3 + n // 5,
        lambda: n % 7 - lax.rem(n, jnp.int32(5)),
        lambda: jnp.abs(n) // 3 ** d.below(3),
        lambda: (n & 12) | (n >> 2),
        lambda: (n ^ 5) + (n << 1),
        lambda: lax.div(n, jnp.int32(-4)) + jnp.sign(n),
        lambda: jnp.cumsum(jnp.where(n > 0, n, ~n)),
        lambda: jnp.minimum(n, 7).astype(jnp.uint8).astype(jnp.int32) + (n > 3),
    )
    return 0.02 * operations[d.below(len(operations))]() * jnp.cos(d.pick(pool, (4,)))


def extreme(d, pool):
    """Of arguments only: XLA may round computed values differently when it tests for ties."""
    x, y = fit(d.pick(d.arguments), (2, 3)), d.pick(d.arguments)[..., None] + 1 / 128
    uses = (
        lambda: jnp.maximum(x, fit(y, (2, 3))),
        lambda: jnp.minimum(x, fit(y, (3,))),
        lambda: jnp.max(x, axis=d.below(2)),
        lambda: jnp.min(x),
        lambda: lax.cummax(x, axis=d.below(2)),
        lambda: lax.cummin(x, axis=1, reverse=True),
        lambda: jax.nn.relu(x) + jnp.fmax(x, 0.5078125),
        lambda: jnp.hypot(x, fit(y, (2, 3))),
    )
    z = uses[d.below(len(uses))]()
    return tame(z * d.pick(pool, z.shape))


def index(d, pool):
    """Reads and writes at computed indices; some are out of bounds and clamped."""
    key = d.decider(pool, (3,))
    k = (jnp.argmax if d.below(2) else jnp.argmin)(key).astype(jnp.int32)
    n = jnp.floor(2 * key[0]).astype(jnp.int32)
    x, y = d.pick(pool, (3, 3)), d.pick(pool, (2, 2))
    uses = (
        lambda: x[k],
        lambda: x[k, n],
        lambda: x[jnp.array([0, 2]), k],
        lambda: x[jnp.array([0, 2, 1]), jnp.stack([k, k, 2 - k])],
        lambda: lax.dynamic_slice(x, (k, n), (2, 2)),
        lambda: lax.dynamic_update_slice(x, y, (n, k)),
        lambda: lax.dynamic_index_in_dim(x, n, axis=1),
        lambda: x.at[k].set(y[0, 0]),
        lambda: x.at[k, jnp.stack([k, 2 - k])].add(y[0]),
        lambda: jnp.take_along_axis(x, jnp.stack([k, k, 1 * (k > 0)])[None], axis=0),
    )
    return uses[d.below(len(uses))]()


def interp(d, pool):
    at = jnp.array([-1.5, -0.4, 0.3, 1.1, 2.0])
    table = jnp.array([d.number() for _ in range(5)]) if d.below(2) else d.pick(pool, (5,))
    x = d.decider(pool, (2,))
    return jnp.interp(x, at.astype(x.dtype), table.astype(x.dtype))


def branch(d, pool):
    x, key = d.pick(pool), d.decider(pool)
    f, g, h = d.body(2), d.body(2), d.body(1)
    if d.below(2):
        return lax.cond(key > 0.5, f, lambda x: fit(g(x), jax.eval_shape(f, x).shape), x)
    branches = [lambda x, b=b: fit(b(x), (3,)) for b in (f, g, h)]
    return lax.switch(jnp.floor(2 * key).astype(jnp.int32), branches, x)


def scan(d, pool):
    """A scan with carries, inputs and outputs; in long ones the body damps the carries."""
    length = (0, 1, 3, 5, 17, 40)[d.below(6)]
    xs = jnp.stack([d.pick(pool, (2,)) * c for c in np.linspace(0.5, 1, length)] or [jnp.ones(2)])
    body = d.body(2) if length < 9 else (lambda x: tame(x[::-1] * jnp.cos(x)))
    outside = d.pick(pool, (2,))

    def step(carry, x):
        c, n = carry
        c = 0.5 * c + 0.4 * jnp.tanh(fit(body(c + x), (2,))) + 0.1 * outside
        return (c, n + 1), (c * 0.5 + x, jnp.sin(n))

    init = (d.pick(pool, (2,)), jnp.zeros((), outside.dtype))
    xs = xs[:length].astype(outside.dtype)
    (c, n), (ys, zs) = lax.scan(step, init, xs, reverse=d.below(2) > 0, unroll=1 + d.below(2))
    return jnp.concatenate([c, jnp.tanh(n)[None], ys.reshape(-1)[-4:], zs[:2]])


def loop(d, pool):
    """A counted loop; in forward programs its bounds may depend on the sample."""
    key, weight = d.decider(pool), d.pick(pool, (3,))
    body = d.body(2)
    trips = jnp.floor(4 * key).astype(jnp.int32) if d.mode == "forward" and d.below(2) else 3

    def step(i, c):
        return 0.5 * c + 0.4 * jnp.tanh(fit(body(c + 0.1 * i), (3,))) * weight

    return lax.fori_loop(0, trips, step, d.pick(pool, (3,)))


def forgotten_carry(d, pool):
    """A carry that is overwritten, so that it has no derivative, then read by a second loop."""
    weight, body = d.pick(pool, (2,)), d.body(1)

    def step(i, state):
        c = 0.5 * state[0] + 0.4 * jnp.sin(fit(body(state[0]), (2,)) * weight)
        return c, lax.stop_gradient(c + 0.1 * i)

    start = jnp.full(2, d.number(), weight.dtype)
    c, kept = lax.fori_loop(0, 2 + d.below(2), step, (d.pick(pool, (2,)), start))
    return c + lax.fori_loop(0, 3, lambda i, x: jnp.cos(x) * weight, jnp.tanh(kept))


def empty_rows(d, pool):
    """A scan over rows without elements, as mechanisms without constraints have."""
    weight, x = d.pick(pool, (2,)), d.pick(pool, (2,))
    rows = jnp.zeros((2 + d.below(3), 0, 2), weight.dtype) * weight

    def step(c, row):
        c = tame(jnp.concatenate([row, (c * weight)[None]]).sum(0) + jnp.cos(c))
        return c, row

    c, rows = lax.scan(step, x, rows)
    return jnp.concatenate([c, rows.reshape(-1)])


def while_loop(d, pool):
    """A while loop whose trip count depends on the sample, from zero to about twenty."""
    key = jnp.abs(d.decider(pool)) + 0.001
    weight = d.pick(pool, (2,))

    def step(state):
        height, c, n = state
        return height * 0.75, 0.5 * c + 0.4 * jnp.sin(c[::-1] + weight), n + 1

    height, c, n = lax.while_loop(lambda s: s[0] > 0.0137, step, (key, d.pick(pool, (2,)), 0))
    return jnp.append(c, 0.05 * n + height)


def stopped_while(d, pool):
    """A while loop that has no derivative and that some samples skip, in programs of all modes."""
    weight = lax.stop_gradient(jnp.sin(d.pick(pool, (2,))))
    start = lax.stop_gradient(d.pick(pool, (2,)))
    height = lax.stop_gradient(jnp.abs(d.decider(pool)))

    def step(state):
        height, c = state
        return height * 0.75, 0.5 * c + 0.4 * jnp.sin(c[::-1] * weight)

    _, c = lax.while_loop(lambda s: s[0] > 0.5137, step, (height, start))
    return jnp.cos(c * weight) * d.pick(pool, (2,)) + weight


def rare(d, pool):
    """What only some samples compute, of values without derivatives."""
    held = [lax.stop_gradient(d.pick(pool, (2,))) for _ in range(2)]
    condition = lax.stop_gradient(d.decider(pool)) > 0.5

    def fn(x, y):
        return tame(x * jnp.sin(y) + y / (1.3 + x * x))

    return lanes.rarely(condition, fn, held[0], *held) * d.pick(pool, (2,)) + held[1]


def nested_vmap(d, pool):
    x, y = d.pick(pool, (2, 3)), d.pick(pool, (3,))
    body, axes = d.body(2), ((0, None), (1, None), (1, 0), (None, 0))[d.below(4)]
    return jax.vmap(lambda a, b: fit(body(a, b), (3,)), in_axes=axes, out_axes=d.below(2))(x, y)


def inner_grad(d, pool):
    body, x = d.body(2, mode="both"), d.pick(pool)
    return tame(jax.grad(lambda x: jnp.sum(body(x)))(x))


def inner_jvp(d, pool):
    body, x = d.body(2, mode="both"), d.pick(pool)
    return tame(jax.jvp(body, (x,), (d.pick(pool, x.shape),))[1])


# fmt: off
DATA = {
    f.__name__: f
    for f in (
        dot, cholesky, linear, ordered, compare, rounded, integers, extreme, index, interp,
    )
}
CONTROL = {
    f.__name__: f
    for f in (
        branch, scan, loop, forgotten_carry, empty_rows, while_loop, stopped_while, rare,
        nested_vmap, inner_grad, inner_jvp,
    )
} | {
    "jit": lambda d, pool: jax.jit(d.body())(d.pick(pool), d.pick(pool)),
    "filter_jit": lambda d, pool: eqx.filter_jit(d.body())(d.pick(pool)),
    "checkpoint": lambda d, pool: jax.checkpoint(d.body())(d.pick(pool), d.pick(pool)),
    "custom_jvp": lambda d, pool: crooked_forward(d.pick(pool)),
    "custom_vjp": lambda d, pool: crooked_reverse(d.pick(pool, (3,)), d.pick(pool, (3,))),
}
# fmt: on
ONLY = {"while_loop": "forward", "custom_vjp": "reverse"}


def take(d, pool):
    """One step: its name and its result."""
    tables = (UNARY, UNARY, BINARY, REDUCE, SHAPE, SHAPE, DATA, DATA, CONTROL, CONTROL)
    table = tables[d.below(len(tables) if d.depth else len(tables) - 2)]
    names = [name for name in table if d.mode == ONLY.get(name, d.mode)]
    name = names[d.below(len(names))]
    step = table[name]
    if table is UNARY:
        return name, step(d.pick(pool))
    if table is BINARY:
        a, b = d.pick(pool), d.pick(pool)
        return name, step(a, b if a.shape[a.ndim - b.ndim :] == b.shape else fit(b, a.shape))
    if table is REDUCE:
        return name, step(*d.array(pool))
    if table is SHAPE:
        return name, step(d, *d.array(pool))
    return name, step(d, pool)


def take_steps(d, pool, count):
    """The pool with the results of some steps appended, cut to a few elements each."""
    for _ in range(count):
        name, y = take(d, pool)
        d.names.append(name)
        pool.append(y if y.size <= LARGEST else y.reshape(-1)[:LARGEST])
    return pool


def program(seed: int, dtype: type = np.float64, steps: int | None = None):
    """Return (fn, (floats, rest)), where fn(floats, rest) is (floats out, other results).

    Derivatives are taken of the floats; the rest are integers and booleans. `steps` truncates the
    program, to find the step that fails; `fn.steps` lists the steps once fn has been traced.
    """
    rng = np.random.default_rng(seed)
    shapes = [SHAPES[k] for k in rng.integers(len(SHAPES), size=3)]
    count = int(rng.integers(8, 15))

    def fn(floats, rest):
        arguments = jax.tree.leaves(floats)
        d = Draw(np.random.default_rng(seed), arguments, mode(seed), depth=2)
        x = fit(arguments[0], (4,))
        pool = [*arguments, x[rest["n"]] * rest["n"], jnp.where(rest["flag"], x, 0.3 - x)]
        pool = take_steps(d, pool, count if steps is None else steps)
        fn.steps = d.names
        everything = tame(jnp.stack([jnp.mean(x) * (1 + 0.1 * k) for k, x in enumerate(pool)]))
        other = {"n": 2 * rest["n"] + jnp.argmax(x), "flag": ~rest["flag"] & (d.decider(pool) > 0)}
        return (pool[-1], {"all": everything, "last": pool[-2]}), other

    a, b, c = (grid(rng, shape, dtype) for shape in shapes)
    rest = {"n": np.int32(rng.integers(4)), "flag": np.bool_(rng.integers(2))}
    return fn, ({"a": a, "bc": (b, c)}, rest)


def grid(rng, shape, dtype: type = np.float64):
    """Random numbers on the grid."""
    return (np.round(GRID * np.clip(rng.normal(size=shape), -2.5, 2.5)) / GRID).astype(dtype)
