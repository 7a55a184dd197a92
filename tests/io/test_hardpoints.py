"""Hardpoint tables: the same points in other frames, units and names; all that is wrong is told."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.io import read_hardpoints, write_hardpoints

VEHICLE = """
units = "mm"
axes = ["-x", "-y", "z"]
offset = [1200.0, 0.0, -50.0]
ignore = ["REF_*"]

[columns]
name = "Hardpoint"
x = "X_veh"
y = "Y_veh"
z = "Z_veh"

[sides]
left = "*_L"
right = "*_R"

[names]
tierod_inboard = "TR IB L"
"""

TABLE = """Front suspension;;;;
issue 7;;;;

No;Hardpoint;X_veh;Y_veh;Z_veh
1;wheel_L;1200,5;-750;250
2;wheel_R;1200,5;750;250
# what follows is provisional
3;TR IB L;1300;-400,25;200
4;REF_1;abc;;
5;mount;1100;0;-50
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "vehicle.toml").write_text(VEHICLE)
    (tmp_path / "table.csv").write_bytes(TABLE.encode("cp1252"))
    return tmp_path / "table.csv", tmp_path / "vehicle.toml"


def test_a_table_in_another_frame_with_other_names(files):
    """x rearward and y to the right, decimal commas, rows of titles before and beside."""
    points = read_hardpoints(*files, side="left")
    wanted = {
        "wheel": (-0.0005, 0.75, 0.3),
        "tierod_inboard": (-0.1, 0.40025, 0.25),
        "mount": (0.1, 0.0, 0.0),
    }
    assert list(points) == list(wanted)
    for name, x in wanted.items():
        np.testing.assert_allclose(points[name], x, rtol=0, atol=1e-15)


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_there_and_back(files, tmp_path, suffix):
    """In the table's own frame and names, to 1e-9 mm; in a workbook's sheet too."""
    if suffix == "xlsx":
        pytest.importorskip("openpyxl")
    rng = np.random.default_rng(0)
    points = {n: rng.normal(size=3) for n in ("wheel", "tierod_inboard", "mount")}
    path = tmp_path / f"designed.{suffix}"
    mapping = files[1]
    write_hardpoints(path, points, mapping, side="left")
    again = read_hardpoints(path, mapping, side="left", points=points)
    assert list(again) == list(points)
    for name, x in points.items():
        np.testing.assert_allclose(again[name], x, rtol=0, atol=1e-12)
    if suffix == "csv":
        names = [line.split(",")[0] for line in path.read_text().splitlines()]
        assert names == ["Hardpoint", "wheel_L", "TR IB L", "mount_L"]


@pytest.mark.parametrize("given", ["TR_IB", "TR_IB_L", "TR_IB_R"])
def test_names_are_of_the_side_that_is_chosen(tmp_path, given):
    """With either side's pattern or without; the other side is not read, there and back."""
    mapping = {"sides": {"left": "*_L", "right": "*_R"}, "names": {"tierod_inboard": given}}
    path, back = tmp_path / "both.csv", tmp_path / "back.csv"
    path.write_text("name,x,y,z\nTR_IB_L,1,2,3\nTR_IB_R,1,-2,3\nwheel_L,4,5,6\nwheel_R,4,-5,6\n")
    for side, sign in (("left", 1.0), ("right", -1.0)):
        read = read_hardpoints(path, mapping, side=side)
        assert list(read) == ["tierod_inboard", "wheel"]
        np.testing.assert_allclose(
            read["tierod_inboard"], (1e-3, sign * 2e-3, 3e-3), rtol=0, atol=1e-15
        )
        write_hardpoints(back, read, mapping, side=side)
        rows = [line.split(",")[0] for line in back.read_text().splitlines()[1:]]
        assert rows == [f"TR_IB_{side[0].upper()}", f"wheel_{side[0].upper()}"]
        again = read_hardpoints(back, mapping, side=side)
        assert {n: x.tolist() for n, x in again.items()} == {n: x.tolist() for n, x in read.items()}
    path.write_text("name,x,y,z\nTR_IB_L,1,2,3\n")
    with pytest.raises(ValueError, match="no row 'TR_IB_R', for 'tierod_inboard'"):
        read_hardpoints(path, mapping, side="right")
    mapping["names"] = {"a": "A_L", "b": "A_R"}
    with pytest.raises(ValueError, match="several points"):
        read_hardpoints(path, mapping, side="right")


