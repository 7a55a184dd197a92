"""Thin the reference files for the tests: `python benchmarks/make_test_data.py SOURCE TARGET`.

The files keep their format, source and stated accuracy, so that `accuracy.py` runs on them
unchanged. Series keep every n-th row, robots and loops a few states, the single joints a few
cases. `TARGET` is replaced; it has less than 2 MB in all.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROWS = 50  # of a series, about
STATES = 3
CASES = (
    "Revolute_Case02",
    "Spherical_Case02",
    "Universal_Case03",
    "Cylindrical_Case03",
    "Prismatic_Case02",
    "Distance_Case02",
    "RevSpherical_Case02",
    "LinActuator_Case02",
    "RotSpring_Case02",
    "TranSpringCB_Case04",
)
LINKAGES = (
    "HMMWV_DoubleWishboneReducedFront",
    "audi_MultiLink",
    "BMW_E90_MacPhersonStrut",
    "Sedan_RackPinion",
    "suv_PitmanArm",
)
LEFT_OUT = ("INDEX",)
ALONE = ("agile_eye_kinematics",)  # a series without a description: one row in four
MOST_BYTES = 2_000_000


def thin_series(
    source: Path,
    target: Path,
    every: int | None = None,
    until: float | None = None,
    without: str = "",
) -> None:
    """Every n-th row, or about `ROWS` rows; comments, heading and digits are kept.

    Columns whose names begin with `without` are left out.
    """
    lines = source.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if not line.startswith("#")) + 1
    rows = [line for line in lines[start:] if line.strip()]
    if until is not None:
        rows = [row for row in rows if float(row.split(",")[0]) <= until + 1e-9]
    every = max(1, len(rows) // ROWS) if every is None else every
    if without:
        names = lines[start - 1].split(",")
        kept = [i for i, name in enumerate(names) if not name.startswith(without)]
        lines[start - 1], *rows = (
            ",".join(line.split(",")[i] for i in kept) for line in (lines[start - 1], *rows)
        )
    thinned = f"# from {source.name}: one row in {every}"
    target.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([thinned, *lines[:start], *rows[::every]])
    target.write_text(text + "\n", encoding="utf-8")


def thin_one(data: dict[str, Any], source: Path, target: Path) -> dict[str, Any]:
    """Copy the series of one description, thinned; return the description."""
    if "cases" in data:
        data["cases"] = {n: c for n, c in data["cases"].items() if n in CASES}
        for case in data["cases"].values():
            thin_series(source / case["series"], target / case["series"], 25, until=3.0)
    if any("joint_acceleration" in s for s in data.get("states", ())):  # all, without the bodies'
        data["states"] = [
            {k: x for k, x in s.items() if not k.startswith("body_")} for s in data["states"]
        ]
    elif "states" in data:
        data["states"] = data["states"][:STATES]
    named = data.get("series") or []
    for name in [named] if isinstance(named, str) else named:
        every, until = (4 if "hardpoints" in data else None), data.get("t_end")
        # Forty four-bars take minutes: the tests run two.
        without = "N40_" if "moving_joints" in data else ""
        thin_series(source / name, target / name, every, until, without)
    if "angles_series" in data:
        thin_series(source / data["angles_series"], target / data["angles_series"])
    if "template_joints" in data:
        data["data"] = {n: x for n, x in data["data"].items() if Path(n).stem in LINKAGES}
    return data


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args(arguments)
    given.target.mkdir(parents=True, exist_ok=True)
    for path in sorted(given.source.glob("*.json")):
        if path.stem in LEFT_OUT:
            continue
        data = thin_one(json.loads(path.read_text(encoding="utf-8")), given.source, given.target)
        data["copied_from"] = f"{path.name}, thinned by make_test_data.py"
        text = json.dumps(data, indent=None if "states" in data else 1)
        (given.target / path.name).write_text(text + "\n", encoding="utf-8")
    for path in given.source.glob("*.LICENCE"):
        (given.target / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for name in ALONE:
        thin_series(given.source / f"{name}.csv", given.target / f"{name}.csv", 4)
    size = sum(p.stat().st_size for p in given.target.rglob("*") if p.is_file())
    print(f"{size} bytes in {given.target}")
    return int(size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
