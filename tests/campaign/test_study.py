"""A study: what it refuses, what it stores, that it goes on, and that a rerun is the same."""

import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import jaxmbd as mbd
from jaxmbd.campaign import Input, Rerun, StoreDiffers, Study, StudyStore, spread_table, status_line
from jaxmbd.campaign.model import MOST_BYTES, chunk_rows
from jaxmbd.campaign.run import warn_of_jamming, warn_of_odd_draws, warn_of_unused
from jaxmbd.observe import Axis, Configuration, Coordinate, Output, Sweep, Together
from jaxmbd.sampling import Normal, Uniform


def swing(sample):
    """Period [s] of small swings of a pendulum, and its deflection over three loads [rad]."""
    length, mass = sample["length"], sample["mass"]
    period = 2.0 * jnp.pi * jnp.sqrt(length / 9.81)
    return {"period": period, "deflection": jnp.array([1.0, 2.0, 4.0]) / (9.81 * mass)}


INPUTS = {
    "length": Input(Normal(1e-3), nominal=0.25, unit="m", text="length"),
    "mass": Input(Uniform(0.1, relative=True), nominal=2.0, unit="kg"),
}
OUTPUTS = {
    "period": Output("s", "period of small swings"),
    "deflection": Output("rad", "deflection", ("load",)),
}
LOADS = {"load": Axis((1.0, 2.0, 4.0), "N", "horizontal load")}


def pendulum(**options):
    options = {
        "samples": 300,
        "chunk": 64,
        "seed": 4,
        "outputs": OUTPUTS,
        "coords": LOADS,
    } | options
    return Study(swing, INPUTS, title="pendulum", **options)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "pendulum.zarr"
    pendulum().run(path, progress=False)
    return path


def content(path):
    return {p.relative_to(path): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_results_are_a_dataset_that_describes_itself(store):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = xarray.open_zarr(store)
    drawn = pendulum().draw()
    np.testing.assert_array_equal(results.length, drawn["length"])
    np.testing.assert_allclose(results.period, 2 * np.pi * np.sqrt(drawn["length"] / 9.81))
    np.testing.assert_allclose(results.deflection.sel(load=2.0), 2.0 / (9.81 * drawn["mass"]))
    assert results.deflection.dims == ("sample", "load")
    assert results.period.attrs["units"] == "s" and results["load"].attrs["units"] == "N"
    assert float(results["nominal.mass"]) == 2.0 and np.all(results.status == 0)
    assert results.attrs["study"]["inputs"]["length"]["sigma"] == 1e-3
    assert results.attrs["provenance"]["versions"]["jax"]


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(store, tmp_path):
    path, seen = tmp_path / "again.zarr", []

    def stop(report):
        seen.append(report.chunk)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="2 of 5 chunks are stored"):
        pendulum().run(path, progress=stop)
    pendulum().run(path, progress=lambda report: seen.append(report.chunk))
    assert seen == [0, 1, 2, 3, 4]
    assert content(path) == content(store)


def test_results_do_not_depend_on_the_chunks(store, tmp_path):
    other = pendulum(chunk=300).run(tmp_path / "other.zarr", progress=False)
    for name, x in xarray.open_zarr(store).data_vars.items():
        np.testing.assert_array_equal(x, other[name], err_msg=name)


def test_another_study_is_refused_with_the_differences(store):
    before = content(store)
    with pytest.raises(StoreDiffers, match=r"study/seed: 4 -> 5"):
        pendulum(seed=5).run(store, progress=False)

    def other(sample):
        return {**swing(sample), "period": 2.0 * swing(sample)["period"]}

    changed = Study(
        other,
        INPUTS,
        title="pendulum",
        samples=300,
        chunk=64,
        seed=4,
        outputs=OUTPUTS,
        coords=LOADS,
    )
    with pytest.raises(StoreDiffers, match="study/program"):
        changed.run(store, progress=False)
    assert content(store) == before


@pytest.mark.filterwarnings("ignore::UserWarning")  # that lanes cannot compile it
def test_a_program_that_calls_back_to_python_is_known_by_its_outputs(tmp_path):
    def study(gain):
        def model(sample):
            shape = jax.ShapeDtypeStruct((), float)
            y = jax.pure_callback(
                lambda x: np.asarray(gain * (x - 1.0)), shape, sample["x"], vmap_method="sequential"
            )
            return {"y": y}

        return Study(model, {"x": Input(Normal(0.1), nominal=1.0)}, samples=3)

    study(1.0).run(tmp_path / "s.zarr", progress=False)
    study(1.0 + 1e-15).run(tmp_path / "s.zarr", progress=False)  # another processor's last bits
    with pytest.raises(StoreDiffers, match="study/program"):
        study(2.0).run(tmp_path / "s.zarr", progress=False)


