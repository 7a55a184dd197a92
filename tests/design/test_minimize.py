"""`minimize`: known optima, all methods alike, failures, and what is kept."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxmbd as mbd
from jaxmbd.design import (
    AtLeast,
    AtMost,
    Between,
    Closing,
    Descent,
    Equals,
    Mean,
    MovedTogether,
    Quantile,
    Scatter,
    Unknowns,
    Within,
)
from jaxmbd.observe import Configuration, Coordinate, Sweep
from jaxmbd.sampling import Normal

# Hock and Schittkowski, Test Examples for Nonlinear Programming Codes, problem 71.
LIMITS = {name: Between(1.0, 5.0, start=s) for name, s in zip("abcd", (1, 5, 5, 1), strict=True)}


def cost(x):
    return x["a"] * x["d"] * (x["a"] + x["b"] + x["c"]) + x["c"]


HS71 = {
    "product": AtLeast(lambda x: x["a"] * x["b"] * x["c"] * x["d"], 25.0),
    "squares": Equals(lambda x: sum(x[n] ** 2 for n in "abcd"), 40.0),
}


@pytest.mark.parametrize("method", ["slsqp", "levenberg-marquardt"])
def test_a_saddle_on_the_way_is_called_one(method):
    """Of a design that is symmetrical in b, begun on its axis; beside it the minima are found."""

    def residuals(x):
        return jnp.stack([x["a"] - 0.5, x["b"] ** 2 - 1.0])

    def squares(x):
        return jnp.sum(residuals(x) ** 2)

    goal = squares if method == "slsqp" else residuals
    for start, status in ((0.0, "saddle"), (0.1, "optimal")):
        vary = {"a": Between(-2.0, 2.0, start=-1.5), "b": Between(-2.0, 2.0, start=start)}
        found = mbd.minimize(goal, None, vary, method=method)
        assert found.status == status and found.values["a"] == pytest.approx(0.5, abs=1e-6)
    assert abs(found.values["b"]) == pytest.approx(1.0)
    report = str(
        mbd.minimize(goal, None, vary | {"b": Between(-2.0, 2.0, start=0.0)}, method=method)
    )
    assert "at a saddle; the objective falls with b" in report


def test_what_constraints_forbid_is_no_saddle():
    """The objective falls along b, where the constraint holds it; without it, it is a saddle."""
    vary = {"a": Between(-2.0, 2.0, start=1.0), "b": Between(-2.0, 2.0, start=0.0)}

    def goal(x):
        return x["a"] ** 2 - x["b"] ** 2

    held = {"held": Equals(lambda x: x["b"] + x["a"] ** 2, 0.0)}
    assert mbd.minimize(goal, None, vary, constraints=held).status == "optimal"
    aside = {"aside": AtMost(lambda x: x["a"] + x["b"], 3.0)}
    assert mbd.minimize(goal, None, vary, constraints=aside).status == "saddle"


@pytest.mark.parametrize("method", ["slsqp", "trust-constr"])
def test_a_published_problem_with_constraints(method):
    found = mbd.minimize(cost, None, LIMITS, constraints=HS71, method=method)
    assert found.status == "optimal"
    np.testing.assert_allclose(found.objective, 17.0140173, rtol=1e-8)
    expected = [1.0, 4.7429994, 3.8211503, 1.3794082]
    np.testing.assert_allclose(list(found.values.values()), expected, rtol=1e-7)
    # f = 17.014 changes by its multiplier as a limit is moved; printed there with f's sign.
    np.testing.assert_allclose(abs(found.multipliers["squares"]), 0.16146857, rtol=1e-6)
    np.testing.assert_allclose(found.multipliers["product"], 0.55229366, rtol=1e-6)
    assert found.multipliers["a"] > 0.0  # pushed against its lower limit


def test_multipliers_are_derivatives_of_the_optimum():
    def at(product):
        limits = HS71 | {"product": AtLeast(HS71["product"].what, product)}
        return mbd.minimize(cost, None, LIMITS, constraints=limits)

    slope = (at(25.0 + 1e-3).objective - at(25.0 - 1e-3).objective) / 2e-3
    np.testing.assert_allclose(at(25.0).multipliers["product"], slope, rtol=1e-6)


T = np.linspace(0.0, 3.0, 12)


def misfit(x):
    return x["a"] * jnp.exp(-x["b"] * T) - 2.0 * np.exp(-0.7 * T)


@pytest.mark.parametrize("method", ["levenberg-marquardt", "least-squares", "slsqp"])
def test_matching_a_curve(method):
    squares = method != "slsqp"
    found = mbd.minimize(
        misfit if squares else lambda x: jnp.sum(misfit(x) ** 2),
        None,
        {"a": Between(0.1, 5.0, start=1.0), "b": Between(0.1, 3.0, start=2.0)},
        method=method,
        starts=4,
    )
    np.testing.assert_allclose([found.values["a"], found.values["b"]], [2.0, 0.7], rtol=1e-6)
    assert found.reached == 1.0


def test_a_limit_binds_in_least_squares():
    found = mbd.minimize(
        misfit,
        None,
        {"a": Between(0.1, 1.5, start=1.0), "b": Between(0.1, 3.0, start=2.0)},
        method="least-squares",
    )
    assert found.status == "optimal" and found.values["a"] == 1.5
    assert found.multipliers["a"] < 0.0  # more room above would make it less


def test_descent_by_optax_for_few_and_for_many_unknowns():
    few = mbd.minimize(
        lambda x: jnp.sum(x["p"] ** 2),
        None,
        {"p": Between([-1.0] * 3, [2.0] * 3)},
        method=Descent(optax.adam(0.05), steps=300),
    )
    many = mbd.minimize(
        lambda x: jnp.sum((x["p"] - 0.3) ** 2),
        None,
        {"p": Between([-1.0] * 50, [2.0] * 50)},
        method=Descent(optax.adam(0.05), steps=300),
    )
    assert few.objective < 1e-8 and many.objective < 1e-8


def test_many_starts_find_what_one_does_not():
    """Rastrigin's function: eleven minima on a line."""

    def waves(x):
        return x["u"] ** 2 + 10.0 * (1.0 - jnp.cos(2.0 * jnp.pi * x["u"]))

    limits = {"u": Between(-5.1, 4.9, start=3.9)}
    one = mbd.minimize(waves, None, limits)
    many = mbd.minimize(waves, None, limits, starts=32, seed=1)
    again = mbd.minimize(waves, None, limits, starts=32, seed=1)
    assert one.objective > 0.5 and abs(many.values["u"]) < 1e-8
    assert np.array_equal(many.designs, again.designs) and 0.0 < many.reached < 1.0
    picked = mbd.minimize(waves, None, limits, starts=4, candidates=64, seed=1)
    assert abs(picked.values["u"]) < 1e-8


