"""Reading and writing mechanisms."""

from jaxmbd.io.gt_mech import UnsupportedConstraint, gt_velocities, read_gt_mech
from jaxmbd.io.imported import Imported, LeftOut, LeftOutTable, State
from jaxmbd.io.load_models import load_mjcf, load_urdf
from jaxmbd.io.mechanism_file import load, save
from jaxmbd.io.read_dict import from_dict
from jaxmbd.io.write_dict import FORMAT, to_dict

__all__ = [
    "FORMAT",
    "Imported",
    "LeftOut",
    "LeftOutTable",
    "State",
    "UnsupportedConstraint",
    "from_dict",
    "gt_velocities",
    "load",
    "load_mjcf",
    "load_urdf",
    "read_gt_mech",
    "save",
    "to_dict",
]
