"""Hunt for NaN: random states and designs of all zoo mechanisms and of the robots in tests/data.

    python benchmarks/nan_hunt.py [--samples 1000000] [--only NAMES] [--functions NAMES]
        [--minutes 20] [--seed N] [--json FILE]

A value that is finite and reported as good must have a finite gradient, by reverse mode, that
agrees with forward mode along a random direction, unless that is flagged by NaN; where differences
of two steps agree with each other, it is compared with them too. Designs are as drawn, scattered,
with massless bodies or with points that coincide; states as drawn, near it, anywhere, at rest,
fast. Exits with 1 if any is bad.

Where rows are redundant states are assembled, and only the numbers of bodies and forces vary;
derivatives are by them: off its constraints, or with points out of its plane, such a loop does not
close, and there is no derivative. Nor is there by a mass that is zero, by the points of a design
of which two coincide, and of an idle spin without inertia, which is left out. An assembly is near
its guess by a path of Newton's steps, so that differences of what it is free in are others.

A sample that would be bad counts as one without a derivative where an independent look says so:
differences to both sides, of three steps, do not agree with each other, as at the kink of a damper
at rest, where a spring has lost its length and its force its direction, or where rounding hides
all; or an assembly has ended where the rows have lost rank, by singular values in NumPy, as at a
dead centre.
"""

from __future__ import annotations

import inspect
import secrets
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _script

_script.start()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402
from throughput_cases.machine import commit  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd import lanes  # noqa: E402

MODELS = Path(__file__).resolve().parent.parent / "tests/data/models"
BATCH = 2048
DESIGNS = ("as drawn", "scattered", "massless", "coincident")
STATES = ("as drawn", "near", "anywhere", "at rest", "fast")
FASTEST = 1e3  # [1/s]
MODES_AGREE = 1e-6  # of the sum of the sizes of all products
DIFFERENCES_AGREE = 1e-3
STEPS_AGREE = 1e-5  # of two differences, so that they count
ROUNDING = 1e-9  # of derivatives, along a direction
SIDES_AGREE = 1e-2  # of differences to both sides, so that there is a derivative
RANK = 1e-5  # of the largest singular value
OUTCOMES = (
    "good", "flagged", "forward flagged", "no derivative", "not finite", "modes differ",
    "not differences",
)  # fmt: skip
NONE, BAD = 3, OUTCOMES[4:]


def mechanisms() -> dict[str, Callable[[], mbd.Mechanism]]:
    """Makers of all mechanisms, by name."""
    found: dict[str, Callable[[], mbd.Mechanism]] = {}
    for name in mbd.zoo.__all__:
        make = getattr(mbd.zoo, name)
        if inspect.isfunction(make) and inspect.signature(make).return_annotation in (
            mbd.Mechanism,
            "Mechanism",
        ):
            found[name] = make
    for path in sorted(MODELS.glob("*.xml")):
        found[path.stem] = lambda path=path: mbd.io.load_mjcf(path).mechanism
    return found


