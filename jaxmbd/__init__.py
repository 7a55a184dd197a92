"""jaxmbd: batched, differentiable multibody dynamics on JAX.

`__all__` lists the names in the order of use: describe, derive, assemble, evaluate one state, move.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from jaxmbd.plumbing.imports import on_use

if TYPE_CHECKING:
    from jaxmbd import (
        campaign,
        cams,
        design,
        identification,
        ml,
        observe,
        sampling,
        suspension,
        synthesis,
        tolerances,
        viz,
        zoo,
    )
    from jaxmbd.analysis import (
        RK4,
        Assemblies,
        Assembly,
        Circuit,
        Circuits,
        ClosureMargin,
        DormandPrince,
        DormandPrince8,
        DrivenMotion,
        EnergyBalance,
        Equilibrium,
        Event,
        GeneralizedAlpha,
        Linearization,
        MethodChoice,
        Mobility,
        Modes,
        PointCoordinate,
        PointTravel,
        Redundancy,
        Rodas,
        SemiImplicitEuler,
        Solution,
        StateCheck,
        Status,
        Variational,
        Verification,
        assemble,
        assemble_acceleration,
        assemble_velocity,
        assemblies,
        check_state,
        choose_method,
        circuits,
        closure_margin,
        dead_centre,
        energy_balance,
        equilibrium,
        flexibility,
        linearize,
        mobility,
        project,
        redundancy,
        simulate,
        simulate_driven,
        states_at,
        verify,
    )
    from jaxmbd.campaign import Study
    from jaxmbd.design import check_gradient, minimize
    from jaxmbd.dynamics import (
        DeNOC,
        EdgeForces,
        bias,
        centre_of_mass,
        denoc,
        denoc_equations,
        edge_forces,
        forward_dynamics,
        friction_efforts,
        inverse_dynamics,
        joint_reactions,
        kinetic_energy,
        mass_matrix,
        momentum,
        potential_energy,
    )
    from jaxmbd.graph import Topology, neutral, topology
    from jaxmbd.identification import identify
    from jaxmbd.io import load, load_mjcf, load_robot, load_urdf, load_usd, save
    from jaxmbd.kinematics import (
        Pose,
        body_accelerations,
        body_jacobian,
        body_velocities,
        constraint_jacobian,
        constraint_residual,
        coordinate_rates,
        gamma,
        joint_coordinates,
        point_position,
        point_velocity,
        poses,
        step_coordinates,
    )
    from jaxmbd.model import (
        Actuator,
        AntiRollBar,
        Armature,
        Belt,
        Body,
        BodyActuator,
        BumpStop,
        Bushing,
        Cam,
        Coupling,
        Cylindrical,
        DamperCurve,
        Drive,
        Fixed,
        FlatFollower,
        Free,
        Gear,
        GearMesh,
        Helical,
        JointDrag,
        JointFriction,
        JointLimit,
        JointTorque,
        Mechanism,
        PacejkaTyre,
        ParallelAxes,
        PerpendicularAxes,
        Planar,
        PointDrive,
        PointForce,
        PointOnCurve,
        PointOnLine,
        PointOnPlane,
        Prismatic,
        RackAndPinion,
        Revolute,
        Rod,
        Sampled,
        SignedSquare,
        SoftJoint,
        Spherical,
        SpringDamper,
        Table,
        Torque,
        TorsionBar,
        TorsionSpring,
        Tyre,
        Universal,
        WavyRoad,
        in_space,
        mirror,
        register_law,
        register_type,
        soften,
    )
    from jaxmbd.variables import (
        Parametrization,
        get_variables,
        mirrored,
        set_variables,
        variables,
    )
    from jaxmbd.viz import show

__version__ = "0.1.0"

__all__ = [
    # describe: the mechanism and its bodies
    "Mechanism",
    "Body",
    # describe: joints
    "Revolute",
    "Prismatic",
    "Helical",
    "Cylindrical",
    "Universal",
    "Spherical",
    "Planar",
    "Free",
    "Fixed",
    "Rod",
    # describe: conditions, which are always constraint rows
    "PointOnLine",
    "PointOnPlane",
    "PointOnCurve",
    "Cam",
    "FlatFollower",
    "ParallelAxes",
    "PerpendicularAxes",
    # describe: couplings and drives
    "Gear",
    "GearMesh",
    "RackAndPinion",
    "Coupling",
    "Drive",
    "PointDrive",
    # describe: force elements and their laws
    "SpringDamper",
    "TorsionSpring",
    "PointForce",
    "Torque",
    "JointTorque",
    "Tyre",
    "PacejkaTyre",
    "WavyRoad",
    "Bushing",
    "SoftJoint",
    "BumpStop",
    "JointLimit",
    "AntiRollBar",
    "TorsionBar",
    "Belt",
    "JointFriction",
    "JointDrag",
    "Armature",
    "Actuator",
    "BodyActuator",
    "Sampled",
    "SignedSquare",
    "Table",
    "DamperCurve",
    "register_law",
    # describe: whole mechanisms, ready-made, modified, to and from files
    "zoo",
    "soften",
    "in_space",
    "mirror",
    "register_type",
    "save",
    "load",
    "load_mjcf",
    "load_urdf",
    "load_usd",
    "load_robot",
    # describe: all numbers by path
    "variables",
    "get_variables",
    "set_variables",
    "mirrored",
    "Parametrization",
    "tolerances",
    # derive: spanning tree and cut joints, layout of coordinates, mobility
    "Topology",
    "topology",
    "neutral",
    "Mobility",
    "mobility",
    "Redundancy",
    "redundancy",
    # assemble: positions, speeds and accelerations that close the loops
    "PointCoordinate",
    "PointTravel",
    "Assembly",
    "assemble",
    "Assemblies",
    "assemblies",
    "Circuit",
    "Circuits",
    "circuits",
    "ClosureMargin",
    "closure_margin",
    "dead_centre",
    "assemble_velocity",
    "assemble_acceleration",
    "project",
    # evaluate: positions and velocities of bodies and points
    "Pose",
    "poses",
    "point_position",
    "point_velocity",
    "joint_coordinates",
    "body_velocities",
    "body_accelerations",
    "body_jacobian",
    "coordinate_rates",
    "step_coordinates",
    # evaluate: constraints, inertia, energies, efforts and reactions
    "constraint_residual",
    "constraint_jacobian",
    "gamma",
    "mass_matrix",
    "centre_of_mass",
    "momentum",
    "bias",
    "kinetic_energy",
    "potential_energy",
    "DeNOC",
    "denoc",
    "denoc_equations",
    "forward_dynamics",
    "inverse_dynamics",
    "joint_reactions",
    "EdgeForces",
    "edge_forces",
    "friction_efforts",
    # move: simulation, driven motion, equilibrium, linearisation
    "Status",
    "StateCheck",
    "check_state",
    "Solution",
    "Event",
    "RK4",
    "SemiImplicitEuler",
    "GeneralizedAlpha",
    "Variational",
    "DormandPrince",
    "DormandPrince8",
    "Rodas",
    "MethodChoice",
    "choose_method",
    "simulate",
    "states_at",
    "EnergyBalance",
    "energy_balance",
    "Verification",
    "verify",
    "DrivenMotion",
    "simulate_driven",
    "Equilibrium",
    "equilibrium",
    "flexibility",
    "Linearization",
    "Modes",
    "linearize",
    # observe: outputs by name, of poses, sweeps and motions
    "observe",
    # many variants at once: what varies, and studies
    "sampling",
    "Study",
    "campaign",
    # design by gradients
    "minimize",
    "identify",
    "check_gradient",
    "design",
    "suspension",
    "synthesis",
    "cams",
    "identification",
    # learn: environments
    "ml",
    # pictures
    "show",
    "viz",
]

# A package becomes an attribute when it is imported first: now, so that later only the function of
# its name does.
import_module("jaxmbd.variables")
globals().pop("variables", None)  # it is gone where this module is reloaded

__getattr__, __dir__ = on_use(
    __name__,
    {
        "analysis": (
            "Assemblies Assembly Circuit Circuits ClosureMargin DormandPrince DormandPrince8 "
            "DrivenMotion EnergyBalance Equilibrium Event GeneralizedAlpha Linearization "
            "MethodChoice Mobility Modes PointCoordinate PointTravel RK4 Redundancy Rodas "
            "SemiImplicitEuler Solution StateCheck Status Variational Verification assemblies "
            "assemble assemble_acceleration assemble_velocity check_state choose_method circuits "
            "closure_margin dead_centre energy_balance equilibrium flexibility linearize mobility "
            "project redundancy simulate simulate_driven states_at verify"
        ),
        "dynamics": (
            "DeNOC EdgeForces bias centre_of_mass denoc denoc_equations edge_forces "
            "forward_dynamics friction_efforts inverse_dynamics joint_reactions kinetic_energy "
            "mass_matrix momentum potential_energy"
        ),
        "graph": "Topology neutral topology",
        "io": "load load_mjcf load_robot load_urdf load_usd save",
        "kinematics": (
            "Pose body_accelerations body_jacobian body_velocities constraint_jacobian "
            "constraint_residual coordinate_rates gamma joint_coordinates point_position "
            "point_velocity poses step_coordinates"
        ),
        "model": (
            "Actuator AntiRollBar Armature Belt Body BodyActuator BumpStop Bushing Cam "
            "Coupling Cylindrical DamperCurve Drive Fixed FlatFollower Free Gear GearMesh Helical "
            "JointDrag JointFriction JointLimit JointTorque Mechanism PacejkaTyre ParallelAxes "
            "PerpendicularAxes Planar PointDrive PointForce PointOnCurve PointOnLine PointOnPlane "
            "Prismatic RackAndPinion "
            "Revolute Rod Sampled SignedSquare SoftJoint Spherical SpringDamper Table Torque "
            "TorsionBar TorsionSpring Tyre Universal WavyRoad in_space mirror register_law "
            "register_type soften"
        ),
        "variables": "Parametrization get_variables mirrored set_variables variables",
        "campaign": "Study",
        "design": "check_gradient minimize",
        "identification": "identify",
        "viz": "show",
    },
)
