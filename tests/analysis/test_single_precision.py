"""All public functions in float32 with double precision switched off, in a process of its own.

The mechanism is a parallelogram: two upright cranks of length l = 1 m and a level coupler, all
slender rods of mass m = 1 kg, so its motion is known. With the cranks' angle θ from upright

``5/3 m l² θ̈ = 2 m g l sin θ + τ``,  frequency about rest (θ = π) ``√(6 g / 5 l)``.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cpu

TIGHT = 100 * float(np.finfo(np.float32).eps)
G, RATE, TURN, SPEED = 9.81, 2.0, 0.7, 1.5
SIN, COS = np.sin(TURN), np.cos(TURN)
MASS, LOAD, BASE, ANGLE = 30.0, 4000.0, 2.5, -0.3
RACK = 0.1 * np.sin(-ANGLE) + 0.3 - np.sqrt(0.09 - 0.01 * (1.0 - np.cos(ANGLE)) ** 2)
"""Travel of the rack that turns a wheel by an angle: rod 0.3 m, arm 0.1 m behind its kingpin."""
STEERING = ("left", "inner", "outer", "ackermann_error", "ackermann_share", "turning_circle")
ELSEWHERE = {
    "assemblies",
    "check_gradient",
    "circuits",
    "closure_margin",
    "dead_centre",
    "flexibility",
    "identify",
    "minimize",
    "mirror",
    "friction_efforts",
    "in_space",
    "load",
    "load_mjcf",
    "load_robot",
    "load_urdf",
    "load_usd",
    "mirrored",
    "register_law",
    "register_type",
    "save",
    "show",
    "soften",
    "variables",
}
"""Public names that compute nothing of their own, or (the first) ask for friction."""


def steered_wheel():
    """A wheel that turns and slides on an upright kingpin, with its spring, by a rack and a rod."""
    points = {
        "kingpin": (0.0, 0.7, 0.3), "wheel": (0.0, 0.8, 0.3), "hub": (0.0, 0.7, 0.3),
        "top": (0.0, 0.7, 0.8), "tip": (-0.1, 0.7, 0.3), "inner": (-0.1, 0.4, 0.3),
    }  # fmt: skip
    joints = {
        "rack": mbd.Prismatic("ground", "rack", "inner", (0.0, 1.0, 0.0)),
        "kingpin": mbd.Cylindrical("ground", "upright", "kingpin", (0.0, 0.0, 1.0)),
        "rod": mbd.Rod("rack", "upright", "inner", "tip"),
    }
    bodies = {"rack": mbd.Body(1.0, "inner"), "upright": mbd.Body(MASS, "wheel")}
    spring = {"spring": mbd.SpringDamper("ground", "upright", "top", "kingpin", 2e4)}
    gravity = jnp.array((0.0, 0.0, -G), jnp.float32)
    mech = mbd.Mechanism(bodies, joints, spring, points=points, gravity=gravity)
    roles = mbd.suspension.Corner(
        "upright", "wheel", 0.3, spindle=("hub", "wheel"), steering="rack", spring="spring",
        wheelbase=BASE,
    )  # fmt: skip
    return mech, roles


def of_a_corner():
    """The preload of a spring, columns of steering, and residuals of a wanted curve."""
    mech, roles = steered_wheel()
    loaded = mbd.suspension.preloaded(mech, roles, LOAD)
    curves = mbd.suspension.steering_curves(mech, roles, steer=[RACK])
    wanted = mbd.design.Curve("left", 0.25, scale=0.1)
    return {
        "preloaded": loaded.forces["spring"].preload,
        "steering_curves": [curves[n] for n in STEERING],
        "Curve": wanted.residuals(curves),
    }


def pieces(mech, q, v):
    """What is computed at one state, together in one compiled function."""
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    reactions = mbd.joint_reactions(mech, q, v, vdot, lam)
    dense = mbd.denoc(mech, q, v)
    return {
        "assemble_acceleration": mbd.assemble_acceleration(mech, q, v, {"ground_0": 0.0}),
        "bias": mbd.bias(mech, q, v),
        "body_accelerations": mbd.body_accelerations(mech, q, v, vdot)["coupler_1"],
        "check_state": mbd.check_state(mech, q, v),
        "body_velocities": mbd.body_velocities(mech, q, v)["coupler_1"],
        "constraint_jacobian": mbd.constraint_jacobian(mech, q),
        "body_jacobian": mbd.body_jacobian(mech, q, "coupler_1", "B_1"),
        "centre_of_mass": mbd.centre_of_mass(mech, q),
        "constraint_residual": mbd.constraint_residual(mech, q),
        "coordinate_rates": mbd.coordinate_rates(mech, q, v),
        "denoc": [x for x in dense if hasattr(x, "dtype")],
        "denoc_equations": mbd.denoc_equations(mech, q, v)[0],
        "edge_forces": mbd.edge_forces(mech, q, reactions, "ground_0", 0.1).forces,
        "forward_dynamics": (vdot, lam),
        "gamma": mbd.gamma(mech, q, v),
        "get_variables": mbd.get_variables(mech, ["points/A_1", "gravity/y"]),
        "inverse_dynamics": mbd.inverse_dynamics(mech, q, v, 0.0 * v)[0],
        "joint_coordinates": mbd.joint_coordinates(mech, q)["right_1"],
        "joint_reactions": [reactions["ground_0"], reactions["ground_1"]],
        "kinetic_energy": mbd.kinetic_energy(mech, q, v),
        "mass_matrix": mbd.mass_matrix(mech, q),
        "momentum": mbd.momentum(mech, q, v),
        "point_position": mbd.point_position(mech, q, "coupler_1", "B_1"),
        "point_velocity": mbd.point_velocity(mech, q, v, "coupler_1", "B_1"),
        "poses": mbd.poses(mech, q)["crank_1"],
        "potential_energy": mbd.potential_energy(mech, q),
        "project": mbd.project(mech, q + 1e-4, v),
        "set_variables": mbd.set_variables(mech, {"points/A_1/x": q[0]}).points["A_1"],
        "step_coordinates": mbd.step_coordinates(mech, q, v),
    }


def hanging():
    """The parallelogram and its closed state."""
    mech = mbd.zoo.n_four_bar(1, gravity=jnp.float32(G), planar=True)
    return mech, mbd.assemble(mech, {"ground_0": TURN})


@jax.jit
def at_state(mech, q):
    v = mbd.assemble_velocity(mech, q, {"ground_0": SPEED})
    return v, pieces(mech, q, v)


def core():
    """Results of functions at one state, of a run, at rest and of a driven motion, by name."""
    mech, a = hanging()
    top = mbd.topology(mech)

    def slope(turn):
        q = mbd.assemble(mech, {"ground_0": turn}, guess=a.q).q
        return mbd.forward_dynamics(mech, q, jnp.zeros(top.nv))[0][0]

    v, found = at_state(mech, a.q)
    run = mbd.simulate(mech, a.q, v, t1=0.2, dt=0.02)
    rest = mbd.equilibrium(mech, guess=4.0 * a.q)
    linear = mbd.linearize(mech, rest.q, inputs=["ground_0"])
    drive = {"ground_0": lambda t: TURN + RATE * t}
    return found | {
        "assemble": a,
        "assemble_velocity": v,
        "equilibrium": rest,
        "gradient": jax.jit(jax.grad(slope))(jnp.float32(TURN)),
        "linearize": (linear.A, linear.B, linear.frequencies()),
        "mobility": jnp.int32(mbd.mobility(mech, a.q).dof),
        "neutral": mbd.neutral(mech),
        "redundancy": jnp.int32(mbd.redundancy(mech, a.q).mobility.dof),
        "simulate": run,
        "simulate_driven": mbd.simulate_driven(mech, drive, t=np.linspace(0.0, 0.2, 5)),
        "states_at": mbd.states_at(mech, run, run.t[5]),
        "topology": np.array([top.nq, top.nv, top.nc], np.int32),
    }


def everything():
    """Each public function's results by its name, in whatever precision JAX is in."""
    found = core()
    mech, a = hanging()
    v, run, rest = (found[n] for n in ("assemble_velocity", "simulate", "equilibrium"))
    implicit = mbd.simulate(mech, a.q, v, t1=0.2, dt=0.005, method="generalized_alpha")
    midpoint = mbd.simulate(mech, a.q, v, t1=0.2, dt=0.01, method=mbd.Variational(4))
    precise = mbd.simulate(mech, a.q, v, t1=0.2, dt=0.02, method="dormand_prince_8")
    let_go = {"let go": mbd.Event(lambda t, q, v: q[0] - TURN - 0.15, sets={"held": 0.0})}

    def upheld(t, q, v, switches):  # against the weight: at a constant speed
        return {"ground_0": -2.0 * G * switches["held"] * jnp.sin(q[0])}

    switched = mbd.simulate(mech, a.q, v, t=[0.0, 0.05, 0.2], method="dormand_prince",
                            inputs=upheld, events=let_go, switches={"held": 1.0})  # fmt: skip
    verified = mbd.verify(mech, a.q, v, t1=0.2, dt=0.02)
    choice = mbd.choose_method(mech, rest.q, t1=0.2)
    rssr = mbd.zoo.rssr(gravity=jnp.array([0, 0, -G], jnp.float32))
    q, none = mbd.neutral(rssr), jnp.zeros(mbd.topology(rssr).nv)
    return (
        found
        | of_a_corner()
        | {
            "DormandPrince8": (precise.q, precise.v, precise.status, precise.error),
            "choose_method": np.array([choice.fastest, choice.steps_of_motion], np.float32),
            "energy_balance": mbd.energy_balance(mech, run),
            "GeneralizedAlpha": (implicit.q[-1], implicit.v[-1], implicit.status, implicit.error),
            "rssr": mbd.inverse_dynamics(rssr, q, none, mbd.forward_dynamics(rssr, q, none)[0]),
            "switches": (
                switched.q[:, 0],
                switched.v[:, 0],
                switched.switches["held"],
                switched.events["let go"].t[:1],
                switched.forced,
                switched.status,
            ),
            "Variational": (midpoint.q[-1], midpoint.v[-1], midpoint.status, midpoint.error),
            "verify": np.array([verified.digits_q, verified.digits_v], np.float32),
        }
    )