class Subject:
    """A mechanism as a vector of all its numbers.

    Attributes:
        x: the numbers (n,).
        free: which of x vary (n,).
        masses: where in x those of the bodies' masses and inertias are, a row for each body.
        points: where those of the points are, a row for each; none if they do not vary.
        size: of x, q and v.
    """

    def __init__(self, mech: mbd.Mechanism):
        numbers, self.fixed = eqx.partition(
            jax.tree_util.tree_map(lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, mech),
            eqx.is_inexact_array,
        )
        flat, self.unravel = ravel_pytree(numbers)
        self.x = np.asarray(flat)
        places = self.unravel(jnp.arange(len(self.x), dtype=flat.dtype))
        rows = [(b.mass, b.inertia) for b in places.bodies.values() if b is not None]
        self.masses = [_indices(row) for row in rows]
        top, self.q = mbd.topology(mech), np.asarray(mbd.neutral(mech))
        self.nv, self.closed = top.nv, top.nc > 0
        freedom = mbd.mobility(mech, self.q) if self.closed else None
        rigid = not (freedom and freedom.redundant)
        self.redundant = not rigid
        self.idle = bool(freedom and freedom.idle)
        fixed = [] if rigid else _indices((places.points, places.joints))
        self.free = np.isin(np.arange(len(self.x)), fixed, invert=True)
        self.points = [_indices(p) for p in places.points.values()] if rigid else []
        self.points = [p for p in self.points if len(p) == 3]
        self.place = jax.jit(lanes.vmap(self._placed))
        self.rows = jax.jit(lanes.vmap(self._rows))
        self.rank = int(_ranks(mbd.constraint_jacobian(mech, self.q))) if self.closed else 0

    @property
    def size(self) -> tuple[int, int, int]:
        return len(self.x), len(self.q), self.nv

    def mechanism(self, x: Any) -> mbd.Mechanism:
        return eqx.combine(self.unravel(x), self.fixed)

    def _placed(self, z: Any) -> Any:
        """The same numbers with the coordinates assembled and the speeds on the constraints."""
        x, q, v = jnp.split(z, np.cumsum(self.size)[:2].tolist())
        mech = self.mechanism(x)
        q = mbd.assemble(mech, guess=q, throw=False).q
        return jnp.concatenate([x, q, mbd.assemble_velocity(mech, q, guess=v)])

    def _rows(self, z: Any) -> Any:
        """The constraints' rows where they are assembled."""
        x, q, _ = jnp.split(z, np.cumsum(self.size)[:2].tolist())
        mech = self.mechanism(x)
        return mbd.constraint_jacobian(mech, mbd.assemble(mech, guess=q, throw=False).q)

    def directions(
        self, rng: np.random.Generator, z: np.ndarray, kinds: np.ndarray, kind: str
    ) -> np.ndarray:
        """A random direction for each sample, along which there is a derivative."""
        n = len(self.x)
        along = rng.normal(size=z.shape) * (np.abs(z) + 1e-3)
        along[:, :n] *= self.free
        along[:, n:] *= kind != "assembly" and not self.redundant
        for places in self.masses:
            along[:, places] *= z[:, places] != 0.0
        for places in self.points:
            along[:, places] *= kinds[:, :1] != DESIGNS.index("coincident")
        return along

    def drawn(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples (count, n + nq + nv), and which kind each is of, design and state."""
        kinds = rng.integers(0, [len(DESIGNS), len(STATES)], (count, 2))
        if self.idle:
            kinds[kinds[:, 0] == DESIGNS.index("massless"), 0] = 1
        x = np.tile(self.x, (count, 1))
        x *= 1.0 + 0.05 * (kinds[:, :1] > 0) * self.free * rng.normal(size=x.shape)
        for row, kind in zip(x, kinds[:, 0], strict=True):
            if kind == 2 and self.masses:
                row[self.masses[rng.integers(len(self.masses))]] = 0.0
            if kind == 3 and len(self.points) > 1:
                a, b = rng.choice(len(self.points), 2, replace=False)
                row[self.points[a]] = row[self.points[b]]
        away = np.array([0.0, 0.05, 2.0, 0.05, 0.05])[kinds[:, 1], None]
        q = self.q + away * rng.normal(size=(count, len(self.q)))
        fast = np.array([0.0, 1.0, 1.0, 0.0, np.nan])[kinds[:, 1], None]
        fast = np.where(np.isnan(fast), FASTEST ** rng.random((count, 1)), fast)
        v = fast * rng.normal(size=(count, self.nv))
        return np.concatenate([x, q, v], axis=1), kinds


def _ranks(rows: Any) -> np.ndarray:
    values = np.linalg.svd(np.nan_to_num(np.asarray(rows)), compute_uv=False)
    return np.sum(values > RANK * values.max(axis=-1, keepdims=True), axis=-1)


def _indices(tree: Any) -> np.ndarray:
    leaves = [np.ravel(x) for x in jax.tree_util.tree_leaves(tree)]
    return np.concatenate(leaves).astype(int) if leaves else np.zeros(0, int)


def _weighed(x: Any) -> Any:
    return jnp.sum(x * np.cos(1.0 + np.arange(x.shape[0])))


def _dynamics(mech: mbd.Mechanism, q: Any, v: Any) -> tuple[Any, Any]:
    return _weighed(mbd.forward_dynamics(mech, q, v)[0]), True


def _run(mech: mbd.Mechanism, q: Any, v: Any) -> tuple[Any, Any]:
    """Three steps."""
    run = mbd.simulate(mech, q, v, steps=3, dt=1e-3, throw=False, outputs_only=True)
    return _weighed(run.v[-1]), run.status == 0


def _assembly(mech: mbd.Mechanism, q: Any, v: Any) -> tuple[Any, Any]:
    """Position and speeds that are nearest to some."""
    found = mbd.assemble(mech, guess=jax.lax.stop_gradient(q), throw=False)
    speeds = mbd.assemble_velocity(mech, found.q, guess=jax.lax.stop_gradient(v))
    return _weighed(found.q) + _weighed(speeds), found.status == 0


FUNCTIONS = {"forward dynamics": _dynamics, "run": _run, "assembly": _assembly}


class Hunt:
    """The kernels of a function of a subject: value, reverse mode, forward mode."""

    def __init__(self, subject: Subject, function: Callable[..., tuple[Any, Any]]):
        ends = np.cumsum(subject.size)[:2].tolist()

        def value(z: Any) -> tuple[Any, Any]:
            x, q, v = jnp.split(z, ends)
            number, good = function(subject.mechanism(x), q, v)
            return number, jnp.asarray(good, bool)

        def number(z: Any) -> Any:
            return value(z)[0]

        self.value = jax.jit(lanes.vmap(value))
        self.reverse = jax.jit(lanes.vmap(jax.grad(number)))
        self.forward = jax.jit(lanes.vmap(lambda z, d: jax.jvp(number, (z,), (d,))[1]))

    def outcomes(self, z: np.ndarray, along: np.ndarray, differences: bool) -> np.ndarray:
        """For each sample the index of its outcome; `differences` says whether to compare them."""
        value, good = map(np.asarray, self.value(z))
        slope, forward = np.asarray(self.reverse(z)), np.asarray(self.forward(z, along))
        with np.errstate(all="ignore"):
            products = np.where(along == 0.0, 0.0, slope * along)
            reverse, size = products.sum(axis=1), np.abs(products).sum(axis=1)
            rounding = ROUNDING * np.maximum(1.0, np.abs(value))
            differ = np.abs(reverse - forward) > rounding + MODES_AGREE * size
            near, far = (self.difference(z, h * along) / h for h in (1e-6, 4e-6))
            told = np.abs(near - far) <= STEPS_AGREE * np.abs(near)
            allowed = ROUNDING + DIFFERENCES_AGREE * np.maximum(size, np.abs(near))
            off = differences & told & (np.abs(reverse - near) > allowed)
        flagged, ended = ~(good & np.isfinite(value)), ~np.isfinite(products).all(axis=1)
        tests = [flagged, ended, differ, off, ~np.isfinite(forward)]
        return np.select(tests, [1, 4, 5, 6, 2], 0)

    def difference(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Half the difference of the values a step ahead and behind."""
        return 0.5 * (np.asarray(self.value(z + step)[0]) - np.asarray(self.value(z - step)[0]))

    def rough(self, z: np.ndarray, along: np.ndarray) -> np.ndarray:
        """Where differences to both sides, of three steps, do not agree; not where one is NaN."""
        here = np.asarray(self.value(z)[0])
        slopes = [
            (np.asarray(self.value(z + h * along)[0]) - here) / h
            for h in (1e-7, -1e-7, 1e-6, -1e-6, 4e-6, -4e-6)
        ]
        with np.errstate(all="ignore"):
            return np.ptp(slopes, axis=0) > SIDES_AGREE * np.abs(slopes).max(axis=0)


def hunted(name: str, subject: Subject, kind: str, samples: int, seed: int) -> dict[str, Any]:
    """Counts of outcomes, and where the first bad samples are."""
    hunt, counts, bad = Hunt(subject, FUNCTIONS[kind]), np.zeros(len(OUTCOMES), int), []
    for k in range(-(-samples // BATCH)):
        rng = np.random.default_rng([seed, zlib.crc32(f"{name}, {kind}".encode()), k])
        z, kinds = subject.drawn(rng, BATCH)
        if subject.redundant or (kind == "run" and subject.closed):
            z = np.asarray(subject.place(z))
        along = subject.directions(rng, z, kinds, kind)
        found = hunt.outcomes(z, along, kind != "assembly")
        if np.any(found > NONE):
            assembled = kind == "assembly"
            none = _ranks(subject.rows(z)) < subject.rank if assembled else hunt.rough(z, along)
            found = np.where((found > NONE) & none, NONE, found)
        counts += np.bincount(found, minlength=len(OUTCOMES))
        for i in np.flatnonzero(found > NONE)[:3]:
            design, state = DESIGNS[kinds[i, 0]], STATES[kinds[i, 1]]
            bad.append(f"{OUTCOMES[found[i]]}: batch {k}, sample {i}: {design}, {state}")
    return dict(zip(OUTCOMES, counts.tolist(), strict=True)) | {"bad": bad[:20]}


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--only", help="names of mechanisms, with commas")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    options = parser.parse_args()
    makers, kinds = mechanisms(), options.functions.split(",")
    names = options.only.split(",") if options.only else list(makers)
    each = -(-options.samples // (len(names) * len(kinds)))
    end = time.monotonic() + 60.0 * options.minutes
    found: dict[str, Any] = {"commit": commit(), "seed": options.seed, "cases": {}}
    print("seed", options.seed, flush=True)
    mechs = {name: makers[name]() for name in names}
    for name in sorted(names, key=lambda n: mbd.topology(mechs[n]).nv):
        if time.monotonic() > end:
            break
        subject = Subject(mechs[name])
        for kind in kinds:
            if kind == "assembly" and subject.idle:
                continue  # idle coordinates have no derivative of their own
            start = time.monotonic()
            case = hunted(name, subject, kind, each, options.seed)
            found["cases"][f"{name}, {kind}"] = case
            print(f"{name}, {kind}: {case} in {time.monotonic() - start:.0f} s", flush=True)
            _script.write(options.json, found)
    done = found["cases"].values()
    total = {outcome: sum(case[outcome] for case in done) for outcome in OUTCOMES}
    found["all"] = total
    _script.write(options.json, found)
    print(sum(total.values()), "samples of", len(done), "cases of", len(names) * len(kinds), total)
    return int(any(total[outcome] for outcome in BAD))


if __name__ == "__main__":
    sys.exit(main())
