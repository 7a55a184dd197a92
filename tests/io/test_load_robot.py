"""Robots of any format."""

from pathlib import Path

import pytest
from pxr import Usd

import jaxmbd as mbd

LEG = Path(__file__).resolve().parent.parent / "data/stages/leg.usda"
MJCF = """
<mujoco><worldbody>
  <body name="arm"><joint name="hinge"/><geom size="1"/></body>
</worldbody></mujoco>
"""
URDF = """<?xml version="1.0"?>
<!-- with a comment first -->
<robot name="arm"><link name="base"/><link name="arm"/>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>
"""


@pytest.mark.parametrize(("text", "name"), [(MJCF, "robot.xml"), (URDF, "robot.xml")])
def test_xml_is_known_by_its_first_element(tmp_path, text, name):
    (tmp_path / name).write_text(text, encoding="utf-8")
    for source in (text, tmp_path / name):
        assert list(mbd.load_robot(source).mechanism.joints) == ["hinge"]


def test_usd_is_known_by_its_suffix_or_its_beginning(tmp_path):
    binary, odd = tmp_path / "leg.usdc", tmp_path / "leg.stage"
    Usd.Stage.Open(str(LEG)).Export(str(binary))
    odd.write_bytes(b"\n" + LEG.read_bytes())
    for source in (LEG, binary, LEG.read_text(encoding="utf-8")):
        assert "shank_foot" in mbd.load_robot(source).mechanism.joints
    with pytest.raises(ValueError, match=r"leg\.stage is neither XML .* nor USD"):
        mbd.load_robot(odd)


def test_options_go_to_the_reader():
    assert "root" in mbd.load_robot(URDF, floating=True).mechanism.joints
    with pytest.raises(TypeError, match="floating"):
        mbd.load_robot(MJCF, floating=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<sdf/>", "begins with <sdf>.* convert it to URDF"),
        ("<mujoco", "neither XML"),
        ("<!-->", "neither XML"),
    ],
)
def test_what_is_no_robot(text, message):
    with pytest.raises(ValueError, match=message):
        mbd.load_robot(text)
    with pytest.raises(FileNotFoundError):
        mbd.load_robot("none.usda")
