"""The benchmark of imported models: that it finds what it compares, and notices an error."""

from pathlib import Path

import mujoco
import pytest

pytest.importorskip("pinocchio")  # of the extra bench, with which models are compared

import imports  # noqa: E402
from import_cases import against_pinocchio  # noqa: E402
from import_cases.models import MJCF, URDF  # noqa: E402

from jaxmbd.io import load_mjcf, load_urdf  # noqa: E402

SWING = """
<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 1 0" range="-50 50"/>
  <geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0.1"/></body></worldbody></mujoco>
"""


def test_a_model_is_imported_and_compared(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "swing.xml").write_text(SWING)
    path = imports.mjcf_path("pack/swing.xml", [tmp_path])
    assert path == tmp_path / "pack" / "swing.xml"
    assert imports.mjcf_path("pack/other.xml", [tmp_path]) is None
    found = imports.mjcf_case(path)
    assert (found["bodies"], found["nv"], found["rows"]) == (1, 1, 0)
    assert found["left out"]["joint limits"] == 1
    assert not imports.too_large(found) and "1 bodies" in imports.line("swing", found)
    found["errors"]["bias"] = 1e-8
    assert imports.too_large(found)


@pytest.mark.skipif(imports.urdf_path(URDF[0][0]) is None, reason="no example-robot-data")
def test_a_robot_against_pinocchio():
    """A floating base, and continuous joints, which Pinocchio has as a sine and a cosine."""
    path = imports.urdf_path("kinova_description/robots/kinova.urdf")
    robot = load_urdf(path, floating=True)
    model = against_pinocchio.model_of(path, floating=True)
    errors = against_pinocchio.errors(robot, model, floating=True, states=1)
    assert max(errors[k] for k in ("mass", "bias", "acceleration")) < 1e-11, errors


def test_each_model_is_listed_once():
    names = [*MJCF, *(name for name, _ in URDF)]
    assert len(set(names)) == len(names) and len(MJCF) >= 30
    assert all(Path(n).suffix in (".xml", ".urdf") for n in names)
    assert mujoco.MjModel.from_xml_string(SWING).nv == load_mjcf(SWING).coordinates.nv == 1