def test_a_damaged_chunk_is_found_and_mended(store, tmp_path):
    path = tmp_path / "damaged.zarr"
    pendulum().run(path, progress=False)
    file = path / "period" / "c.3"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    found = pendulum().verify(path, progress=False)
    assert [(d.chunk, d.file) for d in found] == [(3, "period/c.3")]
    assert content(path) == content(store)
    assert pendulum().verify(path, progress=False) == []


def test_a_rerun_is_the_stored_sample(store):
    again = pendulum().rerun(store, 123)
    assert isinstance(again, Rerun) and (again.sample, again.trajectory) == (123, None)
    for name, x in again.outputs.items():
        np.testing.assert_array_equal(x, again.stored[name])
    assert again.mechanism is None and again.inputs["mass"] == pendulum().draw(123, 124)["mass"][0]


@pytest.mark.parametrize("sample", [-1, 300])
def test_a_rerun_needs_a_sample_that_there_is(store, sample):
    with pytest.raises(ValueError, match=f"no sample {sample} .* 0 to 299"):
        pendulum().rerun(store, sample)


def test_a_half_done_store_says_what_is_not_computed(tmp_path):
    pendulum(samples=130).run(tmp_path / "s.zarr", progress=False)
    opened = StudyStore.open(tmp_path / "s.zarr")
    opened.discard(1)
    assert status_line(opened.dataset()).startswith("66 of 130 samples ok; 64 not computed yet")
    with pytest.raises(ValueError, match="sample 70 is not computed yet"):
        pendulum(samples=130).rerun(tmp_path / "s.zarr", 70)


def test_tables_leave_out_what_has_no_value(tmp_path):
    def model(sample):
        late = jnp.where(sample["mass"] > 2.1, jnp.nan, sample["mass"])
        return {"late": late, "status": jnp.where(sample["length"] > 0.2515, 99, 0)}

    found = Study(model, INPUTS, samples=200).run(tmp_path / "s.zarr", progress=False)
    mass, good = np.asarray(found.mass), np.asarray(found.status) == 0
    kept = mass[good & (mass <= 2.1)]
    line = spread_table(found).splitlines()[-1]
    assert np.sum(good) > len(kept) and f" {len(kept)} of 200 " in line
    assert f" {kept.mean():.4f} " in line and f" {kept.max():.4f} " in line
    assert f"{np.sum(~good)} with status 99" in status_line(found) and np.sum(~good) > 0


CRANK = np.linspace(0.0, np.radians(60.0), 4)


def crossing(level, **options):
    """Where the rocker of a spatial four-bar reaches an angle; its least is near −16.7°."""
    place = Coordinate("rocker").crossing(np.radians(level))
    sweep = Sweep({"crank": CRANK}, {"place": place, "rocker": Coordinate("rocker")})
    return Study(mbd.zoo.rssr(), {"points/A/x": Normal(1e-3)}, observe=sweep, **options)


def test_a_nominal_sample_without_a_value_is_told_before_the_run():
    study = crossing(-20.0, samples=8)
    with pytest.warns(UserWarning, match="no value of 'place', .* level that the curve reaches"):
        nominal = study.check()
    assert int(nominal["status"]) == 0 and np.isnan(nominal["place"])
    with pytest.warns(UserWarning, match="no value of place at the nominal inputs"):
        found = study.sensitivities()
    # A gradient of zero would look as if nothing drives it.
    assert np.isnan(found["place"].gradient).all() and np.isfinite(found["rocker"].gradient).all()

    def broken(sample):
        curve = jnp.where(jnp.arange(3.0) < 1.0, jnp.nan, sample["mass"])
        return {"fine": sample["mass"], "curve": curve}

    with pytest.raises(ValueError, match=r"non finite \(no value of 'curve' \(1 of 3 numbers\)\)"):
        Study(broken, {"mass": INPUTS["mass"]}, samples=8).check()


def test_yields_and_tables_of_a_crossing_are_of_all_samples(tmp_path):
    """Against the angles themselves: a rocker that never reaches the level has no place of it."""
    with warnings.catch_warnings():  # the nominal sample has a value, and a reason is none
        warnings.simplefilter("error")
        results = crossing(-16.5, samples=400).run(tmp_path / "s.zarr", progress=False)
    reached = np.degrees(results.rocker.values.min(axis=1)) <= -16.5
    assert 50 < reached.sum() < 350 and np.all(results.status == 0)
    place = mbd.statistics.output_values(results, "place")
    np.testing.assert_array_equal(np.isfinite(place), reached)
    held = mbd.statistics.capability(place, low=0.0, high=2.0)
    assert (held.passed, held.fraction) == (reached.sum(), reached.mean())
    counts = mbd.statistics.value_counts(results)
    assert counts["place"] == (400, reached.sum(), 0, 400 - reached.sum())
    assert counts["rocker"].count == 400
    (line,) = (x for x in spread_table(results).splitlines() if x.startswith("place "))
    assert f" {reached.sum()} of 400 " in line


