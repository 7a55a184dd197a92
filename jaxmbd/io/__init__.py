"""Reading and writing mechanisms."""

from jaxmbd.io.gt_mech import UnsupportedConstraint, gt_velocities, read_gt_mech
from jaxmbd.io.mechanism_file import load, save
from jaxmbd.io.read_dict import from_dict
from jaxmbd.io.write_dict import FORMAT, to_dict

__all__ = [
    "FORMAT",
    "UnsupportedConstraint",
    "from_dict",
    "gt_velocities",
    "load",
    "read_gt_mech",
    "save",
    "to_dict",
]