def test_the_other_side_mirrored(tmp_path):
    path = tmp_path / "right.csv"
    path.write_text("name,x [mm],y [mm],z [mm]\nwheel,100,-750,300\n")
    assert read_hardpoints(path, {"mirrored": True})["wheel"].tolist() == [0.1, 0.75, 0.3]


def test_units_of_titles_count(tmp_path):
    path = tmp_path / "units.csv"
    path.write_text("Point,X [m],Y [m],Z [m]\nwheel,0.1,-0.75,0.3\n")
    assert read_hardpoints(path)["wheel"].tolist() == [0.1, -0.75, 0.3]
    columns = {"columns": {"name": "Point", "x": "X", "y": "Y", "z": "Z"}}
    assert read_hardpoints(path, columns)["wheel"].tolist() == [0.1, -0.75, 0.3]
    with pytest.raises(ValueError, match="units='mm' is given"):
        read_hardpoints(path, units="mm")
    path.write_text("name,x [mm],y [m],z [mm]\nwheel,100,-0.75,300\n")
    with pytest.raises(ValueError, match="in all three"):
        read_hardpoints(path)
    path.write_text("name,x,y,z\nwheel,100,-750,300\n")
    assert read_hardpoints(path, units="m")["wheel"].tolist() == [100.0, -750.0, 300.0]


def test_a_corner_is_rebuilt_from_its_table(tmp_path):
    """A mechanism's points go out, one is moved in the table, and all come back."""
    corner, path = mbd.zoo.multi_link(), tmp_path / "corner.csv"
    write_hardpoints(path, corner)
    text = path.read_text()
    x, y, z = (1e3 * corner.points["wheel_centre"]).tolist()
    assert f"wheel_centre,{x},{y},{z}" in text
    path.write_text(text.replace(f"wheel_centre,{x},{y},{z}", f"wheel_centre,{x},{y},{z + 5}"))
    moved = corner.replace(points=read_hardpoints(path, points=corner))
    assert moved.structure == corner.structure
    for name, before in corner.points.items():
        change = (0, 0, 5e-3) if name == "wheel_centre" else (0, 0, 0)
        np.testing.assert_allclose(moved.points[name] - before, change, rtol=0, atol=1e-12)


