"""`jaxmbd figure`, and models with laws of one's own by `--import`."""

import json

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.cli import main
from jaxmbd.viz import write_dxf


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def test_a_figure_at_a_pose_and_the_same_as_dxf(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "crank.svg"
    words = ("figure", "zoo:slider_crank", "--at", "O=40 deg", "--json")
    assert main([*words, "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(out)
    assert "<svg" in out.read_text("utf-8")
    assert main([*words, "--out", str(out)]) == 1
    assert "replace with --overwrite" in capsys.readouterr().err
    dxf = tmp_path / "crank.dxf"
    assert main([*words, "--out", str(dxf), "--unit", "m"]) == 0
    mech = mbd.zoo.slider_crank()
    (tmp_path / "same").mkdir()
    pose = mbd.assemble(mech, known={"O": np.deg2rad(40.0)})
    same = write_dxf(tmp_path / "same" / "crank.dxf", mech, pose, unit="m")
    assert dxf.read_text() == same.read_text()


def test_paths_are_drawn_over_the_range_of_a_joint(tmp_path, capsys):
    out = tmp_path / "path.dxf"
    words = ("figure", "zoo:four_bar", "--trace", "coupler:C_coupler", "--out", str(out))
    assert main([*words, "--over", "A", "--range", "0 deg", "60 deg", "--no-names"]) == 0
    assert "moves 'A'" in capsys.readouterr().out
    text = out.read_text()
    assert "TRACES" in text and "TEXT" not in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("zoo:rssr",), "name the plane of the view"),
        (("zoo:rssr", "--plane", "zz"), "axes to the right and upwards"),
        (("zoo:four_bar", "--over", "A"), "name some by --trace"),
        (("zoo:four_bar", "--at", "A"), "JOINT=VALUE"),
        (("zoo:four_bar", "--at", "A=40"), "has no unit"),
        (("zoo:four_bar", "--out", "bars.jpg"), ".dxf"),
    ],
)
def test_what_is_asked_for_wrongly_is_told(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["figure", *words]) == 1
    assert told in capsys.readouterr().err


LAW = """
import jaxmbd as mbd


@mbd.register_law("{0}")
def rising(extension, rate):
    return 100.0 * extension + 1e4 * extension**3
"""


@mbd.register_law("law of this test")
def constant(extension, rate):
    return 1.0 + 0.0 * extension


@pytest.mark.parametrize("as_file", [pytest.param(True, marks=pytest.mark.slow), False])
def test_laws_of_ones_own_are_imported_first(as_file, tmp_path, monkeypatch, capsys):
    name = f"own_laws_{as_file}".lower()
    (tmp_path / f"{name}.py").write_text(LAW.format(name))
    ends = (0.0, 1.0), (1.0, 0.0)
    model = mbd.Mechanism(
        {"arm": mbd.Body(1.0, com=(1.0, 0.0), inertia=0.1)},
        {"hinge": mbd.Revolute("ground", "arm", (0.0, 0.0))},
        {"spring": mbd.SpringDamper("ground", "arm", *ends, 0.0, 0.0, law=constant)},
    )
    text = json.dumps(mbd.io.to_dict(model)).replace("law of this test", name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.json").write_text(text)
    assert main(["check", "arm.json"]) == 1
    assert name in capsys.readouterr().err
    given = str(tmp_path / f"{name}.py") if as_file else name
    assert main(["check", "arm.json", "--import", given]) == 0
    assert "1 degree of freedom" in capsys.readouterr().out
    assert main(["figure", "arm.json", "--import", given, "--out", "arm.dxf"]) == 0
    assert main(["check", "arm.json", "--import", f"no_{given}" if not as_file else "no.py"]) == 1
    assert "--import no" in capsys.readouterr().err
