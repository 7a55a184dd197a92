"""Designs: the same samples however they are cut; each has what its name promises."""

import json
import pickle

import numpy as np
import pytest
from scipy.stats import qmc

import jaxmbd as mbd
from jaxmbd.sampling import (
    Choice,
    Design,
    FullFactorial,
    Given,
    Grid,
    LatinHypercube,
    LogNormal,
    MonteCarlo,
    Normal,
    Saltelli,
    Sampler,
    Sobol,
    Space,
    TableDesign,
    TruncatedNormal,
    Uniform,
    UnitDesign,
    components,
)
from jaxmbd.sampling import design_of as described

COUNT = 5000
INPUTS = {
    "p": ([1.0, 2.0, 3.0], Normal(0.1)),
    "k": (2.0, LogNormal(0.2)),
    "t": (1.0, TruncatedNormal(1.0, 2.0)),
    "c": (0.0, Choice([0.0, 1.0])),
    "fixed": (7.0, None),
}
UNIT = [MonteCarlo(), LatinHypercube(), Sobol(), Sobol(scramble=False), Saltelli(512), Grid(4)]


def sampler(design, seed=5, **options):
    own = isinstance(design, (Saltelli, Grid, FullFactorial, Given))
    return Sampler(INPUTS, design, count=None if own else COUNT, seed=seed, **options)


def joined(parts):
    return {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}


@pytest.mark.parametrize("design", UNIT, ids=repr)
def test_samples_are_the_same_however_the_range_is_cut(design):
    whole = sampler(
        design, correlation=None if isinstance(design, (Saltelli, Grid)) else {("k", "p/y"): 0.5}
    )
    n = whole.count
    rng = np.random.default_rng(0)
    cuts = np.unique([0, 1, 1023, 1024, n - 1, n, *rng.integers(0, n, 6)])
    again = pickle.loads(pickle.dumps(whole))
    parts = [again.draw(a, b) for a, b in reversed(list(zip(cuts, cuts[1:], strict=False)))]
    for name, values in whole.draw(0, n).items():
        assert values.shape == (n, *np.shape(INPUTS[name][0]))
        np.testing.assert_array_equal(joined(parts[::-1])[name], values)


@pytest.mark.parametrize("design", [MonteCarlo(), LatinHypercube(), Sobol(), Saltelli(8)], ids=repr)
def test_the_seed_changes_the_samples(design):
    one, other = (sampler(design, seed).draw(0, 9)["p"] for seed in (1, 2))
    assert not np.any(one == other)


@pytest.mark.parametrize("design", [MonteCarlo(), Sobol()], ids=repr)
def test_more_samples_keep_those_that_there_are(design):
    few, many = (Sampler(INPUTS, design, count=n).draw(0, 1500) for n in (1500, 4000))
    for name in few:
        np.testing.assert_array_equal(few[name], many[name])


def test_blocks_of_random_numbers_do_not_repeat():
    u = Sampler({"x": (0.0, Uniform(1.0))}, count=8192).draw(0, 8192)["x"]
    assert len(np.unique(u)) == 8192


def test_latin_hypercube_has_each_interval_once():
    inputs = {"p": (np.full(6, 0.5), Uniform(0.5))}
    drawn = Sampler(inputs, LatinHypercube(), count=3000).draw(0, 3000)["p"]
    for column in drawn.T:
        np.testing.assert_array_equal(np.sort(np.floor(column * 3000)), np.arange(3000))
    assert np.abs(np.triu(np.corrcoef(drawn.T), 1)).max() < 4.0 / np.sqrt(3000)


@pytest.mark.parametrize("scramble", [True, False])
def test_sobol_fills_evenly(scramble):
    inputs = {"p": (np.full(5, 0.5), Uniform(0.5))}
    sobol, random = (
        Sampler(inputs, d, count=1024).draw(0, 1024)["p"] for d in (Sobol(scramble), MonteCarlo())
    )
    assert sobol.min() > 0.0 and sobol.max() < 1.0
    for column in sobol.T:
        np.testing.assert_array_equal(np.sort(np.floor(column * 1024)), np.arange(1024))
    assert qmc.discrepancy(sobol) < 0.1 * qmc.discrepancy(random)


