"""Numbers of a mechanism by path: listed, read, set, with units; parametrisations of mechanisms."""

from typing import TYPE_CHECKING

from jaxmbd.plumbing import on_use

if TYPE_CHECKING:
    from jaxmbd.variables.leaves import drawn_point, get_variables, order_of, set_variables
    from jaxmbd.variables.mirror import mirrored
    from jaxmbd.variables.table import (
        Parametrization,
        Variable,
        Variables,
        find_variables,
        mechanism_of,
        variables,
    )
    from jaxmbd.variables.units import in_si, parsed, shown

__all__ = [
    "Parametrization",
    "Variable",
    "Variables",
    "get_variables",
    "in_si",
    "mirrored",
    "set_variables",
    "variables",
]

__getattr__, __dir__ = on_use(
    __name__,
    {
        "leaves": "drawn_point get_variables order_of set_variables",
        "mirror": "mirrored",
        "table": "Parametrization Variable Variables find_variables mechanism_of variables",
        "units": "in_si parsed shown",
    },
)