def test_sensitivities_are_of_correlated_inputs_as_drawn():
    study = pendulum(correlation={("length", "mass"): 0.9})
    found = study.sensitivities()["period"]
    # Of a normal and a uniform input, whose own coefficient with its normal number is √(3/π).
    expected = 2.0 * np.sin(np.pi * 0.9 / 6.0) * np.sqrt(3.0 / np.pi)
    assert found.correlation[0, 1] == pytest.approx(expected, rel=1e-6)


def test_a_study_pickles():
    study = pickle.loads(pickle.dumps(pendulum()))
    assert study.describe() == pendulum().describe()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"inputs": {"length": Normal(1.0)}}, "'length' has no nominal value"),
        ({"inputs": {"length": Input(Normal(1e-3), nominal=np.nan)}}, "is not finite"),
        ({"inputs": {}}, "needs inputs"),
        ({"chunk": 0}, "chunk=0"),
        ({"chunk": 2.5}, "chunk=2.5"),
        ({"inputs": {**INPUTS, "sample": Input(nominal=1.0)}}, "'sample' is the name"),
        (
            {"inputs": {"a/b": Input(Normal(0.1), nominal=1.0), "a.b": Input(nominal=1.0)}},
            "'a/b' and 'a.b' are one name",
        ),
        ({"samples": None}, "samples"),
    ],
    ids=["no nominal", "NaN", "nothing", "chunk", "half", "sample", "one name", "no number"],
)
def test_what_cannot_be_run_is_said_at_once(change, says):
    given = {"inputs": INPUTS, "samples": 10} | change
    with pytest.raises(ValueError, match=says):
        Study(swing, given.pop("inputs"), **given)


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        ({"a/b": 1.0, "a.b": 2.0}, "'a.b' and 'a/b' are one name"),
        ({"sample": 1.0}, "'sample' is the name of the samples"),
        ({"y": 1.0, "status": np.nan}, "'status' is float64"),
        ({"y": 1.0, "status": True}, "'status' is bool"),
        ({"y": 1.0, "status": np.zeros(3, int)}, r"of shape \(3,\)"),
        ({}, "no output"),
    ],
    ids=["one name", "sample", "NaN", "truth", "several", "none"],
)
def test_outputs_that_cannot_be_stored_are_refused(outputs, says):
    study = Study(lambda sample: outputs, INPUTS, samples=3)
    with pytest.raises(ValueError, match=says):
        study.check()


def test_a_mechanism_refuses_what_it_does_not_have():
    rssr = mbd.zoo.rssr()
    with pytest.raises(ValueError, match="observe="):
        Study(rssr, {"points/*": Normal(1e-3)}, samples=3)
    angle = Configuration({"crank": 0.3}, {"rocker": Coordinate("rocker")})
    with pytest.raises(ValueError) as caught:
        Study(
            rssr,
            {"points/cranc": Normal(1e-3), "bodies/crank/mass": Input(Normal(0.1), unit="m")},
            observe=angle,
            samples=3,
        )
    assert "points/cranc" in str(caught.value) and "in 'kg'" in str(caught.value)


def test_a_nominal_that_fails_stops_the_study(tmp_path):
    reach = Configuration(
        {mbd.PointCoordinate("coupler", "B", "z"): 5.0}, {"x": Coordinate("rocker")}
    )
    study = Study(mbd.zoo.rssr(), {"points/*": Normal(1e-3)}, observe=reach, samples=3)
    with pytest.raises(ValueError, match="the nominal sample fails: not assembled"):
        study.run(tmp_path / "none.zarr", progress=False)
    assert not (tmp_path / "none.zarr").exists()


