"""Recursions along the tree: from the ground outward, and from the leaves inward.

Bodies are visited one by one, but those of a run of equal joints (`jaxmbd.graph.spanning_tree`) in
a loop, `lax.scan`. Therefore the values of such bodies are kept stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.graph import Topology, topology
from jaxmbd.model import J, Joint, Mechanism, changed


def body_runs(mech: Mechanism) -> Runs:
    """The runs of a mechanism's topology, without those whose joints differ in form."""
    runs = topology(mech).runs
    if all(len(run) == 1 for run in runs):
        return runs
    forms = [_form(nameless(mech.joint(name))) for name in topology(mech).tree]
    out: list[range] = []
    for run in runs:
        same = all(forms[i] == forms[run[0]] for i in run)
        out += [run] if same else [range(i, i + 1) for i in run]
    return tuple(out)


def _form(joint: Joint) -> Any:
    numbers, structure = jax.tree_util.tree_flatten(joint)
    return structure, [jnp.shape(x) for x in numbers]


def by_joint(top: Topology, runs: Runs, x: Array, kind: str = "v") -> PerBody:
    """The parts of x that belong to the tree joints: of coordinates ("q") or of speeds ("v")."""
    places = [getattr(top.layout[name], kind) for name in top.tree]
    sizes = [place.stop - place.start for place in places]
    parts = lax.split(x, [sum(sizes[i] for i in run) for run in runs])
    return PerBody(
        runs,
        [
            part if len(run) == 1 else part.reshape(len(run), sizes[run[0]], *x.shape[1:])
            for run, part in zip(runs, parts, strict=True)
        ],
    )


def nameless(joint: J) -> J:
    """A joint without names and points, on which its motion does not depend.

    Joints of one type then are pytrees of one type, so that functions of them are traced once.
    """
    return changed(joint, a="", b="", **dict.fromkeys(joint.points))


Runs = tuple[range, ...]


@jax.tree_util.register_pytree_node_class
class PerBody(Sequence[Any]):
    """A value of each body in tree order, a pytree; those of a run have a common first axis.

    Attributes:
        runs: the runs of bodies.
        parts: the value of each run of one body, the stacked values of each longer one.
    """

    def __init__(self, runs: Runs, parts: Sequence[Any]):
        self.runs, self.parts = runs, tuple(parts)

    @classmethod
    def of(cls, runs: Runs, values: Sequence[Any]) -> PerBody:
        """Stack the values of all bodies."""
        return cls(runs, [_together([values[i] for i in run]) for run in runs])

    def tree_flatten(self) -> tuple[Any, Runs]:
        """The parts, and the runs."""
        return self.parts, self.runs

    @classmethod
    def tree_unflatten(cls, runs: Runs, parts: Any) -> PerBody:
        """The same again."""
        return cls(runs, parts)

    def __len__(self) -> int:
        return self.runs[-1].stop if self.runs else 0

    @overload
    def __getitem__(self, i: int) -> Any: ...

    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(len(self))[i]]
        i = range(len(self))[i]
        k = next(k for k, run in enumerate(self.runs) if i in run)
        return _nth(self.parts[k], self.runs[k], i)

    def __iter__(self) -> Iterator[Any]:
        for run, part in zip(self.runs, self.parts, strict=True):
            for i in run:
                yield _nth(part, run, i)

    def field(self, k: int) -> PerBody:
        """One element of the values, which are tuples."""
        return PerBody(self.runs, [x[k] for x in self.parts])

    def before_loops(self, change: Callable[[Any], Any]) -> PerBody:
        """The values of runs as `change` makes them, computed once instead of in every loop."""
        pairs = zip(self.runs, self.parts, strict=True)
        return PerBody(self.runs, [x if len(r) == 1 else _of_each(change, x) for r, x in pairs])

    def __sub__(self, other: PerBody) -> PerBody:
        """Differences of arrays."""
        pairs = zip(self.parts, other.parts, strict=True)
        return PerBody(self.runs, [a - b for a, b in pairs])

    def paired(self, *others: PerBody) -> PerBody:
        """Tuples of values."""
        parts = zip(self.parts, *(x.parts for x in others), strict=True)
        return PerBody(self.runs, list(parts))

    def joined(self, none: Array) -> Array:
        """The values (m, …) of all bodies as one array; for no value `none`, with no rows."""
        parts = [none]
        for run, x in zip(self.runs, self.parts, strict=True):
            if x is not None:
                parts.append(x if len(run) == 1 else lax.collapse(x, 0, 2))
        return jnp.concatenate(parts)


