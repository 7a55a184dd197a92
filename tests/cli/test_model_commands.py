"""Commands about mechanisms and this installation."""

import gc
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.cli import command, main
from jaxmbd.cli.entry import show_warning
from jaxmbd.io import save

COMMANDS = "run resume verify report check info view figure explore convert bench demo".split()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


def said(capsys, *words):
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_check_says_which_joint_stays_open(tmp_path, capsys):
    path = tmp_path / "open.json"
    save(mbd.zoo.four_bar(ground=2.0), path)
    status, found = said(capsys, "check", str(path))
    assert status == 3 and not found["closes"]
    # Links of 0.3 + 0.8 + 0.6 m between pivots 2 m apart.
    assert "joint 'C' stays open by 0.3 m" in found["trouble"][0]


def test_check_of_what_is_in_order(capsys):
    status, found = said(capsys, "check", "zoo:rssr", "--variables")
    assert status == 0 and found["closes"] and found["dof"] == 2 and found["idle"] == ["coupler"]
    assert found["trouble"] == [] and found["variables"]["bodies/crank/mass"]["unit"] == "kg"
    assert main(["check", "zoo:rssr"]) == 0
    assert "no trouble" in capsys.readouterr().out


@pytest.mark.slow
def test_check_has_all_parts_with_the_types_as_written(tmp_path, capsys):
    arms = mbd.Mechanism(
        {name: mbd.Body(1.0, (0.5, 0.0), 0.1) for name in ("a", "b")},
        {name: mbd.Revolute("ground", name, (0.0, 0.0)) for name in ("a", "b")},
        {"coil": mbd.TorsionSpring("a", 2.0)},
        couplings={"mesh": mbd.Gear("a", "b", ratio=-0.5)},
    )
    save(arms, tmp_path / "arms.json")
    facts = said(capsys, "check", str(tmp_path / "arms.json"))[1]["facts"]
    assert facts["joints"] == "a (Revolute), b (Revolute)"
    assert facts["forces"] == "coil (TorsionSpring)" and facts["couplings"] == "mesh (Gear)"
    assert "drives" not in facts


@pytest.mark.slow
def test_check_names_redundant_rows(capsys):
    _, found = said(capsys, "check", "zoo:bricard")
    assert found["redundant"] and any("redundant" in text for text in found["trouble"])
    assert not any("singular" in text for text in found["trouble"])


@pytest.mark.slow
def test_check_sees_a_change_point(tmp_path, capsys):
    """A parallelogram of bars in one line can go on as such or as an antiparallelogram."""
    bars = {"crank": (0.5, 0.0), "coupler": (2.0, 0.0), "rocker": (2.5, 0.0)}
    ends = {"A": ("ground", "crank", 0.0), "B": ("crank", "coupler", 1.0)}
    ends |= {"C": ("coupler", "rocker", 3.0), "D": ("ground", "rocker", 2.0)}
    flat = mbd.Mechanism(
        {name: mbd.Body(1.0, com, 0.1) for name, com in bars.items()},
        {name: mbd.Revolute(a, b, (x, 0.0)) for name, (a, b, x) in ends.items()},
    )
    save(flat, tmp_path / "flat.json")
    _, found = said(capsys, "check", str(tmp_path / "flat.json"))
    assert "2 degrees of freedom there, 1 beside it" in found["trouble"][0]
    assert "InPlane" not in found["facts"]["joints"]


def test_info(tmp_path, capsys):
    assert set(said(capsys, "info")[1]) >= {"versions", "devices", "caches"}
    assert said(capsys, "info", "zoo:rssr")[1]["joints"]["A"] == "Spherical"
    status, found = said(capsys, "info", str(tmp_path / "none.json"))
    assert status == 1 and "none.json" in found["error"]
    status, found = said(capsys, "check", "zoo:rsssr")
    assert status == 1 and "did you mean 'rssr'" in found["error"]


def test_warnings_are_told_without_the_line_of_python(capsys):
    show_warning(UserWarning("a wide scatter"), UserWarning, "cli.py", 1)
    assert capsys.readouterr().err == "jaxmbd: warning: a wide scatter\n"


def test_help_teaches(capsys):
    for words in (["--help"], *([name, "--help"] for name in COMMANDS)):
        with pytest.raises(SystemExit) as end:
            main(words)
        text = capsys.readouterr().out
        assert end.value.code == 0 and "exit status" in text and "jaxmbd " in text
    with pytest.raises(SystemExit) as end:
        main(["rnu"])
    assert end.value.code == 2


