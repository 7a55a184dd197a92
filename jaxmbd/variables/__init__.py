"""Numbers of a mechanism by path: listed, read, set, with units; parametrisations of mechanisms."""

from jaxmbd.variables.mirror import mirrored
from jaxmbd.variables.parametrization import Parametrization
from jaxmbd.variables.setting import get_variables, set_variables
from jaxmbd.variables.table import Variable, Variables, variables
from jaxmbd.variables.units import in_si

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