@jax.tree_util.register_static
class Static:
    """A value without numbers, the same for all bodies of a run."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def _together(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else jax.tree_util.tree_map(_stacked, *values)


def _stacked(*xs: Any) -> Any:
    """``stack(xs)``, of numbers that are known by NumPy."""
    return jnp.stack(xs) if any(isinstance(x, Tracer) for x in xs) else np.stack(xs)


def _of_each(change: Callable[[Any], Any], stacked: Any) -> Any:
    numbers = jax.tree_util.tree_leaves(stacked)
    return jax.vmap(change)(stacked) if numbers else change(stacked)


def _nth(part: Any, run: range, i: int) -> Any:
    if len(run) == 1:
        return part
    return jax.tree_util.tree_map(lambda x: x[i - run.start], part)


def each(step: Callable[..., Any], *values: PerBody) -> PerBody:
    """``step(*values)`` of each body."""
    parts = []
    for run, *given in _by_run(values):
        one = step(*given) if len(run) == 1 else lax.map(lambda x: step(*x), tuple(given))
        parts.append(one)
    return PerBody(values[0].runs, parts)


def outward(
    parent: Sequence[int],
    step: Callable[..., Any],
    *values: PerBody,
    carried: Callable[[Any], Any] = lambda x: x,
    whole: Callable[[Any], Any] = lambda x: x,
) -> PerBody:
    """``x_i = step(carried(x_p), *values_i)``, with p the parent of body i.

    Args:
        parent: index of each body's parent, -1 for the ground.
        step: as above; takes None in place of the parent if that is the ground.
        *values: of each body.
        carried: what the step takes of its parent's result.
        whole: completes what is carried into a run to arrays as they are carried within it.
    """
    found: list[Any] = []
    runs = values[0].runs
    for run, *given in _by_run(values):
        p = parent[run.start]
        above = None if p < 0 else carried(PerBody(runs[: len(found)], found)[p])
        if len(run) == 1:
            found.append(step(above, *given))
        else:
            found.append(_outward_run(step, whole(above), given, len(run), carried))
    return PerBody(runs, found)


def _outward_run(
    step: Callable[..., Any], above: Any, given: list[Any], length: int, carried: Any
) -> Any:
    above = _of_type(above, jnp.result_type(*jax.tree_util.tree_leaves((above, given))))

    def visit(above: Any, given: Any) -> Any:
        x = step(above, *given)
        return jax.tree_util.tree_map(_like, carried(x), above), x

    return lax.scan(visit, above, tuple(given), length)[1]


def _of_type(tree: Any, dtype: Any) -> Any:
    return jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), tree)


def _like(x: Array, other: Array) -> Array:
    """In the other's type: numbers of a mechanism may have several."""
    return x.astype(other.dtype)


def inward(
    parent: Sequence[int],
    step: Callable[..., Any],
    *values: PerBody,
    handed: Callable[[int, Any], Any] = lambda i, y: y,
) -> PerBody:
    """``(x_i, y_i) = step(Σ y_c, *values_i)``, with the sum over the children c of body i.

    Args:
        parent: index of each body's parent, -1 for the ground.
        step: as above; takes None in place of the sum if the body has no children.
        *values: of each body.
        handed: takes i and y_i of the first body of a run to what is added for its parent.

    Returns:
        x of each body.
    """
    runs = values[0].runs
    below: list[Any] = [None] * len(parent)
    parts = []
    for run, *given in reversed(list(_by_run(values))):
        y = below[run[-1]]
        if len(run) == 1:
            x, y = step(y, *given)
        else:
            x, y = _inward_run(step, y, given, len(run))
        parts.append(x)
        p = parent[run.start]
        if p >= 0:
            y = handed(run.start, y)
            below[p] = y if below[p] is None else jax.tree_util.tree_map(jnp.add, below[p], y)
    return PerBody(runs, parts[::-1])


def _inward_run(
    step: Callable[..., Any], below: Any, given: list[Any], length: int
) -> tuple[Any, Any]:
    if below is None:
        last = jax.tree_util.tree_map(lambda x: x[-1], given)
        like = jax.eval_shape(lambda *x: step(None, *x)[1], *last)
        below = jax.tree_util.tree_map(lambda x: jnp.zeros(x.shape, x.dtype), like)
    below = _of_type(below, jnp.result_type(*jax.tree_util.tree_leaves((below, given))))

    def visit(below: Any, given: Any) -> Any:
        x, y = step(below, *given)
        return jax.tree_util.tree_map(_like, y, below), x

    y, x = lax.scan(visit, below, tuple(given), length, reverse=True)
    return x, y


def _by_run(values: Sequence[PerBody]) -> Iterator[tuple[Any, ...]]:
    return zip(values[0].runs, *(x.parts for x in values), strict=True)