def short_rod():
    return mbd.zoo.slider_crank(rod=0.1)


TURN = np.linspace(0.0, np.pi, 7)
RISE = Sweep({"O": TURN}, {"swing": Coordinate("B")})
ROD = {"points/A/x": Between(0.22, 1.2)}


def swing(seen):
    return jnp.mean((seen["swing"] + 0.5 * np.sin(TURN)) ** 2)


@pytest.mark.slow
def test_a_start_that_cannot_close_comes_back():
    """A rod shorter than its crank follows a part of the turn only."""
    found = mbd.minimize(swing, short_rod(), ROD, observe=RISE, starts=6)
    assert found.status == "optimal" and np.isnan(found.objective_before)
    assert np.all(np.isfinite(found.objectives)) and found.reached == 1.0
    assert found.designs[:, 0] == pytest.approx(found.values["points/A/x"], rel=1e-6)


def test_freedoms_that_nobody_holds_are_warned_of():
    turn = Sweep({"hinge_1": (0.0, 0.1)}, {"x": Coordinate("hinge_2")})
    mass = {"bodies/bob_2/mass": Within("10 g")}
    with pytest.warns(UserWarning, match="1 degree of freedom is .* hold 'hinge_2' by known="):
        mbd.minimize(lambda seen: seen["x"][1], mbd.zoo.double_pendulum(), mass, observe=turn)


