"""Pictures of mechanisms that move, an explorer of designs, and figures of results."""

from typing import TYPE_CHECKING

from jaxmbd.plumbing import on_use

if TYPE_CHECKING:
    from jaxmbd.viz.cam_outline import write_cam
    from jaxmbd.viz.curves import (
        ackermann_figure,
        corner_figure,
        curve_fan,
        histogram,
        kinematics_figure,
    )
    from jaxmbd.viz.design_report import suspension_report
    from jaxmbd.viz.dxf import write_dxf
    from jaxmbd.viz.explorer.experiments import (
        held_text,
        undriven,
        usual_experiment,
        usual_motion,
    )
    from jaxmbd.viz.explorer.exploration import Exploration
    from jaxmbd.viz.explorer.page import Explorer, explore
    from jaxmbd.viz.glyphs import Wheel, corner_wheel
    from jaxmbd.viz.kinematic_diagram import plane_figure
    from jaxmbd.viz.moving_picture import movie, picture
    from jaxmbd.viz.scene import Scene
    from jaxmbd.viz.topology_diagram import redundancy_figure, topology_figure
    from jaxmbd.viz.viser_scene import (
        Page,
        ViserScene,
        animation,
        page,
        set_stage,
        show,
        viser_server,
    )

__all__ = [
    "Exploration",
    "Explorer",
    "Page",
    "Scene",
    "ViserScene",
    "Wheel",
    "ackermann_figure",
    "animation",
    "corner_figure",
    "corner_wheel",
    "curve_fan",
    "explore",
    "histogram",
    "kinematics_figure",
    "movie",
    "picture",
    "plane_figure",
    "redundancy_figure",
    "set_stage",
    "show",
    "suspension_report",
    "topology_figure",
    "viser_server",
    "write_cam",
    "write_dxf",
]

__getattr__, __dir__ = on_use(
    __name__,
    {
        "cam_outline": "write_cam",
        "curves": "ackermann_figure corner_figure curve_fan histogram kinematics_figure",
        "dxf": "write_dxf",
        "explorer.experiments": "held_text undriven usual_experiment usual_motion",
        "explorer.exploration": "Exploration",
        "explorer.page": "Explorer explore",
        "glyphs": "Wheel corner_wheel",
        "moving_picture": "movie picture",
        "kinematic_diagram": "plane_figure",
        "scene": "Scene",
        "design_report": "suspension_report",
        "topology_diagram": "redundancy_figure topology_figure",
        "viser_scene": "Page ViserScene animation page set_stage show viser_server",
    },
)
