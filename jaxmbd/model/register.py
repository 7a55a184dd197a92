"""Registry of user-defined types by name, so that mechanism files can contain them."""

from __future__ import annotations

from typing import TypeVar

from jaxmbd.model.coupling import COUPLING_TYPES, BaseCoupling
from jaxmbd.model.forces import FORCE_TYPES, ForceElement
from jaxmbd.model.joints import JOINT_TYPES, Joint

T = TypeVar("T", bound=type)

TABLES: tuple[tuple[type, dict[str, type]], ...] = (
    (Joint, JOINT_TYPES),
    (ForceElement, FORCE_TYPES),
    (BaseCoupling, COUPLING_TYPES),
)


def register_type(cls: T) -> T:
    """Make a user-defined joint type, force element or coupling known to `save` and `load`.

    Raises:
        TypeError: the class is none of these.
        ValueError: another class has its name.

    Example:
        >>> import jaxmbd as mbd
        >>> @mbd.register_type
        ... class Bearing(mbd.Revolute):
        ...     "A revolute joint under a name of its own."
    """
    table = next((types for base, types in TABLES if issubclass(cls, base)), None)
    if table is None:
        raise TypeError(f"{cls.__name__} is no joint type, force element or coupling")
    old = table.get(cls.__name__, cls)
    if (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"the name {cls.__name__!r} is taken by {old!r}; choose another")
    table[cls.__name__] = cls
    return cls


def is_registered(element: object) -> bool:
    """Whether the type of a part can be saved and loaded by name."""
    for base, types in TABLES:
        if isinstance(element, base):
            return types.get(type(element).__name__) is type(element)
    return True
