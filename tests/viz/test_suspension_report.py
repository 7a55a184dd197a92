"""Reports on corners and axles: what stands in the file."""

import re

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.viz import suspension_report

CORNER = suspension.zoo_corner("multi_link")


def rows(text, heading):
    """Rows of the table under a heading, each a list of its cells."""
    table = text.partition(f"<h2>{heading}</h2>")[2].partition("</table>")[0]
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table.split("<tr>")[1:]]


def test_a_corner_before_and_after(tmp_path):
    old = mbd.zoo.multi_link()
    new = mbd.set_variables(
        old, {"points/tierod_inboard/z": old.points["tierod_inboard"][2] + 2e-3}
    )
    path = suspension_report(tmp_path / "a.html", new, CORNER, before=old, animate=False)
    text = path.read_text()
    table = suspension.kinematics(new, CORNER)
    found = {row[0]: row for row in rows(text, "As drawn")}
    slope = float(table.shown("toe_gradient")[0][6])
    assert float(found["toe gradient"][2]) == pytest.approx(slope, rel=1e-4)
    was = float(suspension.kinematics(old, CORNER).shown("toe_gradient")[0][6])
    assert float(found["toe gradient"][3]) == pytest.approx(slope - was, rel=1e-4)
    [moved] = [row for row in rows(text, "Hardpoints") if row[0] == "tierod_inboard"]
    assert moved[4:] == ["0", "0", "2"]
    first = rows(text, "What the hardpoints change")[1]
    assert first[0].startswith("points/")
    assert text.count("<svg") == 1 and "<iframe" not in text and "http" not in text.split("<svg")[0]
    with pytest.raises(FileExistsError, match="overwrite=True"):
        suspension_report(path, new, CORNER, animate=False)


@pytest.mark.slow
def test_factors_have_a_table(tmp_path):
    mech = mbd.zoo.multi_link()
    options = dict(vary="points/tierod_inboard", travel=[0.0], steps={"points/*": "2 mm"})
    factors = suspension.hardpoint_sensitivities(mech, CORNER, observe=["toe"], **options)
    path = suspension_report(tmp_path / "a.html", mech, CORNER, animate=False, factors=factors)
    head, units, *effects = rows(path.read_text(), "Factors and responses")
    assert (head[:3], units[:3]) == (["factor", "step", "toe"], ["", "", "deg"])
    paths = list(factors.variables)
    for factor, step, toe, *_ in effects:
        slope = factors.derivatives[0, 0, paths.index(factor)]
        assert step == "2 mm" and float(toe) == pytest.approx(np.degrees(2e-3 * slope), rel=1e-4)
    assert effects[0][0] == "points/tierod_inboard/y"  # moves the track rod


@pytest.mark.slow
def test_an_axle_rolls_and_steers_and_plays(tmp_path):
    car = suspension.axle(mbd.zoo.double_wishbone_kinematic(), shared=["rack"])
    roles = suspension.axle_corners(car, suspension.zoo_corner("double_wishbone_kinematic"))
    text = suspension_report(tmp_path / "a.html", car, roles, travel=(-0.02, 0.04)).read_text()
    assert [h in text for h in ("Roll", "Steering", "Motion")] == [True] * 3
    assert text.count("<iframe srcdoc=") == 1 and text.count("<svg ") >= 3
    track = suspension.axle_kinematics(car, roles, heave=[0.0, 0.01], observe=["track"])["track"][0]
    found = {row[0]: row for row in rows(text, "As drawn")}
    assert float(found["track"][1]) == pytest.approx(1e3 * float(np.asarray(track)), rel=1e-4)


@pytest.mark.slow
def test_a_soft_corner_settles(tmp_path):
    points = suspension.example_hardpoints("double_wishbone")
    corner, roles = suspension.double_wishbone_corner(points, spring_preload=3000.0)
    soft = mbd.soften(corner, "lower_arm", (2e5, 1e7))
    path = suspension_report(
        tmp_path / "a.html", soft, roles, settle=True, travel=(-0.02, 0.02), animate=False
    )
    assert "Steering" in path.read_text()
