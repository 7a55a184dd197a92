"""`jaxmbd view`: files of every kind, and what is asked for wrongly."""

import json

import pytest

import jaxmbd as mbd
from jaxmbd.cli import main
from jaxmbd.viz import picture

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def test_a_page_of_what_the_first_joint_can_do(tmp_path, capsys):
    pytest.importorskip("viser")
    out = tmp_path / "bars.html"
    words = ("view", "zoo:four_bar", "--trace", "coupler:B", "--out", str(out), "--json")
    assert main([*words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file"] == str(out) and found["bytes"] == out.stat().st_size > 5e5
    assert "<title>four_bar</title>" in out.read_text("utf-8")
    assert main([*words]) == 1
    assert "exists; give another name, or replace with --overwrite" in capsys.readouterr().err


def test_what_is_held_is_told(tmp_path, capsys):
    assert main(["view", "zoo:four_bar", "--over", "A", "--out", str(tmp_path / "bars.png")]) == 0
    assert "moves 'A'; holds nothing else" in capsys.readouterr().out
    # Without being asked for a motion a picture is of the drawing, not of one end of a sweep.
    assert main(["view", "zoo:four_bar", "--out", str(tmp_path / "drawn.png")]) == 0
    assert "moves" not in capsys.readouterr().out
    picture(mbd.zoo.four_bar(), None, tmp_path / "same.png", title="four_bar")
    same = (tmp_path / "same.png").read_bytes()
    assert (tmp_path / "drawn.png").read_bytes() == same != (tmp_path / "bars.png").read_bytes()


def test_without_a_file_the_browser_opens(monkeypatch, capsys):
    pytest.importorskip("viser")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["view", "zoo:simple_pendulum", "--still"]) == 0
    assert opened[0].startswith("file://") and opened[0].endswith(".html")
    assert "wrote" in capsys.readouterr().out


@pytest.mark.slow
def test_a_film_of_a_free_motion(tmp_path):
    from PIL import Image

    out = tmp_path / "swing.gif"
    words = ("view", "zoo:simple_pendulum", "--time", "0.3", "--step", "0.005", "--arrows", "hinge")
    assert main([*words, "--out", str(out)]) == 0
    with Image.open(out) as film:
        assert film.n_frames == 7


ARM = """<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.4 0 0"/></body></worldbody>
<keyframe><key name="up" qpos="-1.2"/></keyframe></mujoco>"""


@pytest.mark.slow
def test_an_imported_robot_in_one_of_its_states(tmp_path, capsys):
    pytest.importorskip("mujoco")
    model = tmp_path / "arm.xml"
    model.write_text(ARM, "utf-8")
    pictures = [tmp_path / "still.png", tmp_path / "up.png"]
    assert main(["view", str(model), "--out", str(pictures[0])]) == 0
    assert main(["view", str(model), "--state", "up", "--out", str(pictures[1])]) == 0
    assert pictures[0].read_bytes() != pictures[1].read_bytes()
    assert main(["view", str(model), "--state", "u", "--out", str(tmp_path / "x.png")]) == 1
    assert "there is no state 'u'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("zoo:four_bar", "--over", "X"), "there is no joint coordinate 'X'"),
        (("zoo:four_bar", "--arrows", "C", "spring"), "no joint or force element 'spring'"),
        (("zoo:four_bar", "--trace", "rod:A.at"), "there is no body 'rod'"),
        (("zoo:four_bar", "--speed", "0"), "speed=0.0; give a positive number"),
        (("zoo:four_bar", "--range", "40 deg", "-40 deg"), "40 deg is not below -40 deg"),
        (("zoo:five_bars",), "did you mean 'five_bar'"),
    ],
)
def test_what_is_wrong_is_told(words, says, tmp_path, capsys):
    assert main(["view", *words, "--out", str(tmp_path / "x.png")]) == 1
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_no_file_of_an_unknown_kind(tmp_path, capsys):
    assert main(["view", "zoo:four_bar", "--out", str(tmp_path / "x.avi")]) == 1
    assert "name a .html, .mp4, .gif, .png, .svg or .pdf" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["view", "explore"])
def test_a_file_that_is_not_there(command, capsys):
    assert main([command, "nofile.json"]) == 1
    assert "there is no file 'nofile.json'; give a file (.json" in capsys.readouterr().err
