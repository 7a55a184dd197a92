"""Joint types, one file each."""

from jaxmbd.model.joints.base import Joint
from jaxmbd.model.joints.cylindrical import Cylindrical
from jaxmbd.model.joints.fixed import Fixed
from jaxmbd.model.joints.flat_follower import FlatFollower
from jaxmbd.model.joints.free import Free
from jaxmbd.model.joints.helical import Helical
from jaxmbd.model.joints.parallel_axes import ParallelAxes
from jaxmbd.model.joints.perpendicular_axes import PerpendicularAxes
from jaxmbd.model.joints.planar import Planar
from jaxmbd.model.joints.point_on_curve import Cam, PointOnCurve
from jaxmbd.model.joints.point_on_line import PointOnLine
from jaxmbd.model.joints.point_on_plane import PointOnPlane
from jaxmbd.model.joints.prismatic import Prismatic
from jaxmbd.model.joints.revolute import Revolute
from jaxmbd.model.joints.rod import Rod
from jaxmbd.model.joints.spherical import Spherical
from jaxmbd.model.joints.universal import Universal

JOINT_TYPES: dict[str, type[Joint]] = {
    cls.__name__: cls
    for cls in (
        Revolute,
        Prismatic,
        Helical,
        Cylindrical,
        Universal,
        Spherical,
        Planar,
        Free,
        Fixed,
        Rod,
        PointOnLine,
        PointOnPlane,
        PointOnCurve,
        Cam,
        FlatFollower,
        ParallelAxes,
        PerpendicularAxes,
    )
}
"""The joint types by name, as files name them."""

__all__ = ["JOINT_TYPES", "Joint", *JOINT_TYPES]