def test_the_edge_of_closure_is_held_by_a_margin_of_ones_own():
    """The shortest rod that still follows is as long as the crank; the objective ends there."""
    margin = Closing(lambda m: m.points["A"][0] - m.points["B"][0] - m.points["B"][0], 1e-3)
    pose = Configuration({"O": np.pi / 2}, {"swing": Coordinate("B")})
    found = mbd.minimize(
        lambda seen: -(seen["swing"] ** 2), short_rod(), ROD, observe=pose, closing=margin
    )
    assert found.constraints["closing"] == pytest.approx(1e-3, abs=1e-8)
    assert found.multipliers["closing"] > 0.0


def test_a_run_that_ended_goes_on(tmp_path):
    store = tmp_path / "kept" / "run.sqlite"
    whole = mbd.minimize(cost, None, LIMITS, constraints=HS71)
    mbd.minimize(cost, None, LIMITS, constraints=HS71, store=store, steps=3)
    rest = mbd.minimize(cost, None, LIMITS, constraints=HS71, store=store)
    assert rest.values == whole.values and rest.computed < whole.computed
    nothing = mbd.minimize(cost, None, LIMITS, constraints=HS71, store=store)
    assert nothing.computed == 0 and nothing.values == whole.values
    with pytest.raises(ValueError, match="another problem.*functions"):
        mbd.minimize(lambda x: 2.0 * cost(x), None, LIMITS, constraints=HS71, store=store)
    (tmp_path / "text").write_text("no such file" * 100)
    with pytest.raises(ValueError, match="no store of evaluations"):
        mbd.minimize(cost, None, LIMITS, store=tmp_path / "text")


def test_robust_measures_have_exact_derivatives():
    """The optimum of a quadratic under scatter: mean and deviation are known functions."""
    model = mbd.zoo.simple_pendulum()
    # The bob's mass m scatters by a factor 1 + ε: E[(m(1 + ε) − 2)²] = (m − 2)² + m² σ².
    scatter = Scatter({"bodies/bob/mass": Normal(0.1, relative=True)}, samples=64)
    vary = {"bodies/bob/mass": Between(0.5, 4.0)}
    found = mbd.minimize(lambda m: (m.bodies["bob"].mass - 2.0) ** 2, model, vary, scatter=scatter)
    factors = scatter.drawn(model)["bodies/bob/mass"]
    expected = 2.0 * factors.mean() / np.mean(factors**2)
    np.testing.assert_allclose(found.values["bodies/bob/mass"], expected, rtol=1e-8)
    upper = mbd.minimize(
        lambda m: -m.bodies["bob"].mass,
        model,
        vary,
        scatter=scatter,
        over=Mean(1.0),
        constraints={"heavy": AtMost(lambda m: m.bodies["bob"].mass, 3.0, over=Quantile(0.95))},
    )
    at_limit = upper.values["bodies/bob/mass"] * np.quantile(factors, 0.95)
    np.testing.assert_allclose(at_limit, 3.0, rtol=1e-9)


def test_unknowns_are_components_groups_and_limits():
    mech = mbd.zoo.multi_link()
    unknowns = Unknowns.of(
        mech,
        {
            "points/tierod_*/z": Within("15 mm"),
            "lift": MovedTogether(
                {"points/lateral_ball/z": 1, "points/lateral_inboard/z": -1}, Within(0.01)
            ),
            "forces/spring/stiffness": Within(0.1, relative=True),
        },
    )
    assert len(unknowns) == 4
    moved = unknowns.model(np.array([1.0, 0.0, -1.0, 0.5]))
    was = mech.points
    np.testing.assert_allclose(
        moved.points["tierod_inboard"] - was["tierod_inboard"], [0, 0, 0.015]
    )
    np.testing.assert_allclose(moved.points["lateral_ball"] - was["lateral_ball"], [0, 0, -0.01])
    np.testing.assert_allclose(
        moved.points["lateral_inboard"] - was["lateral_inboard"], [0, 0, 0.01]
    )
    assert moved.forces["spring"].stiffness == pytest.approx(1.05 * 120000.0)
    slope = jax.jit(jax.jacfwd(lambda x: unknowns.model(x).points["lateral_ball"][2]))(jnp.zeros(4))
    np.testing.assert_allclose(slope, [0.0, 0.0, 0.01, 0.0])