@pytest.mark.parametrize("known", [{}, {"hinge_2": 0.0}])
def test_freedoms_that_nobody_holds_are_told_once(known, tmp_path):
    turn = Sweep({"hinge_1": (0.0, 0.1)}, {"x": Coordinate("hinge_2")}, known=known)
    inputs = {"bodies/bob_2/mass": Normal(1e-3)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k, observed in enumerate((turn, Together({"turn": turn}))):
            study = Study(mbd.zoo.double_pendulum(), inputs, observe=observed, samples=3)
            study.run(tmp_path / f"{k}.zarr", progress=False)
    told = [str(w.message) for w in caught if "not held" in str(w.message)]
    assert len(told) == (0 if known else 2) and all("hold 'hinge_2' by" in text for text in told)


def test_failed_samples_say_which_joint_stays_open(tmp_path):
    turn = Sweep({"crank": np.linspace(0.0, 3.0, 16)}, {"rocker": Coordinate("rocker")})
    study = Study(mbd.zoo.rssr(), {"points/*": Normal(15e-3)}, observe=turn, samples=64)
    results = study.run(tmp_path / "rssr.zarr", progress=False)
    bad = np.flatnonzero(results.status == mbd.Status.NOT_ASSEMBLED)
    assert 0 < bad.size < 64
    assert np.all(np.isnan(results.rocker[bad])) and np.all(results.open_distance[bad] > 0.0)
    names = results.open_joint.attrs["flag_meanings"].split()
    assert all(names[int(k)] for k in results.open_joint[bad])
    assert "not assembled" in mbd.campaign.status_line(results)
    again = study.rerun(tmp_path / "rssr.zarr", int(bad[0]))
    assert again.trajectory.status == mbd.Status.NOT_ASSEMBLED


def test_samples_and_executors_that_are_none_are_refused(tmp_path):
    study = Study(lambda s: {"y": 2.0 * s["a"]}, {"a": Input(Normal(1.0), nominal=1.0)}, samples=8)
    with pytest.raises(TypeError, match="no executor of concurrent.futures"):
        study.run(tmp_path / "a.zarr", executor="tcp://10.0.0.1:8786")
    study.run(tmp_path / "a.zarr", progress=False)
    for sample in (8, -1):
        with pytest.raises(ValueError, match=f"no sample {sample} in .* 0 to 7"):
            study.rerun(tmp_path / "a.zarr", sample)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"bodies/crank/mass": Normal(5.0)}, "'bodies/crank/mass' is negative in .*in kg"),
        (
            {"points/*": Normal(0.5)},
            r"scatters by 0\.\d+ m .*the whole mechanism is 0\.\d+ m large",
        ),
    ],
    ids=["grams", "millimetres"],
)
def test_scatter_in_wrong_units_is_warned_of(inputs, says):
    at = Configuration({"crank": 0.3}, {"rocker": Coordinate("rocker")})
    with pytest.warns(UserWarning, match=says) as told:
        Study(mbd.zoo.rssr(), inputs, observe=at, samples=50).check()
    unused = [str(w.message) for w in told if "no output changes when" in str(w.message)]
    assert len(unused) == ("bodies/crank/mass" in inputs) == ("'bodies/crank/mass'" in str(unused))


def test_a_pattern_may_fit_what_nothing_uses():
    rows = {"y": np.array([1.0, 1.0, 1.0, 2.0, 1.5]), "k": np.zeros(5, int)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_unused(["points/*"], ["points/spare", "points/A"], rows)
    with pytest.warns(UserWarning, match="when 'points/spare' varies"):
        warn_of_unused(["points/spare", "points/A"], ["points/spare", "points/A"], rows)


def test_one_coordinate_that_scatters_by_more_than_the_mechanism_is_warned_of():
    mech = mbd.zoo.rssr()
    draws = {"points/A/x": np.array([-10.0, 12.0]), "bodies/crank/mass": np.array([0.5, 1.5])}
    inputs = {
        "points/A/x": Input(nominal=np.zeros(()), unit="m"),
        "bodies/crank/mass": Input(nominal=np.ones(()), unit="kg"),
    }
    with pytest.warns(UserWarning, match="'points/A/x' scatters by 11 m") as told:
        warn_of_odd_draws(inputs, draws, mech)
    assert len(told) == 1


def test_inputs_that_jam_a_planar_linkage_drawn_in_space_are_warned_of():
    out = mbd.Status.NOT_ASSEMBLED
    status = np.array([mbd.Status.OK, out, out, out, mbd.Status.OK])
    with pytest.warns(UserWarning, match="where 'pin' varies .*redundant .*C force 2.*x, y"):
        warn_of_jamming(["pin", "rate"], status, mbd.zoo.four_bar())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_jamming(["pin", "rate"], np.zeros(5), mbd.zoo.four_bar())


def test_chunks_of_large_samples_fit_in_memory():
    for bytes_each in (100, 100_000, 8_000_000, 10**10):
        rows = chunk_rows(100_000, bytes_each)
        assert rows == 1 or rows * bytes_each <= MOST_BYTES


def test_chunks_are_equal_where_the_count_allows():
    for count in (1, 200, 514, 2000, 6006, 20_000, 100_000, 1_000_000):
        assert count % min(chunk_rows(count, 400), count) == 0
    for count in (2003, 100_003):  # primes
        rows = chunk_rows(count, 400)
        assert rows == 1 << rows.bit_length() - 1 and 1 < -(-count // rows) <= 16
    assert chunk_rows(2000, 400) == 500 and chunk_rows(520, 400) == 260
