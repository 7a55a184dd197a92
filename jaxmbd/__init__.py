"""jaxmbd: batched, differentiable multibody dynamics on JAX.

The names below stand in the order of the data's way: describe, derive, assemble, move.
"""

from jaxmbd import zoo
from jaxmbd.analysis import (
    Assembly,
    Mobility,
    PointCoordinate,
    Solution,
    Status,
    assemble,
    assemble_velocity,
    mobility,
    project,
    simulate,
)
from jaxmbd.dynamics import (
    DeNOC,
    bias,
    denoc,
    denoc_equations,
    forward_dynamics,
    inverse_dynamics,
    joint_reactions,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from jaxmbd.kinematics import (
    Pose,
    body_accelerations,
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
    Body,
    Cylindrical,
    Drive,
    Fixed,
    Free,
    Helical,
    JointTorque,
    Mechanism,
    Planar,
    PointForce,
    Prismatic,
    Revolute,
    Rod,
    SignedSquare,
    Spherical,
    SpringDamper,
    Table,
    Torque,
    TorsionSpring,
    Tyre,
    Universal,
    register_law,
)
from jaxmbd.topology import Topology, neutral, topology
