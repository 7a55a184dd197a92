"""What is done with a mechanism: mobility, assembly, simulation."""

from jaxmbd.analysis.assemble import Assembly, assemble, assemble_velocity
from jaxmbd.analysis.known import PointCoordinate
from jaxmbd.analysis.mobility import Mobility, mobility
from jaxmbd.analysis.simulate import Solution, project, simulate
from jaxmbd.analysis.status import Status

__all__ = [
    "Assembly",
    "Mobility",
    "PointCoordinate",
    "Solution",
    "Status",
    "assemble",
    "assemble_velocity",
    "mobility",
    "project",
    "simulate",
]
