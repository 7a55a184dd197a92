"""Reading and writing mechanisms, and where runs ended."""

from jaxmbd.io.conversion import Exported, Imported, LeftOut, LeftOutTable, Shape, State
from jaxmbd.io.export.mjcf import save_mjcf
from jaxmbd.io.export.urdf import save_urdf
from jaxmbd.io.files import check_depth, load_notes, read_toml
from jaxmbd.io.gt_mech import UnsupportedConstraint, gt_velocities, read_gt_mech
from jaxmbd.io.hardpoints import read_hardpoints, write_hardpoints
from jaxmbd.io.mechanism_file import FORMAT, from_dict, load, save, to_dict
from jaxmbd.io.mujoco.load import load_mjcf, load_urdf
from jaxmbd.io.robot import load_robot
from jaxmbd.io.run_end import load_run_end, save_run_end
from jaxmbd.io.usd.load import load_usd

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
    "load_notes",
    "load_robot",
    "load_run_end",
    "load_urdf",
    "load_usd",
    "read_gt_mech",
    "read_hardpoints",
    "save",
    "save_mjcf",
    "save_run_end",
    "save_urdf",
    "to_dict",
    "write_hardpoints",
]
