"""Outlines of cams, read back, against envelopes in NumPy."""

import numpy as np
import pytest
from fails_cases import cam_oracle as oracle
from fails_cases.cam_oracle import DOWN, DWELL, RISE, Sizes

from jaxmbd.cams import Dwell, Programme, Return, Rise, TranslatingFlat, TranslatingRoller
from jaxmbd.viz import write_cam

LIFT = Programme([Rise(0.02, RISE, "3-4-5"), Dwell(DWELL), Return(0.02, DOWN, "3-4-5"), Dwell()])
ROLLER = Sizes("TranslatingRoller", 0.02, 0.04, roller=0.01, offset=0.008)
FLAT = Sizes("TranslatingFlat", 0.02, 0.06)
CAMS = {"roller": TranslatingRoller(LIFT, 0.04, 0.01, 0.008), "flat": TranslatingFlat(LIFT, 0.06)}


def polylines(path):
    """Unit number, and points of every closed polyline (n, 2) by its layer."""
    lines = path.read_text("ascii").splitlines()
    pairs = list(zip(map(int, lines[::2]), lines[1::2], strict=True))
    unit = pairs[pairs.index((9, "$INSUNITS")) + 1][1]
    found, vertex = {}, False
    for (code, value), (_, layer) in zip(pairs, pairs[1:], strict=False):
        if code == 0:
            vertex = value == "VERTEX"
            if value == "POLYLINE":
                points = found.setdefault(layer, [])
            assert value not in ("LINE", "CIRCLE", "TEXT")
        if vertex and code in (10, 20):
            points.append(float(value))
        assert code != 70 or value in ("1", unit, "2", "0")
    assert [v for c, v in pairs if c == 66] == ["1"] * len(found)
    return unit, {layer: np.reshape(x, (-1, 2)) for layer, x in found.items()}


def distances(points, outline):
    """Of points (n, 2) from the nearest segment of a closed polyline (m, 2)."""
    start, along = outline, np.roll(outline, -1, axis=0) - outline
    away = points[:, None] - start
    share = np.clip(np.sum(away * along, axis=2) / np.sum(along**2, axis=1), 0.0, 1.0)
    return np.linalg.norm(away - share[..., None] * along, axis=2).min(axis=1)


@pytest.mark.parametrize(("unit", "factor", "number"), [("mm", 1e3, "4"), ("in", 1 / 0.0254, "1")])
def test_dxf_has_closed_curves_within_the_tolerance(tmp_path, unit, factor, number):
    found, curves = polylines(write_cam(tmp_path / "cam.dxf", CAMS["roller"], unit=unit))
    assert found == number and set(curves) == {"PROFILE", "ROLLER_CENTRE"}
    outline = curves["PROFILE"] / factor
    theta = np.arange(len(outline)) * (2 * np.pi / len(outline))
    np.testing.assert_allclose(outline, oracle.profile(ROLLER, theta), rtol=0, atol=1e-12)
    fine = np.linspace(0.0, 2 * np.pi, 2002)
    assert distances(oracle.profile(ROLLER, fine), outline).max() <= 1.01e-6
    centres = curves["ROLLER_CENTRE"] / factor
    apart = distances(centres[::40], oracle.profile(ROLLER, fine)[:-1])
    np.testing.assert_allclose(apart, 0.01, rtol=1e-5)
    coarse = write_cam(tmp_path / "coarse.dxf", CAMS["roller"], tolerance=1e-4)
    assert len(polylines(coarse)[1]["PROFILE"]) == 360 < len(outline)


def test_csv_has_a_row_for_each_angle(tmp_path):
    path = write_cam(tmp_path / "cam.csv", CAMS["flat"], unit="m")
    assert path.read_text().splitlines()[0] == "angle [deg],profile x [m],profile y [m]"
    angle, *point = np.loadtxt(path, delimiter=",", skiprows=1).T
    np.testing.assert_allclose(angle, np.linspace(0.0, 360.0, len(angle)), atol=1e-9)
    wanted = oracle.profile(FLAT, np.deg2rad(angle) % (2 * np.pi))
    np.testing.assert_allclose(np.transpose(point), wanted, rtol=0, atol=1e-9)
    assert all(x[0] == x[-1] for x in point)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("cam.step", {}, "ends in .dxf or .csv"),
        ("cam.csv", {"unit": "ft"}, "unit='ft'"),
        ("cam.csv", {"tolerance": 1e-13}, "92160 points do not keep chords within"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, name, options, text):
    with pytest.raises(ValueError, match=text):
        write_cam(tmp_path / name, CAMS["flat"], **options)
    assert not list(tmp_path.iterdir())


def test_an_undercut_cam_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the cam is UNDERCUT"):
        write_cam(tmp_path / "cam.dxf", TranslatingFlat(LIFT, 0.001))