def refused(text, *args, **options):
    with pytest.raises(ValueError, match=text):
        mbd.minimize(*args, **options)


def test_what_is_wrong_is_said():
    mech = mbd.zoo.simple_pendulum()
    vary = {"bodies/bob/mass": Within(0.1)}

    def mass(m):
        return m.bodies["bob"].mass

    refused("did you mean", mass, mech, {"bodies/bob/mas": Within(0.1)})
    refused("varied twice", mass, mech, vary | {"bodies/*/mass": Within(0.2)})
    refused("vary is empty", mass, mech, {})
    refused("slsqp", mass, mech, vary, method="slspq")
    refused("one number", lambda m: m.points["pivot"], mech, vary)
    refused("observe=", "toe", mech, vary)
    refused(
        "no output 'angel'.*did you mean 'angle'",
        "angel",
        mech,
        vary,
        observe=Configuration({}, {"angle": Coordinate("hinge")}),
    )
    refused("AtMost", mass, mech, vary, constraints={"x": 3.0})
    refused(
        "needs two finite limits",
        mass,
        mech,
        {"bodies/bob/mass": Between(0.0, np.inf, scale=1.0)},
        starts=3,
    )
    refused("none of 1 start", lambda m: jnp.log(-mass(m)), mech, vary)
    refused("derivative.*'bodies/bob/mass'", lambda m: jnp.sqrt(mass(m) - 1.0), mech, vary)
    refused("give scatter=", mass, mech, vary, over=Mean())
    refused("is in kg", mass, mech, {"bodies/bob/mass": Within("3 mm")})


def test_scales_of_the_start_do_not_decide():
    """Gradients at the start that are enormous, or only rounding, or zero."""
    wall = {"a": Between(1e-3, 1.0, start=2e-3)}
    found = mbd.minimize(
        lambda x: x["a"], None, wall, constraints={"c": AtMost(lambda x: x["a"] ** -3, 1000.0)}
    )
    assert found.status == "optimal" and found.values["a"] == pytest.approx(0.1, rel=1e-9)
    line = {"a": Between(-3.0, 3.0, start=-2.0)}
    steep = mbd.minimize(
        lambda x: jnp.exp(-40.0 * (x["a"] + 1.0)) * 1e12 + (x["a"] - 0.3) ** 2, None, line
    )
    assert steep.values["a"] == pytest.approx(0.3, abs=1e-6)
    symmetric = mbd.minimize(
        lambda x: (jnp.sin(x["a"]) ** 2 - 0.25) ** 2 + 1e-17 * x["a"],
        None,
        {"a": Between(-3.0, 3.0, start=0.0)},
    )
    assert abs(symmetric.values["a"]) == pytest.approx(np.pi / 6, abs=1e-6)


def test_a_store_tells_scatters_apart(tmp_path):
    model, vary = mbd.zoo.simple_pendulum(), {"bodies/bob/mass": Between(0.5, 4.0)}

    def run(deviation):
        scatter = Scatter({"bodies/bob/mass": Normal(deviation, relative=True)}, samples=8)
        return mbd.minimize(
            lambda m: (m.bodies["bob"].mass - 2.0) ** 2,
            model,
            vary,
            scatter=scatter,
            store=tmp_path / "kept",
        )

    run(0.1)
    with pytest.raises(ValueError, match="differs in scatter"):
        run(0.5)


def test_left_and_right_move_together():
    car = mbd.mirrored(mbd.zoo.macpherson_steering())
    limits = {"points/left_arm_front": Within(0.01)}
    found = mbd.minimize(lambda m: m.points["left_arm_front"][0], car, limits)
    left, right = (found.mechanism.points[f"{s}_arm_front"] for s in ("left", "right"))
    assert found.status == "optimal"
    np.testing.assert_allclose(left * np.array([1, -1, 1]), right, rtol=0, atol=1e-12)
