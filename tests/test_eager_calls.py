"""Eager calls and eager derivatives: each public function of a state is one program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

COMPILED = "/jax/core/compile/backend_compile_duration"
_compiled: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **__: _compiled.append(event) if event == COMPILED else None
)

MECH = mbd.zoo.rssr()
Q = mbd.assemble(MECH).q
V = mbd.assemble_velocity(MECH, Q, {"crank": 2.0})
VDOT, LAM = mbd.forward_dynamics(MECH, Q, V)

CALLS = {
    "poses": lambda q: mbd.poses(MECH, q)["coupler"].position,
    "point_position": lambda q: mbd.point_position(MECH, q, "coupler", (0.1, 0.2, 0.3)),
    "point_velocity": lambda q: mbd.point_velocity(MECH, q, V, "coupler", [0.1, 0, 0.2]),
    "body_velocities": lambda q: mbd.body_velocities(MECH, q, V)["coupler"],
    "body_accelerations": lambda q: mbd.body_accelerations(MECH, q, V, VDOT)["coupler"],
    "body_jacobian": lambda q: mbd.body_jacobian(MECH, q, "coupler"),
    "joint_coordinates": lambda q: mbd.joint_coordinates(MECH, q)["crank"],
    "constraint_residual": lambda q: mbd.constraint_residual(MECH, q),
    "constraint_jacobian": lambda q: mbd.constraint_jacobian(MECH, q),
    "gamma": lambda q: mbd.gamma(MECH, q, V, 0),
    "mass_matrix": lambda q: mbd.mass_matrix(MECH, q),
    "bias": lambda q: mbd.bias(MECH, q, V, t=0.0),
    "kinetic_energy": lambda q: mbd.kinetic_energy(MECH, q, V),
    "potential_energy": lambda q: mbd.potential_energy(MECH, q),
    "centre_of_mass": lambda q: mbd.centre_of_mass(MECH, q),
    "momentum": lambda q: mbd.momentum(MECH, q, V, about=(0, 0, 0.5)),
    "joint_reactions": lambda q: mbd.joint_reactions(MECH, q, V, VDOT, LAM)["crank"],
    "assemble": lambda q: mbd.assemble(MECH, {"crank": q[0]}, guess=Q).q,
    "assemble_velocity": lambda q: mbd.assemble_velocity(MECH, Q, {"crank": q[0]}),
}
FEW = 8  # the function and its derivative, beside the test's own operations


@pytest.mark.parametrize("name", CALLS)
def test_an_eager_call_and_its_eager_gradient_are_few_programs(name):
    call = CALLS[name]

    def total(q):
        return jnp.sum(jnp.sin(call(q)))

    _compiled.clear()
    slope = jax.grad(total)(Q)
    assert len(_compiled) <= FEW, f"{name}: {len(_compiled)} programs for a gradient"
    _compiled.clear()
    value = call(Q)
    assert len(_compiled) <= FEW, f"{name}: {len(_compiled)} programs for a value"
    compiled = jax.jit(call)(Q)
    assert np.allclose(value, compiled, rtol=1e-12, atol=1e-12)
    along, h = np.linspace(1.0, 2.0, len(Q)), 1e-6
    difference = (total(Q + h * along) - total(Q - h * along)) / (2.0 * h)
    assert abs(slope @ along - difference) < 1e-7 * (1.0 + abs(difference))


def test_plain_numbers_are_no_new_programs():
    mbd.momentum(MECH, Q, V, about=(0, 0, 0.5))
    _compiled.clear()
    for x in (1.0, 2.0, 3):
        mbd.momentum(MECH, Q, V, about=(x, 0, x))
    assert not _compiled


def led(x):
    times = np.linspace(0.0, 1.0, 5)
    return jnp.sum(mbd.simulate_driven(MECH, {"rocker": lambda t: x * t}, t=times).q)


def swung(x):
    pendulum = mbd.zoo.simple_pendulum()
    run = mbd.simulate(pendulum, jnp.array([0.1]), [x], t1=1.0, dt=0.5, accuracy=0.01)
    return run.q[-1, 0]


RUNS = {
    "assemble": (lambda x: mbd.assemble(MECH, {"rocker": x}).q[0], 3.0, "joint 'B' is open"),
    "simulate": (swung, 50.0, "the run is inaccurate from"),
    "simulate_driven": (led, 3.0, "the driven motion fails"),
    "equilibrium": (
        lambda x: mbd.equilibrium(MECH, known={"rocker": x}).q[0],
        3.0,
        "joint 'B' is open",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_fails_inside_an_eager_gradient_says_so_in_the_same_words(name):
    call, x, said = RUNS[name]
    with pytest.raises(ValueError, match=said) as plain:
        call(x)
    with pytest.raises(ValueError, match=said) as traced:
        jax.grad(call)(x)
    assert str(traced.value) == str(plain.value)


def test_the_ground_and_misspelt_bodies_have_no_jacobian():
    with pytest.raises(ValueError, match="did you mean 'coupler'"):
        mbd.body_jacobian(MECH, Q, "cuopler")
    with pytest.raises(ValueError, match="the ground does not move"):
        mbd.body_jacobian(MECH, Q, "ground")