def test_grid_and_levels_are_all_combinations():
    grid = Sampler(INPUTS, Grid({"p/z": 3, "k": 2, "c": 2}))
    drawn = grid.draw(0, grid.count)
    assert grid.count == 12
    assert (
        len({(z, k, c) for z, k, c in zip(drawn["p"][:, 2], drawn["k"], drawn["c"], strict=True)})
        == 12
    )
    np.testing.assert_array_equal(drawn["t"], 1.0)
    np.testing.assert_allclose(drawn["p"][:, :2], [[1.0, 2.0]] * 12)

    inputs = {"p": ([1.0, 2.0, 3.0], None), "k": (2.0, None), "fixed": (7.0, None)}
    table = Sampler(inputs, FullFactorial({"p/y": [0.0, 9.0], "k": [4.0, 5.0, 6.0]}))
    assert table.sampled == ("p", "k")
    drawn = table.draw(0, 6)
    np.testing.assert_array_equal(drawn["k"], [4.0, 5.0, 6.0] * 2)
    np.testing.assert_array_equal(drawn["p"], [[1.0, y, 3.0] for y in (0, 0, 0, 9, 9, 9)])


def test_a_table_may_come_from_pandas_or_xarray():
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    points, stiffness = np.arange(12.0).reshape(4, 3), np.array([4.0, 5.0, 6.0, 7.0])
    frame = pandas.DataFrame({"k": stiffness, "p/x": points[:, 0]})
    dataset = xarray.Dataset(
        {
            "points.p": (("sample", "axis"), points, {"role": "input", "path": "p"}),
            "k": ("sample", stiffness, {"role": "input"}),
            "nominal.k": ((), 2.0, {"role": "nominal"}),
            "camber": ("sample", stiffness, {"role": "output"}),
        }
    )
    inputs = {"p": ([1.0, 2.0, 3.0], None), "k": (2.0, Normal(1.0))}
    for table, p in [
        ({"p": points, "k": list(stiffness)}, points),
        (frame, [[x, 2.0, 3.0] for x in points[:, 0]]),
        (dataset, points),
    ]:
        drawn = Sampler(inputs, Given(table)).draw(1, 4)
        np.testing.assert_array_equal(drawn["p"], p[1:])
        np.testing.assert_array_equal(drawn["k"], stiffness[1:])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Given({"k": [1.0, 2.0], "p": [[1.0, 2.0, 3.0]]}), "different lengths: k: 2, p: 1"),
        (lambda: Given({"k": [1.0, np.nan]}), "missing or infinite numbers: k"),
        (lambda: Given({"k": ["a"]}), "more than numbers"),
        (lambda: Given({}), "no columns"),
        (lambda: Grid(0), "at least one value"),
        (lambda: FullFactorial({"k": 1.0}), "must be a list"),
    ],
)
def test_wrong_tables_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"count": None}, "number of samples is missing"),
        ({"count": 0}, "at least one sample"),
        ({"count": 10.5}, "whole number, is 10.5"),
        ({"count": 9, "seed": -1}, "seed must be a whole number"),
        ({"design": Grid(2), "count": 9}, "9 samples asked for, Grid(levels=2) has 64"),
        ({"design": Grid(200)}, "Grid(levels=200) has 6.4e+13 samples: too many"),
        ({"design": Grid({"q": 2})}, "levels of 'q'"),
        ({"design": Saltelli(100)}, "power of two, is 100"),
        ({"design": Given({"kk": [1.0]})}, "'kk', which is no input; did you mean 'k'"),
        ({"design": Given({"k": [1.0]})}, "p has a distribution, but given has no values of it"),
        ({"design": Given({"p": [1.0]})}, "rows have shape (), not (3,)"),
    ],
)
def test_what_is_wrong_with_a_design_is_said(options, says):
    made = Sampler(INPUTS, **options)
    assert says in "\n".join(made.problems())
    with pytest.raises(ValueError, match="cannot be drawn"):
        made.draw(0, 1)