def test_a_workbook_is_read_by_its_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["nothing here"])
    sheet = book.create_sheet("Front")
    for row in (["Rev. 7"], [], ["Point", "x", "y", "z (mm)"], ["A", 1, 2.5, "3,5"], [None] * 4):
        sheet.append(row)
    book.save(tmp_path / "points.xlsx")
    points = read_hardpoints(tmp_path / "points.xlsx", {"sheet": "Front"})
    np.testing.assert_allclose(points["A"], (1e-3, 2.5e-3, 3.5e-3), rtol=0, atol=1e-18)
    with pytest.raises(ValueError, match=r"no sheet 'Frnt' \(did you mean 'Front'\?\)"):
        read_hardpoints(tmp_path / "points.xlsx", {"sheet": "Frnt"})
    with pytest.raises(ValueError, match="no row of titles"):
        read_hardpoints(tmp_path / "points.xlsx")


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "name,x,y,z\nwheel_center,0,750,300\nspring_top,1,2,abc\nspring_top,1,,3\n,1,2,3\n"
        "shock_top,inf,1,2\n"
    )
    mapping = {"names": {"wheel_centre": "WHEEL"}}
    with pytest.raises(ValueError) as error:
        read_hardpoints(path, mapping, points=mbd.zoo.multi_link())
    for text in (
        "has 8 problems",
        "row 2 ('wheel_center'): there is no point 'wheel_center' (did you mean 'wheel_centre'?)",
        "row 3 ('spring_top'): z is 'abc', no number",
        "row 4 ('spring_top'): 'spring_top' is in row 3 already",
        "row 4 ('spring_top'): y is empty",
        "row 5 has no name",
        "row 6 ('shock_top'): x is 'inf', no number",
        "there is no row 'WHEEL', for 'wheel_centre'",
        "no rows for the points [",
    ):
        assert text in str(error.value), (text, str(error.value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,x,y,z\nP,1,5,2,25,3\n", r"row 2 \('P'\): \['25', '3'\] is beyond the last title"),
        ("name,x,y,z,x [m]\nP,1,2,3,4\n", r"the titles \['x'\] more than once"),
        ("name,x,y,z,name\nP,1,2,3,Q\n", r"the titles \['name'\] more than once"),
        ('name,x,y,z\nP,"1,234",2,3\n', "decimal comma, or thousands"),
        ("name,x,y,z\nP,1_000,2,3\n", "x is '1_000', no number"),
    ],
)
def test_what_can_be_read_in_two_ways_is_not_guessed(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_hardpoints(path)


def test_decimal_commas_that_are_no_thousands(tmp_path):
    path = tmp_path / "table.csv"
    for text in ('name,x,y,z\nP,"0,125","-1234,5",3,,\n', "name;x;y;z\nP;0,125;-1234,500;3\n"):
        path.write_text(text)
        np.testing.assert_allclose(read_hardpoints(path)["P"], (1.25e-4, -1.2345, 3e-3))


def test_points_under_names_alone_are_written(tmp_path):
    """Not a mixture of the table's names and ours."""
    path, mapping = tmp_path / "named.csv", {"names": {"wheel": "WC"}}
    points = {"mount": (0.1, 0.2, 0.3), "wheel": (0.0, 0.75, 0.3)}
    write_hardpoints(path, points, mapping)
    assert [x.split(",")[0] for x in path.read_text().splitlines()] == ["name", "mount", "WC"]
    write_hardpoints(path, points, mapping, only_named=True)
    assert list(read_hardpoints(path, mapping)) == ["wheel"]
    with pytest.raises(ValueError, match=r"no point: 'wheel' \(did you mean 'wheels'\?\)"):
        write_hardpoints(path, {"wheels": (0, 0, 0)}, mapping, only_named=True)


def test_wrong_mappings(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("name,x,y,z\nA,1,2,3\n")
    wrong = {
        "unit": "mm",
        "axes": ["x", "y", "y"],
        "offset": [1, 2],
        "columns": {"X": "x"},
        "names": {"a": "A", "b": "A"},
        "sides": {"left": "L"},
    }
    with pytest.raises(ValueError) as error:
        read_hardpoints(path, wrong, units="furlong", side="left")
    for text in (
        "unknown key 'unit' (did you mean 'units'?)",
        "units are 'furlong'; give one of mm, cm, m, in",
        "axes are ['x', 'y', 'y']",
        "offset is [1, 2]; give three numbers",
        "unknown column 'X'",
        "names give 'A' to several points",
        "side 'left' is 'L'; put one * for the name",
    ):
        assert text in str(error.value), (text, str(error.value))
    with pytest.raises(ValueError, match="left-handed"):
        read_hardpoints(path, {"axes": ["x", "-y", "z"]})
    with pytest.raises(ValueError, match="its sides are left, right"):
        read_hardpoints(path, {"sides": {"left": "*_L", "right": "*_R"}})
    with pytest.raises(FileNotFoundError):
        read_hardpoints(tmp_path / "none.csv")
    (tmp_path / "broken.toml").write_text("units = mm")
    with pytest.raises(ValueError, match="no TOML"):
        read_hardpoints(path, tmp_path / "broken.toml")


def corner_table(path, factor=1.0, without=()):
    """A whole table of the zoo's corner, its millimetres times a factor."""
    points = {n: factor * x for n, x in mbd.zoo.multi_link().points.items() if n not in without}
    write_hardpoints(path, points)
    path.write_text(path.read_text().replace(" [mm]", ""))
    return points


ROUTES = {
    "read": lambda path, **given: read_hardpoints(path, points=mbd.zoo.multi_link(), **given),
    "zoo": lambda path, **given: mbd.zoo.multi_link(points=read_hardpoints(path, **given)),
    "replace": lambda path, **given: mbd.zoo.multi_link().replace(
        points=read_hardpoints(path, **given)
    ),
}


@pytest.mark.parametrize("route", ROUTES)
def test_rows_that_are_missing_are_not_filled_silently(tmp_path, route):
    """Each way to put a table in place of a mechanism's points names those that it lacks."""
    path = tmp_path / "corner.csv"
    corner_table(path, without=("wheel_centre", "tierod_outboard"))
    with pytest.raises(ValueError) as error:
        ROUTES[route](path)
    for text in (str(path), "['tierod_outboard', 'wheel_centre']", "add the rows", "partial=True"):
        assert text in str(error.value).replace("'wheel_centre', 'tierod_outboard'",
                                                "'tierod_outboard', 'wheel_centre'")  # fmt: skip
    ROUTES[route](path, partial=True)
    corner_table(path)
    ROUTES[route](path)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_a_table_in_another_unit_than_it_is_read_in(tmp_path, route, partial):
    path, some = tmp_path / "corner.csv", ("wheel_centre", "tierod_outboard") if partial else ()
    for factor, unit, right in ((1e-3, "mm", "m"), (1e3, "m", "mm"), (1 / 25.4, "mm", "in")):
        corner_table(path, factor if unit == "mm" else 1.0, some)
        with pytest.raises(
            ValueError, match=f"read as {unit}, .*in {right} they .*units='{right}'"
        ):
            ROUTES[route](path, units=unit, partial=partial)
        ROUTES[route](path, units=right, partial=partial)


@pytest.mark.filterwarnings("error")
def test_another_size_of_which_no_unit_is_the_cause(tmp_path):
    """A model car's, or points that are moved: they are taken as they are, without a word."""
    path = tmp_path / "corner.csv"
    corner_table(path, 0.25)
    drawn = mbd.zoo.multi_link().points["wheel_centre"]
    small = ROUTES["zoo"](path).points["wheel_centre"]
    np.testing.assert_allclose(small, 0.25 * drawn, rtol=1e-12)
    path.write_text("name,x,y,z\nwheel_centre,0,1,0\ntierod_outboard,1,0,0\n")
    moved = ROUTES["zoo"](path, partial=True).points
    np.testing.assert_allclose(moved["wheel_centre"], [0.0, 1e-3, 0.0])
    np.testing.assert_allclose(moved["tierod_outboard"], [1e-3, 0.0, 0.0])


def test_what_is_made_of_a_table_is_a_plain_dictionary(tmp_path):
    """Mapped and traced as one, without asking again."""
    path = tmp_path / "corner.csv"
    corner_table(path, without=("wheel_centre",))
    read = read_hardpoints(path)
    assert type(jax.tree.map(lambda x: 2.0 * x, read)) is dict and type({**read}) is dict
    moved = jax.jit(lambda p: mbd.zoo.multi_link(points=p).points["tierod_outboard"])(read)
    assert moved.tolist() == read["tierod_outboard"].tolist()


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"units": ["mm"]}, "units are"),
        ({"axes": None}, "axes are"),
        ({"axes": 10**400}, "axes are"),
        ({"offset": [10**400, 0, 0]}, "offset is"),
        ({"offset": [np.nan] * 3}, "offset is"),
        ({"ignore": [5]}, "ignore is"),
        ({"ignore": None}, "ignore is"),
        ({"sheet": ["Front"]}, "sheet is"),
    ],
)
def test_mappings_of_other_types(tmp_path, mapping, message):
    path = tmp_path / "table.csv"
    path.write_text("name,x,y,z\nA,1,2,3\n")
    with pytest.raises(ValueError, match=f"this mapping:\n  - {message}"):
        read_hardpoints(path, mapping)


def test_tables_beyond_reason(tmp_path):
    path, book = tmp_path / "table.csv", tmp_path / "table.xlsx"
    path.write_text("name,x,y,z\nA,1,2," + "3" * 200_000)
    with pytest.raises(ValueError, match="table.csv, line 2 is longer than"):
        read_hardpoints(path)
    pytest.importorskip("openpyxl")
    for data in (b"", b"PK\3\4", b"name,x,y,z"):
        book.write_bytes(data)
        with pytest.raises(ValueError, match="table.xlsx is no workbook .*as .csv"):
            read_hardpoints(book)
    with pytest.raises(ValueError, match=r"read_hardpoints names the file 'aaa.*too long"):
        read_hardpoints("a" * 5000)
    path.write_text("name,x,y,z\nA,1,2,3\n")
    (tmp_path / "m.toml").write_text("a = " + "[" * 5000)
    with pytest.raises(ValueError, match="m.toml, line 1: nests"):
        read_hardpoints(path, tmp_path / "m.toml")
