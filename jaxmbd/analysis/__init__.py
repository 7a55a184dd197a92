"""What is done with a mechanism: mobility, assembly, simulation."""

from jaxmbd.analysis.assemble import Assembly, assemble
from jaxmbd.analysis.known import PointCoordinate
from jaxmbd.analysis.mobility import Mobility, mobility
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.simulate import Solution, simulate
from jaxmbd.analysis.status import Status
from jaxmbd.analysis.velocity import assemble_acceleration, assemble_velocity

__all__ = [
    "Assembly",
    "Mobility",
    "PointCoordinate",
    "Solution",
    "Status",
    "assemble",
    "assemble_acceleration",
    "assemble_velocity",
    "mobility",
    "project",
    "simulate",
]
