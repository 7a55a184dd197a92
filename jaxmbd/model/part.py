"""`Part`: base of the classes a mechanism is made of, pytrees that JAX flattens without Python.

A compiled function's argument is flattened at every call. `equinox.Module` does that by a Python
function for each module, which took most of the time of a call with a mechanism of forty bodies. A
`Part` is immutable, therefore what it flattens to is kept, and JAX fetches that by a function
written in C.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
from collections.abc import Iterable
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, dataclass_transform

import equinox as eqx
from jax.tree_util import GetAttrKey, register_pytree_with_keys

_building: set[int] = set()
"""Parts whose `__init__` runs, by `id`; their fields may be assigned."""


def _flatten_with_keys(part: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
    children, static = part._flat
    return list(zip(part._keys, children, strict=True)), static


def _unflatten(cls: Any, static: tuple[Any, ...], children: Iterable[Any]) -> Any:
    """A part of given children, which may be anything (tracers, placeholders): no validation."""
    self = object.__new__(cls)
    fields, children = self.__dict__, tuple(children)
    fields.update(zip(cls._children, children, strict=True))
    fields.update(zip(cls._static, static, strict=True))
    fields["_flat"] = (children, static)
    return self


@dataclass_transform(field_specifiers=(dataclasses.field, eqx.field))
class PartMeta(abc.ABCMeta):
    """Makes classes dataclasses and pytrees, their instances converted, checked and frozen.

    It follows `equinox.Module`: fields are declared with `eqx.field`, an inherited `__init__` is
    kept, `__check_init__` of every class is run, and an `eqx.AbstractVar` must be defined by the
    classes that are instantiated.
    """

    _children: tuple[str, ...]
    _keys: tuple[Any, ...]
    _static: tuple[str, ...]
    _abstract: set[str]
    _converters: dict[str, Any]

    def __new__(  # noqa: D102
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any
    ) -> Any:
        declared = namespace.get("__annotations__", {})
        abstract = {n for n, kind in declared.items() if "AbstractVar[" in str(kind)}
        namespace["__annotations__"] = {n: k for n, k in declared.items() if n not in abstract}
        cls: Any = super().__new__(mcs, name, bases, namespace, **kwargs)
        cls._abstract = abstract | getattr(cls, "_abstract", set())
        cls._writes_init = "__init__" not in namespace and getattr(cls, "_writes_init", True)
        dataclasses.dataclass(eq=False, repr=False, init=cls._writes_init)(cls)
        fields = dataclasses.fields(cls)
        static = tuple(f.name for f in fields if f.metadata.get("static"))
        children = tuple(f.name for f in fields if not f.metadata.get("static"))
        cls._children, cls._static = children, static
        cls._keys = tuple(map(GetAttrKey, children))
        cls._converters = {f.name: c for f in fields if (c := f.metadata.get("converter"))}
        if cls._writes_init:  # what is given need not have the type of what is stored
            cls.__init__.__annotations__.update(dict.fromkeys(cls._converters, Any))
        register_pytree_with_keys(
            cls, _flatten_with_keys, partial(_unflatten, cls), attrgetter("_flat")
        )
        return cls

    @property
    def __signature__(cls) -> inspect.Signature:
        """The fields that an instance is made from, for `help` and editors."""
        signature = inspect.signature(cls.__init__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, with its fields converted and checked."""
        self: Any = object.__new__(cls)
        names = {*cls._children, *cls._static}
        if missing := [n for n in cls._abstract - names if not hasattr(cls, n)]:
            raise TypeError(f"{cls.__name__} does not define {sorted(missing)}")
        _building.add(id(self))
        try:
            self.__init__(*args, **kwargs)
        finally:
            _building.discard(id(self))
        if undefined := [n for n in names if not hasattr(self, n)]:
            raise TypeError(f"__init__ of {cls.__name__} does not set {sorted(undefined)}")
        for name, convert in cls._converters.items():
            object.__setattr__(self, name, convert(getattr(self, name)))
        self.__dict__.pop("_flat", None)
        for base in cls.__mro__:
            if "__check_init__" in base.__dict__:
                base.__dict__["__check_init__"](self)
        return self


class Part(metaclass=PartMeta):
    """An immutable dataclass and pytree; fields declared static are its structure.

    Example:
        >>> import equinox as eqx, jax
        >>> from jaxmbd.model.part import Part
        >>> class Disc(Part):
        ...     radius: float
        ...     name: str = eqx.field(static=True, default="disc")
        >>> jax.tree.map(lambda x: 2 * x, Disc(0.3))
        Disc(radius=0.6)
    """

    @cached_property
    def _flat(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Children and static fields."""
        cls: Any = type(self)
        children = tuple(getattr(self, name) for name in cls._children)
        return children, tuple(getattr(self, name) for name in cls._static)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_flat", None)
        return state

    def __setattr__(self, name: str, value: Any) -> None:
        if id(self) not in _building:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> Any:
        return eqx.tree_equal(self, other)

    def __hash__(self) -> int:
        children, static = self._flat
        return hash((type(self), children, static))

    def __repr__(self) -> str:
        return eqx.tree_pformat(self)
