"""What a conversion leaves out is collected and shown; names that meet are made to differ."""

import pytest

from jaxmbd.io import LeftOut, LeftOutTable
from jaxmbd.io.conversion import LeftOutNotes, UniqueNames


def test_notes_become_a_table():
    notes = LeftOutNotes()
    for what, text, name in (
        ("motors", "absent", "a"),
        ("stops", "soft", "x"),
        ("motors", "absent", "b"),
    ):
        notes.add(what, text, name)
    rows = notes.rows()
    assert rows == [LeftOut("motors", ("a", "b"), "absent"), LeftOut("stops", ("x",), "soft")]
    lines = str(LeftOutTable(rows)).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["2", "motors", "a,", "b", "absent"],
        ["1", "stops", "x", "soft"],
    ]
    assert lines[0].index("names") == lines[1].index("a, b") == lines[2].index("x")


def test_a_strict_conversion_refuses_what_is_left_out():
    table = LeftOutTable([LeftOut("motors", ("a",), "absent")])
    with pytest.raises(
        ValueError, match="(?s)strict=True, and it lacks some:.*1 motors +a +absent"
    ):
        table.refuse(True, "it lacks some")
    table.refuse(False, "it lacks some")
    LeftOutTable().refuse(True, "it lacks some")
    assert str(LeftOutTable()) == "nothing is left out"


def test_names_are_given_once():
    names = UniqueNames(["arm"])
    assert [names.unique("arm", "joint") for _ in range(2)] == ["arm.joint", "arm.joint.joint"]
    assert names.renamed({"arm": 1, "leg": 2}, "force") == {"arm.force": 1, "leg": 2}
