"""Parts of a mechanism are immutable pytrees, flattened without Python functions."""

import copy
import dataclasses
import inspect
import pickle
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.model.numbers import changed
from jaxmbd.model.part import Part


class Grown(Part):
    size: float = eqx.field(converter=float)
    name: str = eqx.field(static=True, default="x")

    def __check_init__(self):
        if self.size < 0.0:
            raise ValueError("negative")


class Writes(Grown):
    def __init__(self, half):
        jax.tree_util.tree_leaves(self.name)
        self.size = 2 * half
        self.name = "written"


class Inherits(Writes):
    more: int = 3

    def __init__(self, half):
        super().__init__(half)
        self.more = 4


def calls_while(fn):
    """Names of the Python functions that run in a call, but not itself."""
    names = []
    sys.setprofile(lambda frame, event, arg: names.append(frame.f_code.co_name))
    try:
        fn()
    finally:
        sys.setprofile(None)
    return names


def test_a_mechanism_is_flattened_without_python():
    mech = mbd.zoo.multi_link()
    _, tree = jax.tree_util.tree_flatten(mech)
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    registry = jax.tree_util.default_registry
    assert (
        calls_while(lambda: registry.flatten(mech, None))[:-1]
        == calls_while(lambda: registry.flatten([], None))[:-1]
    )
    assert jax.tree_util.tree_structure(mech) == tree


def test_paths_name_attributes_and_keys():
    paths = [p for p, _ in jax.tree_util.tree_flatten_with_path(mbd.zoo.simple_pendulum())[0]]
    keys = {jax.tree_util.keystr(p) for p in paths}
    assert ".gravity" in keys and any(k.startswith(".bodies['") for k in keys)


def test_parts_and_leaves_can_be_replaced():
    mech = mbd.zoo.multi_link()
    crank = dataclasses.replace(mech.bodies["lateral"], mass=7.0)
    whole = eqx.tree_at(lambda m: m.bodies["lateral"], mech, crank)
    leaf = eqx.tree_at(lambda m: m.bodies["lateral"].mass, mech, np.asarray(7.0))
    assert whole.bodies["lateral"].mass == leaf.bodies["lateral"].mass == 7.0
    assert mech.bodies["lateral"].mass == 1.91
    assert whole == leaf and whole != mech
    bodies = jax.tree_util.tree_leaves(mech, is_leaf=lambda x: isinstance(x, mbd.Body))
    assert sum(isinstance(x, mbd.Body) for x in bodies) == 5


def test_copies_are_equal_and_frozen():
    part = Grown(1)
    for other in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert other == part and jax.tree_util.tree_leaves(other) == [1.0]
        with pytest.raises(dataclasses.FrozenInstanceError):
            other.size = 2.0
    grown = changed(part, size=5.0)
    assert (part.size, grown.size, jax.tree_util.tree_leaves(grown)) == (1.0, 5.0, [5.0])
    assert changed(part) is part


def test_parts_are_converted_checked_and_frozen():
    part = Grown(1)
    assert part.size == 1.0 and isinstance(part.size, float)
    assert repr(part) == "Grown(size=1.0)"
    assert part == Grown(1.0) and part != Grown(2.0) and hash(part) == hash(Grown(1.0))
    with pytest.raises(ValueError, match="negative"):
        Grown(-1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        part.size = 2.0  # pyright: ignore
    assert jax.tree_util.tree_map(lambda x: -x, part).size == -1.0  # not validated


def test_an_init_is_inherited():
    assert (Writes(1).size, Writes(1).name, Inherits(2).size, Inherits(2).more) == (
        2.0, "written", 4.0, 4,
    )  # fmt: skip
    assert jax.tree_util.tree_leaves(Inherits(2)) == [4.0, 4]


def test_children_may_be_anything():
    structure = jax.tree_util.tree_structure(mbd.zoo.simple_pendulum())
    marks = [object() for _ in range(structure.num_leaves)]
    assert jax.tree_util.tree_leaves(structure.unflatten(marks)) == marks


def test_signatures_show_the_fields():
    shown = inspect.signature(mbd.Revolute)
    assert list(shown.parameters) == ["a", "b", "at", "axis", "at_b", "axis_b"]
    assert shown.parameters["axis"].default is None
