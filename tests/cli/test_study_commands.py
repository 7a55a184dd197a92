"""Studies from files, by commands: what they mean, and that nothing is lost or overwritten."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from repository import ROOT

import jaxmbd as mbd
from jaxmbd import sampling
from jaxmbd.campaign import Study
from jaxmbd.campaign.study_file import load_study
from jaxmbd.cli import main
from jaxmbd.observe import Configuration, Coordinate, Sweep, Together

TOML = """
title = "Rocker of a spatial four-bar"
samples = 300
seed = 4
chunk = 64
design = "latin_hypercube"
correlation = [["points/A/x", "points/A/y", 0.6]]

[mechanism]
zoo = "rssr"
arguments = { gravity = 9.81 }
set = { "bodies/rocker/mass" = "84 g" }

[inputs]
"points/A/[xy]" = { distribution = "normal", sigma = "0.1 mm" }
"bodies/coupler/mass" = "91 g"

[experiments.turn]
type = "Sweep"
over = { crank = { from = "0 deg", to = "60 deg", count = 4 } }

[experiments.turn.observe]
rocker = { type = "Coordinate", joint = "rocker" }
ratio = { type = "Coordinate", joint = "rocker", factor = 2, reduce = ["slope", "30 deg"] }

[experiments.still]
type = "Configuration"
known = { "crank" = "10 deg" }
observe = { angle = { type = "Coordinate", joint = "rocker" } }
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", os.environ.get("JAX_COMPILATION_CACHE_DIR", ""))
    path = tmp_path / "study.toml"
    path.write_text(TOML)
    return path


def said(capsys, *words):
    """Exit status and JSON of a command."""
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_file_means_what_python_means(file):
    rocker, angles = Coordinate("rocker"), np.linspace(0.0, np.radians(60.0), 4)
    turn = Sweep({"crank": angles}, {"rocker": rocker, "ratio": (2 * rocker).slope(np.pi / 6)})
    still = Configuration({"crank": np.radians(10.0)}, {"angle": rocker})
    mech = mbd.set_variables(mbd.zoo.rssr(gravity=9.81), {"bodies/rocker/mass": 0.084})
    study = Study(
        mech,
        {
            "points/A/x": sampling.Normal(1e-4),
            "points/A/y": sampling.Normal(1e-4),
            "bodies/coupler/mass": 0.091,
        },
        observe=Together({"turn": turn, "still": still}),
        design=sampling.LatinHypercube(),
        correlation=sampling.RankCorrelation([("points/A/x", "points/A/y", 0.6)]),
        samples=300,
        seed=4,
        chunk=64,
        title="Rocker of a spatial four-bar",
    )
    assert load_study(file).describe() == study.describe()


@pytest.mark.slow
def test_the_examples_file_scatters_each_part():
    study = load_study(ROOT / "examples" / "build_scatter.toml")
    drawn = study.draw(0, 100)
    both = [drawn[f"offsets/upper_arm_ball@{body}"] for body in ("upper_arm", "upright")]
    assert abs(np.corrcoef(both[0].ravel(), both[1].ravel())[0, 1]) < 0.3
    assert np.abs(both).max() <= 0.9e-3 and np.abs(drawn["lengths/tierod"]).max() <= 0.5e-3
    assert {"bump/toe", "drop/travel"} <= study.outputs.keys()
    assert study.coords["bump.travel"].values[0] == -0.06


def test_run_resume_verify(file, tmp_path, capsys):
    status, ran = said(capsys, "run", str(file))
    assert status == 0 and ran["samples"] == 300 and not ran["failed"]
    nominal = ran["outputs"]["still/angle"]["nominal"]
    closed = mbd.zoo.rssr_theta(np.radians(10.0)) - mbd.zoo.rssr_theta(0.0)
    assert nominal == pytest.approx(float(closed), abs=1e-9)
    store = tmp_path / "study.zarr"
    before = contents(store)

    assert main(["run", str(file)]) == 1  # it is there
    assert "jaxmbd resume" in capsys.readouterr().err and contents(store) == before

    from jaxmbd.campaign import StudyStore

    opened = StudyStore.open(store)
    opened.discard(2)
    assert said(capsys, "info", str(store))[1]["done"] == opened.chunks - 1
    assert said(capsys, "resume", str(file))[0] == 0 and contents(store) == before

    chunk = store / opened.files(1)["turn.rocker"]
    chunk.write_bytes(bytes([chunk.read_bytes()[0] ^ 1]) + chunk.read_bytes()[1:])
    damaged = contents(store)
    assert main(["verify", str(store)]) == 3 and contents(store) == damaged
    told = capsys.readouterr().out
    assert "chunk 1, file turn.rocker/" in told and "1 damaged files, not mended: " in told
    status, found = said(capsys, "verify", str(file))
    assert status == 3 and found["damage"][0]["chunk"] == 1 and contents(store) == before
    assert said(capsys, "verify", str(file)) == (0, {"store": "study.zarr", "damage": []})
    assert said(capsys, "verify", str(store)) == (0, {"store": str(store), "damage": []})

    file.write_text(TOML.replace("0.1 mm", "0.2 mm"))
    status, refused = said(capsys, "resume", str(file))
    assert status == 1 and "0.0001" in refused["error"] and "0.0002" in refused["error"]
    assert contents(store) == before
    assert said(capsys, "run", str(file), "--overwrite")[0] == 0 and contents(store) != before