def test_all_problems_come_at_once():
    inputs = {"x": (np.nan, None), "y": (0.0, Normal(1.0, relative=True)), "z": (0.0, "normal")}
    assert len(Sampler(inputs, Grid({"q": 2}), seed=-1).problems()) == 5


def test_saltelli_exchanges_one_input_at_a_time():
    made = Sampler(INPUTS, Saltelli(4, second_order=True))
    u = made.design.unit_samples(0, made.count, made.space, seed=0, count=made.count)
    rows = u.reshape(4, 2 * 4 + 2, 6)
    a, b = rows[:, 0], rows[:, -1]
    assert not np.any(a == b)
    for i, columns in enumerate([slice(0, 3), slice(3, 4), slice(4, 5), slice(5, 6)]):
        for row, (own, other) in {1 + i: (a, b), 5 + i: (b, a)}.items():
            expected = own.copy()
            expected[:, columns] = other[:, columns]
            np.testing.assert_array_equal(rows[:, row], expected)


@pytest.mark.parametrize("design", [*UNIT, FullFactorial({"k": [1, 2]}), Given({"k": [1, 2]})])
def test_descriptions_are_plain(design):
    said = sampler(design).describe()
    assert json.loads(json.dumps(said)) == said
    if not isinstance(design, Given):
        assert described(said["design"]).describe() == said["design"]


def test_the_order_of_inputs_is_part_of_the_description():
    """JSON objects have no order, but random numbers go to the inputs in theirs."""
    one, other = (Sampler({n: INPUTS[n] for n in order}, count=9) for order in ("pk", "kp"))
    assert not np.any(one.draw(0, 9)["k"] == other.draw(0, 9)["k"])
    sort = {"sort_keys": True}
    assert json.dumps(one.describe(), **sort) != json.dumps(other.describe(), **sort)


class Corners(UnitDesign):
    """A design of one's own: the lower quartiles and the medians."""

    kind = "corners"

    def unit_samples(self, start, stop, space, *, seed, count):
        rows = 0.25 + 0.25 * (np.arange(start, stop) % 2)
        return np.repeat(rows[:, None], len(space.columns), axis=1)


class Steps(TableDesign):
    """A table of one's own: whole numbers."""

    kind = "steps"

    def count(self, asked, space):
        return 4

    def names(self):
        return ["k"]

    def rows(self, start, stop):
        return {"k": np.arange(start, stop, dtype=float)}


def test_designs_of_ones_own_are_drawn():
    inputs = {"p": ([1.0, 2.0], Uniform(0.4)), "k": (2.0, Uniform(1.0))}
    own = Sampler(inputs, Corners(), count=2)
    assert isinstance(own.design, Design) and own.space == Space(
        ("p/0", "p/1", "k"), ("p", "p", "k")
    )
    drawn = own.draw(0, 2)
    np.testing.assert_allclose(drawn["p"], [[0.8, 1.8], [1.0, 2.0]])
    np.testing.assert_allclose(drawn["k"], [1.5, 2.0])
    assert own.describe()["design"] == {"design": "corners"}
    table = Sampler({"k": (2.0, None)}, Steps())
    assert (table.count, table.sampled) == (4, ("k",))
    np.testing.assert_array_equal(table.draw(1, 3)["k"], [1.0, 2.0])


def test_numbers_are_named_as_the_variables_of_a_mechanism():
    for mech in (mbd.zoo.rssr(), mbd.zoo.n_four_bar(1, planar=True), mbd.zoo.slider_crank()):
        vectors = [x for x in mbd.variables(mech).values() if np.ndim(x.value) == 1]
        assert vectors
        for x in vectors:
            assert components(x.path, x.value.shape) == [f"{x.path}/{c}" for c in x.components]