def save(results, path):
    """Write results to a file, ``name/place`` each."""
    assert not jax.config.read("jax_enable_x64")
    arrays = {}
    for name, tree in results.items():
        leaves = jax.tree_util.tree_leaves(tree)
        arrays |= {f"{name}/{k}": np.asarray(x) for k, x in enumerate(leaves)}
    np.savez(path, **arrays)


def computed(what, folder):
    """The results of a function of this module, by a process in single precision."""
    path = folder / "results.npz"
    environment = os.environ | {
        "JAX_ENABLE_X64": "0",
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir or "",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    run = subprocess.run(
        [sys.executable, __file__, what.__name__, str(path)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    results: dict[str, list[np.ndarray]] = {}
    with np.load(path) as file:
        for key in file.files:
            results.setdefault(key.split("/")[0], []).append(file[key])
    return results


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return computed(core, tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def all_found(tmp_path_factory):
    return computed(everything, tmp_path_factory.mktemp("everything"))


def close(x, wanted, factor=1.0):
    size = max(1.0, float(np.max(np.abs(wanted))))
    np.testing.assert_allclose(x, wanted, rtol=0, atol=factor * TIGHT * size)


@pytest.mark.slow
def test_every_public_function_is_here(all_found):
    functions = {n for n in mbd.__all__ if n[0].islower() and callable(getattr(mbd, n))}
    assert functions - ELSEWHERE <= all_found.keys()


@pytest.mark.parametrize("which", ["found", pytest.param("all_found", marks=pytest.mark.slow)])
def test_results_are_single_precision_and_finite(which, request):
    for name, arrays in request.getfixturevalue(which).items():
        for x in arrays:
            assert x.dtype in (np.float32, np.int32), (name, x.dtype)
            never = (
                name in ("simulate", "generalized_alpha") and x.ndim == 0 and x == np.inf
            )  # the time of failure
            assert never or np.all(np.isfinite(x)), name


def test_positions_and_speeds(found):
    close(found["assemble"][0], [TURN, -TURN, TURN])
    close(found["assemble_velocity"][0], [SPEED, -SPEED, SPEED])
    close(found["point_position"][0], [1.0 - SIN, COS, 0.0])
    close(found["point_velocity"][0], [-SPEED * COS, -SPEED * SIN, 0.0])
    close(found["constraint_residual"][0], [0.0, 0.0])
    moves = found["body_jacobian"][0] @ [SPEED, -SPEED, SPEED]
    close(moves, [0.0, 0.0, 0.0, -SPEED * COS, -SPEED * SIN, 0.0])
    close(found["centre_of_mass"][0], [0.5 - 2.0 / 3.0 * SIN, 2.0 / 3.0 * COS, 0.0])
    close(found["momentum"][0], SPEED * np.array([0.0, 0.0, 1 / 3, -2.0 * COS, -2.0 * SIN, 0.0]))
    q, v = found["project"]
    close(q - q[0] * np.array([1.0, -1.0, 1.0]), np.zeros(3))
    close(v - v[0] * np.array([1.0, -1.0, 1.0]), np.zeros(3))
    assert found["mobility"][0] == 1
    status, conditioning, residual, slip, contradiction = found["check_state"]
    assert status == 0 and conditioning > 0.1 and max(residual, slip) < TIGHT


@pytest.mark.slow
def test_a_wheel_on_its_kingpin(all_found):
    """In closed form: the spring hangs the wheel up along its kingpin; the rod's end is where."""
    close(all_found["preloaded"][0], MASS * G - LOAD)
    left, inner, outer, error, share, circle = all_found["steering_curves"]
    close(left, ANGLE, factor=10.0)
    assert -outer == left and inner > 0.0  # the car turns to the right
    ideal = np.arctan2(np.sin(inner), np.cos(inner) + 1.6 / BASE * np.sin(inner))
    close(error, outer - ideal, factor=10.0)
    close(share * (inner - ideal), inner - outer, factor=10.0)
    reach = BASE + 0.1 * np.sin(outer)  # the outer wheel turns forwards about its kingpin
    close(circle, 2.0 * reach / np.sin(outer), factor=10.0)
    close(all_found["Curve"][0], (left - 0.25) / 0.1)


def test_equation_of_motion(found):
    acceleration = 1.2 * G * SIN
    close(found["forward_dynamics"][0], acceleration * np.array([1.0, -1.0, 1.0]))
    close(found["inverse_dynamics"][0] @ [1.0, -1.0, 1.0], -2.0 * G * SIN)
    close(found["gradient"][0], 1.2 * G * COS, factor=10.0)
    close(found["kinetic_energy"][0], 5.0 / 6.0 * SPEED**2)
    close(found["potential_energy"][0], 2.0 * G * COS)
    # Both supports carry the weight and what the centre of mass of the three is accelerated by.
    up = -2.0 * (acceleration * SIN + SPEED**2 * COS)
    close(sum(found["joint_reactions"])[4], 3.0 * G + up)


def test_rest_and_small_motions(found):
    close(found["equilibrium"][0] % (2 * np.pi), [np.pi] * 3, factor=10.0)
    a, b, frequencies = found["linearize"]
    close(a, [[0.0, 1.0], [-1.2 * G, 0.0]])
    close(b, [[0.0], [0.6]])
    close(frequencies, np.sqrt(1.2 * G) / (2 * np.pi))


def same_run(found):
    """Times, coordinates, speeds and energy of the run."""
    t, q, v = found["simulate"][:3]
    return t, q, v, 5.0 / 6.0 * v[:, 0] ** 2 + 2.0 * G * np.cos(q[:, 0])


def test_a_run_and_a_driven_motion(found):
    t, q, v, energy = same_run(found)
    status, drift, failed_at, error = found["simulate"][3:7]
    close(t, np.linspace(0.0, 0.2, 11))
    close(energy, np.full(11, energy[0]))
    assert status == 0 and drift < TIGHT and failed_at == np.inf
    assert error < 1e-5
    between = found["states_at"]
    close(between[0], q[5])
    close(between[1], v[5])
    t, q, _, vdot, effort = found["simulate_driven"][:5]
    close(q[:, 0], TURN + RATE * t)
    close(vdot, np.zeros((5, 3)), factor=10.0)
    close(effort[:, 0], -2.0 * G * np.sin(q[:, 0]), factor=10.0)


@pytest.mark.slow
def test_other_methods(all_found):
    found = all_found
    _, q, v, energy = same_run(found)
    others = found["DormandPrince8"]
    close(others[0], q, factor=2.0)
    close(others[1], v, factor=2.0)
    assert others[2] == 0 and others[3] < 1e-3
    for name in ("GeneralizedAlpha", "Variational"):
        implicit = found[name]
        close(implicit[0], q[-1], factor=2.0)
        close(implicit[1], v[-1], factor=10.0)
        assert implicit[2] == 0 and implicit[3] < 1e-3
    q, v, held, when, forced, status = found["switches"]
    assert forced == 1 and status == 0
    close(held, [1.0, 1.0, 0.0])
    close(when, 0.15 / SPEED, factor=10.0)
    close(q[1], TURN + 0.05 * SPEED)
    close(v[:2], SPEED)
    after = 5.0 / 6.0 * v[2] ** 2 + 2.0 * G * np.cos(q[2])
    close(after, 5.0 / 6.0 * SPEED**2 + 2.0 * G * np.cos(TURN + 0.15), factor=10.0)
    _, kinetic, potential, _, missing, _, _ = found["energy_balance"]
    close(kinetic + potential, np.full(11, energy[0]))
    close(missing, np.zeros(11))
    fastest, steps = found["choose_method"][0]
    close(fastest, np.sqrt(1.2 * G), factor=100.0)
    assert 1 < steps < 100 and np.all((found["verify"][0] > 4.0) & (found["verify"][0] < 8.0))
    close(found["rssr"][0], np.zeros(5))


if __name__ == "__main__":
    cpu.effort = 0  # as in the other tests, so is the collector
    gc.set_threshold(100_000, 20, 20)
    save({"core": core, "everything": everything}[sys.argv[1]](), sys.argv[2])


@pytest.mark.slow
def test_derivatives_fill_vectors_of_single_precision():
    """One number of double precision in a kernel would halve the samples of its vectors."""
    mech = mbd.zoo.multi_link().astype(jnp.float32)
    q, v = mbd.neutral(mech), jnp.zeros(mbd.topology(mech).nv, jnp.float32)

    def slope(mech, q, v):
        return jax.grad(lambda m: jnp.sum(mbd.forward_dynamics(m, q, v)[0]))(mech)

    leaves, tree = jax.tree_util.tree_flatten((mech, q, v))
    closed = jax.make_jaxpr(lambda *x: jax.tree_util.tree_leaves(slope(*tree.unflatten(x))))(
        *leaves
    )
    assert Kernel(closed, (True,) * len(leaves)).lanes() == cpu.vector_bits() // 32


def test_speeds_lose_what_the_rows_lose_and_not_its_square():
    """A plate on five rods, two of them close to each other: a Gram matrix has the square of κ."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=(5, 3))
    high = 0.3 * low + np.array([0.0, 0.0, 1.0]) + 0.2 * rng.normal(size=(5, 3))
    low[4], high[4] = (x[3] + 0.3 * rng.normal(size=3) for x in (low, high))
    rods = {f"rod{i}": mbd.Rod("ground", "plate", low[i], high[i]) for i in range(5)}
    plate = mbd.Body(1.0, (0.1, 0.2, 1.0), 0.1 * np.eye(3))
    mech = mbd.Mechanism({"plate": plate}, {"free": mbd.Free("ground", "plate"), **rods})
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), mech)
    double = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), single)
    q, guess = mbd.neutral(single), np.float32(rng.normal(size=6))
    found = mbd.assemble_velocity(single, q, guess=guess)
    expected = mbd.assemble_velocity(double, np.float64(q), guess=np.float64(guess))
    sizes = np.linalg.svd(mbd.constraint_jacobian(double, np.float64(q)), compute_uv=False)
    lost = np.finfo(np.float32).eps * sizes[0] / sizes[-1]
    np.testing.assert_allclose(found, expected, atol=lost * np.max(np.abs(guess)))