@pytest.mark.slow
def test_the_exit_status_tells_of_failed_samples_and_missing_values(file, capsys):
    """As --help says: 3 if something was found that needs attention, and that is told."""
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "The exit status is\n3 if samples failed, or have no value" in capsys.readouterr().out
    place = 'place = { type = "Coordinate", joint = "rocker", reduce = ["crossing", "-15.8 deg"] }'
    turn = "[experiments.turn.observe]\n"
    file.write_text(TOML.replace(turn, f"{turn}{place}\n").replace("0.1 mm", "1 mm"))
    status, ran = said(capsys, "run", str(file))
    missing = ran["missing"].pop("turn/place")
    assert status == 3 and not ran["failed"] and 0 < missing < 300
    assert ran["outputs"]["turn/place"]["count"] == 300 - missing
    assert ran["outputs"]["turn/place"]["left_out"] == missing
    assert not any(ran["missing"].values())
    assert main(["resume", str(file)]) == 3
    found = capsys.readouterr()
    assert f"without a value though ok: turn/place in {missing} samples" in found.err
    assert f" {300 - missing} of 300 " in found.out
    file.write_text(TOML.replace("0.1 mm", "50 mm"))
    status, ran = said(capsys, "run", str(file), "--overwrite")
    assert status == 3 and ran["failed"]["not_assembled"] > 0 and not any(ran["missing"].values())


def contents(store):
    return {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file()}


def test_only_a_store_is_overwritten(file, tmp_path, capsys):
    other = tmp_path / "holiday"
    other.mkdir()
    (other / "photo.jpg").write_bytes(b"1234")
    assert main(["run", str(file), "--out", str(other), "--overwrite"]) == 1
    assert (other / "photo.jpg").read_bytes() == b"1234" and "holiday" in capsys.readouterr().err
    assert main(["resume", str(file), "--out", str(tmp_path / "none")]) == 1
    assert "jaxmbd run" in capsys.readouterr().err
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert main(["report", str(other), "--out", str(page)]) == 1 and page.read_text() == "mine"
    with pytest.raises(SystemExit):
        main(["report", str(other), "--limit", "toe=5"])
    assert "LOW:HIGH" in capsys.readouterr().err


def test_all_mistakes_of_a_file_are_named_at_once(file, capsys):
    wrong = TOML.replace('"latin_hypercube"', '"sobel"').replace("seed = 4", 'seed = "four"')
    wrong = wrong.replace('"84 g"', '"84 mm"')
    file.write_text(wrong)
    assert main(["run", str(file)]) == 1
    text = capsys.readouterr().err
    assert "bodies/rocker/mass is in kg, but '84 mm'" in text
    wrong = wrong.replace('"84 mm"', '"84 g"').replace('"0.1 mm"', "-0.1")
    wrong = wrong.replace('joint = "rocker", factor', 'joint = "rokcer", factor')
    wrong = wrong.replace('"10 deg"', '"10 kg"').replace("[experiments.still]", "[experiments.it]")
    wrong = wrong.replace('"Configuration"', '"Configuration"\nsettled = true').replace(
        "title", "titel"
    )
    file.write_text(wrong)
    assert main(["run", str(file)]) == 1
    text = capsys.readouterr().err
    for expected in (
        "did you mean 'title'",
        "did you mean 'sobol'",
        "seed = 'four'",
        "points/A/[xy]",
        "experiments.turn.observe.ratio: there is no joint",
        "'10 kg'",
    ):
        assert expected in text, text
    file.write_text("title = ")
    assert main(["run", str(file)]) == 1 and "no TOML" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_ends_soon_and_says_how_to_go_on(file, tmp_path):
    file.write_text(TOML.replace("samples = 300", "samples = 3000000").replace("chunk = 64", ""))
    run = [sys.executable, "-m", "jaxmbd", "run", str(file)]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    with subprocess.Popen(
        run, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        while not (tmp_path / "study.zarr").exists():
            time.sleep(0.05)
        time.sleep(1.0)
        begun = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert time.monotonic() - begun < 2.0
    assert running.returncode == 130
    assert "jaxmbd resume" in err and "Traceback" not in err