def test_check_of_a_study_says_what_checks_it(capsys):
    status, found = said(capsys, "check", "study.toml")
    assert status == 1 and "`jaxmbd run` finds what is wrong with a study" in found["error"]


def explored(monkeypatch, *words, told=False):
    """What `jaxmbd explore` would open: the arguments of `explore`, and the exploration."""
    pytest.importorskip("viser")
    import jaxmbd.viz
    from jaxmbd.viz import Exploration

    seen = {}

    def explore(model, experiment, vary, **options):
        seen.update(options, design=Exploration.of(model, experiment, vary))
        return SimpleNamespace(url="http://127.0.0.1:1", wait=lambda: None, design=seen["design"])

    monkeypatch.setattr(jaxmbd.viz, "explore", explore)
    status = main(["explore", *words, "--no-browser", *([] if told else ["--json"])])
    return status, seen


def test_explore_takes_what_is_moved_and_observed(monkeypatch, capsys):
    words = ["zoo:four_bar", "--over", "A", "--range", "-40 deg", "80 deg", "--observe", "D"]
    status, seen = explored(monkeypatch, *words, "--vary", "points/B/x", "points/D/*")
    design = seen["design"]
    assert status == 0 and json.loads(capsys.readouterr().out)["url"] == "http://127.0.0.1:1"
    assert list(design.live.about) == ["D"] and seen["title"] == "four_bar"
    assert np.rad2deg(design.live.x[[0, -1]]) == pytest.approx([-40.0, 80.0])
    assert design.names == ("points/B/x", "points/D/x", "points/D/y", "points/D/z")
    assert not seen["browser"] and seen["host"] == "127.0.0.1"


@pytest.mark.slow
def test_explore_observes_points_of_bodies(monkeypatch):
    """As `view --trace` names them, beside joints and characteristics."""
    words = ["zoo:four_bar", "--over", "A", "--vary", "points/B/x", "--observe"]
    _, seen = explored(monkeypatch, *words, "D", "coupler:B")
    design = seen["design"]
    assert list(design.live.about) == ["D", "coupler:B/x", "coupler:B/z"]  # in the plane xz
    x, z = design.response.curves[[1, 2]]
    np.testing.assert_allclose(np.hypot(x, z), 0.3, rtol=0, atol=1e-9)  # the crank's end
    words = ["zoo:multi_link", "--vary", "points/tierod_inboard/z", "--observe"]
    _, seen = explored(monkeypatch, *words, "upright:wheel_centre", "toe")
    design = seen["design"]
    height = design.response.curves[list(design.live.about).index("upright:wheel_centre/z")]
    np.testing.assert_allclose(height - height[20], design.live.x, rtol=0, atol=1e-9)


def test_explore_tells_what_is_held(monkeypatch, capsys):
    words = ["zoo:double_wishbone_kinematic", "--observe", "toe", "--vary", "points/track*"]
    explored(monkeypatch, *words, told=True)
    assert "moves z of axle_outboard on 'upright'; holds 'rack'" in capsys.readouterr().out


@pytest.mark.slow
def test_explore_of_a_simulation(monkeypatch):
    _, seen = explored(monkeypatch, "zoo:simple_pendulum", "--time", "0.1", "--vary", "*mass")
    assert seen["design"].live.axis == "t" and list(seen["design"].live.about) == ["hinge"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["zoo:four_bar", "--over", "Q"], "no joint coordinate 'Q'"),
        (["zoo:four_bar", "--over", "A", "--observe", "E"], "no joint coordinate 'E'"),
        (["zoo:four_bar", "--over", "C"], "C: cut, to open a loop"),
        (["zoo:four_bar", "--over", "A", "--range", "1 deg", "0 deg"], "is not below"),
        (["zoo:four_bar", "--over", "A", "--time", "1"], "leave --over and --range out"),
        (["zoo:multi_link", "--observe", "cambre"], "did you mean 'camber'"),
        (["zoo:four_bar", "--observe", "coupler:Q"], "there is no point 'Q'"),
    ],
)
def test_explore_names_what_is_wrong(monkeypatch, capsys, words, text):
    status, _ = explored(monkeypatch, *words)
    assert status == 1 and text in json.loads(capsys.readouterr().out)["error"]


def test_the_command_ends_with_its_exit_status(monkeypatch, capsys):
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    for words, status, text in (
        (["--version"], 0, f"jaxmbd {mbd.__version__}"),
        (["check", "nofile.json"], 1, "there is no file 'nofile.json'"),
    ):
        monkeypatch.setattr(sys, "argv", ["jaxmbd", *words])
        with pytest.raises(SystemExit) as ended:
            command()
        assert ended.value.code == status
        assert text in "".join(capsys.readouterr())
