"""Reading and writing mechanisms."""

from jaxmbd.io.data_file import check_depth, read_toml
from jaxmbd.io.export.exported import Exported
from jaxmbd.io.export.mjcf import save_mjcf
from jaxmbd.io.export.urdf import save_urdf
from jaxmbd.io.gt_mech import UnsupportedConstraint, gt_velocities, read_gt_mech
from jaxmbd.io.hardpoint_table import read_hardpoints, write_hardpoints
from jaxmbd.io.imported import Imported, LeftOut, LeftOutTable, State
from jaxmbd.io.mechanism_file import load, save
from jaxmbd.io.mujoco.load import load_mjcf, load_urdf
from jaxmbd.io.read_dict import from_dict
from jaxmbd.io.shape import Shape
from jaxmbd.io.write_dict import FORMAT, to_dict

__all__ = [
    "FORMAT",
    "Exported",
    "Imported",
    "LeftOut",
    "LeftOutTable",
    "Shape",
    "State",
    "UnsupportedConstraint",
    "from_dict",
    "gt_velocities",
    "load",
    "load_mjcf",
    "load_urdf",
    "read_gt_mech",
    "read_hardpoints",
    "save",
    "save_mjcf",
    "save_urdf",
    "to_dict",
    "write_hardpoints",
]
