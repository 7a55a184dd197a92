"""A case: a mechanism, and how the designs of a batch differ from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np

import jaxmbd as mbd

Design = dict[str, dict[str, Any]]  # the numbers that vary, by name of point or body
CHUNK = 4096


@dataclass(frozen=True)
class Case:
    """One mechanism of the benchmark.

    Attributes:
        name: as given to `--cases`.
        title: for tables.
        make: returns the mechanism as published.
        dt: step of its rollouts [s].
        spread: standard deviation of hardpoints and centres of mass [m]; masses and inertias vary
            by 3 %.
        directions: in which hardpoints vary; a planar mechanism stays in its plane.
        peers: whether other engines run the same mechanism.
        small: whether batches up to a million are run by default.
    """

    name: str
    title: str
    make: Callable[[], mbd.Mechanism]
    dt: float = 1e-3
    spread: float = 5e-3
    directions: tuple[float, float, float] = (1.0, 1.0, 1.0)
    peers: bool = False
    small: bool = False

    @cached_property
    def mech(self) -> mbd.Mechanism:
        return self.make()

    @cached_property
    def nominal(self) -> Design:
        """The numbers that vary, as published; directions of axes and laws of forces do not."""
        m = self.mech
        leaves: Design = {"points": dict(m.points)}
        coms = {n: body.com for n, body in m.bodies.items()}
        leaves["com"] = {n: x for n, x in coms.items() if isinstance(x, np.ndarray)}
        leaves["mass"] = {n: body.mass for n, body in m.bodies.items()}
        leaves["inertia"] = {n: np.ones(()) for n in m.bodies}  # a factor of the published one
        return leaves

    def mechanism(self, design: Design) -> mbd.Mechanism:
        """The mechanism of one design, traceable and of the design's number type."""
        names = {key: list(part) for key, part in self.nominal.items()}
        dtype = design["mass"][names["mass"][0]].dtype
        mech = jax.tree_util.tree_map(lambda x: np.asarray(x, dtype), self.mech)

        def where(m: mbd.Mechanism) -> list[Any]:
            found = [m.points[n] for n in names["points"]]
            return found + [
                getattr(m.bodies[n], field)
                for field in ("com", "mass", "inertia")
                for n in names[field]
            ]

        new = [design[key][n] for key in ("points", "com", "mass") for n in names[key]]
        new += [design["inertia"][n] * mech.bodies[n].inertia for n in names["inertia"]]
        return eqx.tree_at(where, mech, new)

    def draw(
        self, batch: int, dtype: str = "float64", rest: bool = False
    ) -> tuple[Design, np.ndarray, np.ndarray]:
        """Designs, coordinates (batch, nq) and speeds (batch, nv).

        The first samples are the same for every batch size. Mechanisms with loops are as drawn,
        which is assembled for every design; an open one has random coordinates. Speeds are random
        and satisfy the constraints, or zero (`rest`).
        """
        rng = np.random.default_rng(1)
        seeds = iter(rng.integers(2**31, size=500).tolist())
        design: Design = {}
        for key, part in self.nominal.items():
            design[key] = {n: self._vary(key, x, batch, next(seeds)) for n, x in part.items()}
        top = mbd.topology(self.mech)
        q = np.tile(mbd.neutral(self.mech), (batch, 1))
        if not top.nc:
            q = q + np.random.default_rng(next(seeds)).uniform(-1.0, 1.0, q.shape)
        v = np.random.default_rng(next(seeds)).normal(size=(batch, top.nv))
        if rest:
            v = np.zeros_like(v)
        elif top.nc:
            v = self._on_constraints(design, q, v)
        return jax.tree_util.tree_map(lambda x: x.astype(dtype), (design, q, v))

    def _vary(self, key: str, x: Any, batch: int, seed: int) -> np.ndarray:
        x = np.asarray(x, float)
        rng = np.random.default_rng(seed)
        if key in ("mass", "inertia"):  # scaled, so that an inertia remains physically possible
            return x * (1.0 + 0.03 * rng.uniform(-1.0, 1.0, batch))
        return x + self.spread * rng.normal(size=(batch, 3)) * np.array(self.directions)

    def _on_constraints(self, design: Design, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Speeds with ``J v = 0``: least change; rows may be redundant, hence the damping."""
        jacobian = jax.jit(
            jax.vmap(lambda d, q: mbd.constraint_jacobian(self.mechanism(d), q)),
        )
        out = []
        for start in range(0, len(q), CHUNK):
            pick = np.minimum(np.arange(start, start + CHUNK), len(q) - 1)
            part = jax.tree_util.tree_map(lambda x, pick=pick: x[pick], (design, q))
            j = np.asarray(jacobian(*part))
            u, jt = v[pick][..., None], np.swapaxes(j, 1, 2)
            square = j @ jt
            scale = np.trace(square, axis1=1, axis2=2)[:, None, None]
            square = square + 1e-9 * scale * np.eye(j.shape[1])
            for _ in range(3):
                u = u - jt @ np.linalg.solve(square, j @ u)
            out.append(u[..., 0])
        return np.concatenate(out)[: len(q)]
