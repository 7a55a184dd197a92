"""``jaxmbd convert``, and commands that take models of others."""

import json

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.cli import main
from jaxmbd.io import load, load_mjcf, save


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


def said(capsys, *words):
    status = main([*(str(w) for w in words), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_there_and_back(tmp_path, capsys):
    mech, middle, end = mbd.zoo.double_pendulum(), tmp_path / "a.xml", tmp_path / "b.json"
    save(mech, tmp_path / "a.json")
    status, found = said(capsys, "convert", tmp_path / "a.json", middle)
    assert status == 0 and found == {
        "file": str(middle),
        "reading": [],
        "left_out": [],
        "not_written": [],
    }
    assert said(capsys, "convert", middle, end)[0] == 0
    again, q = load(end), np.array([0.3, -0.2])
    np.testing.assert_allclose(mbd.mass_matrix(again, q), mbd.mass_matrix(mech, q), rtol=1e-12)
    assert said(capsys, "check", middle)[1]["trouble"] == []


def test_what_is_left_out_is_printed(tmp_path, capsys):
    path = tmp_path / "corner.urdf"
    status, found = said(capsys, "convert", "zoo:double_wishbone_kinematic", path)
    rows = {row["what"]: row for row in found["left_out"]}
    assert status == 3 and rows["cut joints"]["names"] == ["upper_ball", "trackrod"]
    assert main(["convert", str(path), str(tmp_path / "tree.json")]) == 0
    text = capsys.readouterr().out
    assert "bodies" in text and "left out" not in text


def test_what_is_refused(tmp_path, capsys):
    model = tmp_path / "model.xml"
    assert main(["convert", "zoo:five_point", str(model), "--strict"]) == 1
    assert "forces of type Tyre" in capsys.readouterr().err and not model.exists()
    model.write_text("kept")
    assert main(["convert", "zoo:rssr", str(model)]) == 1
    assert "--overwrite" in capsys.readouterr().err and model.read_text() == "kept"
    assert main(["convert", "zoo:rssr", str(model), "--force"]) == 0
    assert len(load_mjcf(model).mechanism.bodies) == 3
    assert main(["convert", str(model), str(model), "--force"]) == 1
    assert "the file to read" in capsys.readouterr().err
    assert main(["convert", "zoo:rssr", str(tmp_path / "model.step")]) == 1
    assert ".json, .xml, .urdf" in capsys.readouterr().err


def test_an_import_tells_what_it_left_out(tmp_path, capsys):
    model = tmp_path / "ball.xml"
    model.write_text(
        "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/>"
        "<body name='ball' pos='0 0 1'><freejoint/><geom name='skin' size='0.1'/></body>"
        "</worldbody></mujoco>"
    )
    _, found = said(capsys, "info", model)
    assert found["warnings"] == [
        "left out: 2 contact shapes (floor, skin): bodies pass through each other and the ground"
    ]
    target = tmp_path / "ball.json"
    assert main(["convert", str(model), str(target), "--strict"]) == 1 and not target.exists()
    assert main(["convert", str(model), str(target)]) == 3 and target.exists()


def test_a_lost_keyframe_is_a_finding(tmp_path):
    model, target = tmp_path / "arm.xml", tmp_path / "arm.json"
    model.write_text(
        "<mujoco><worldbody><body name='arm'><joint name='j' axis='0 1 0'/>"
        "<inertial mass='1' pos='1 0 0' diaginertia='1 1 1'/></body></worldbody>"
        "<keyframe><key name='home' qpos='0.3'/></keyframe></mujoco>"
    )
    assert main(["convert", str(model), str(target), "--strict"]) == 1 and not target.exists()
    assert main(["convert", str(model), str(target)]) == 3 and target.exists()
