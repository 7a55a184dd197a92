"""Files that a model names are looked for in its folder alone; names that are none are told of."""

import warnings

import pytest

from jaxmbd.io import load_mjcf, load_urdf

MJCF = """<mujoco><compiler {0}/><asset><mesh name="part" file="{1}"/></asset><worldbody>
  <body name="arm"><joint/><geom type="mesh" mesh="part"/></body></worldbody></mujoco>"""
URDF = """<robot name="r"><link name="base"/><link name="arm">
  <inertial><mass value="1"/><inertia ixx="{1}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><mesh filename="{0}"/></geometry></visual></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/></joint>{2}</robot>"""
TETRAHEDRON = """
v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4
"""
OUTSIDE = "files outside of the model's folder"


@pytest.fixture
def places(tmp_path):
    """A folder with a model's, and a mesh beside that one and in it."""
    for place in ("secret.obj", "model/own.obj", "other/meshes/x.obj"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(TETRAHEDRON)
    return tmp_path


def mjcf(folder, name, compiler="", **options):
    (folder / "model" / "m.xml").write_text(MJCF.format(compiler, name))
    return load_mjcf(folder / "model" / "m.xml", **options)


def urdf(folder, name, inertia="1", more="", **options):
    (folder / "model" / "r.urdf").write_text(URDF.format(name, inertia, more))
    return load_urdf(folder / "model" / "r.urdf", **options)


def refused(model):
    return [row for row in model.left_out if row.what == OUTSIDE] and not model.shapes


@pytest.mark.parametrize("name", ["{}/secret.obj", "../secret.obj", "x/../../secret.obj"])
def test_names_that_leave_the_folder_are_not_looked_up(places, name):
    """Though the file is there and MuJoCo would read it."""
    name = name.format(places)
    (places / "model" / "x").mkdir()
    for load in (mjcf, urdf):
        with pytest.warns(UserWarning, match="not looked up: .*within="):
            assert refused(load(places, name))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(load(places, name, within=places).shapes) == 1
            assert len(load(places, "own.obj").shapes) == 1
        with pytest.raises(ValueError, match="strict=True"), pytest.warns(UserWarning):
            load(places, name, strict=True)


def test_the_folder_of_meshes_counts(places):
    """Where MuJoCo looks is what is judged: by the compiler's options, names of Windows too."""
    for compiler in ('meshdir=".."', f'meshdir="{places}"', 'meshdir="..\\\\"'):
        with pytest.warns(UserWarning, match="not looked up"):
            assert refused(mjcf(places, "secret.obj", compiler))
    assert len(mjcf(places, "../../own.obj", 'strippath="true"').shapes) == 1
    with pytest.warns(UserWarning, match="not looked up"):
        assert refused(mjcf(places, "..\\secret.obj"))
    with pytest.warns(UserWarning, match="not looked up"):
        assert refused(urdf(places, f"file://{places}/secret.obj"))


def test_texts_name_files_of_the_current_folder(places, monkeypatch):
    monkeypatch.chdir(places)
    assert len(load_mjcf(MJCF.format("", "secret.obj")).shapes) == 1
    assert len(load_urdf(URDF.format("secret.obj", "1", "")).shapes) == 1
    for text in (MJCF.format("", places / "secret.obj"), URDF.format(places / "secret.obj", 1, "")):
        with pytest.warns(UserWarning, match="not looked up"):
            assert refused((load_mjcf if "mujoco" in text else load_urdf)(text))


def test_what_only_mujoco_reads_is_judged_too(places):
    """A prefix without a namespace: no XML, but MuJoCo takes it."""
    more = '<a:b/><mujoco><compiler strippath="false" discardvisual="false"/></mujoco>'
    assert len(urdf(places, "own.obj", more=more).shapes) == 1
    with pytest.warns(UserWarning, match="not looked up"):
        assert refused(urdf(places, places / "secret.obj", more=more))


def test_packages(places):
    """Those that the description is in, or beside it with a manifest; no other folder above."""
    name = "package://other/meshes/x.obj"
    assert not urdf(places, name).shapes
    (places / "other" / "package.xml").write_text("<package/>")
    assert len(urdf(places, name).shapes) == 1
    assert len(urdf(places, "package://model/own.obj").shapes) == 1
    for name in ("package://other/../secret.obj", "package://../secret.obj"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert not urdf(places, name).shapes
    with pytest.warns(UserWarning, match="not looked up"):
        assert refused(urdf(places, f"package://{places}/secret.obj"))


LONG = "a" * 5000


@pytest.mark.parametrize("name", ["package://", "model://", "file://", "package:///", "", ".."])
def test_names_of_no_file(places, name):
    with pytest.raises(ValueError, match="link 'arm' has the mesh .*, which names no file; give"):
        urdf(places, name)


def test_names_that_are_too_long(places):
    for name in (f"{LONG}.obj", f"package://model/{LONG}.obj"):
        with pytest.raises(ValueError, match=r"link 'arm' names the file .*50\d\d char.*too long"):
            urdf(places, name)
    with pytest.raises(ValueError, match=r"asset 'part' names the file .*50\d\d char.*too long"):
        mjcf(places, f"{LONG}.obj")
    for load in (load_mjcf, load_urdf):
        with pytest.raises(ValueError, match=r"the source, .* 'aaa.* \(5000 characters\), .*long"):
            load(LONG)


def test_robots_that_are_nested_or_encoded_beyond_reason(places):
    with pytest.raises(ValueError, match="(?s)r.urdf: .*Line number=5.*too deep"):
        urdf(places, "own.obj", more="<a>" * 5000 + "</a>" * 5000)
    laughs = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(12))
    text = f'<!DOCTYPE r [<!ENTITY a0 "ha">{laughs}]><robot name="&a12;"><link name="b"/></robot>'
    assert not load_urdf(text).mechanism.bodies
    for load, text in ((load_mjcf, "<mujoco model='\udcff'/>"), (load_urdf, "<robot n='\udcff'/>")):
        with pytest.raises(ValueError, match="not Unicode .*position 1.*read it as UTF-8"):
            load(text)


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_inertias_that_are_not_finite(places, number):
    with pytest.raises(ValueError, match="link 'arm': its mass 1 or inertia .* is not finite"):
        urdf(places, "own.obj", inertia=number)
