"""Write the README's figures from the committed results.

python benchmarks/readme_table.py
"""

from __future__ import annotations

import json
from typing import Any

from _script import HERE, README, with_table
from studies_table import survived
from throughput_table import BATCH, FORWARD, LANES, ONE_CORE, find

PAGE = README
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
NAMES = ("throughput", "gpu", "accuracy", "fails_safely", "imports", "studies", "survive", "design")


def results() -> dict[str, Any]:
    """Content of the result files."""
    folder = HERE / "results"
    return {name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in NAMES}


def speed(found: dict[str, Any]) -> str:
    """Forward dynamics of the multi-link corner, and of a loop against Pinocchio."""
    machine = found["machine"]
    corner = find(found, "multi_link", FORWARD, LANES, BATCH)
    ours, theirs = (find(found, "chain8", FORWARD, c, BATCH) for c in (ONE_CORE, "Pinocchio"))
    if not (corner and ours and theirs):
        raise SystemExit("throughput.json has no such rows")
    return (
        f"{corner['per_second'] / 1e6:.0f} million forward dynamics a second of a multi-link "
        f"corner on {machine['cores']} cores of an {machine['processor']}; a closed loop of eight "
        "revolutes "
        f"{ours['per_second'] / theirs['per_second']:.0f} times as fast, per core, as Pinocchio "
        f"{found['versions']['pin']} in a batch of {BATCH} designs"
    )


def gpu(found: dict[str, Any]) -> str:
    """The same of the corner and of the RSSR by a GPU."""
    rows = [r for r in found["rows"] if (r["work"], r["dtype"]) == (FORWARD, "float64")]
    rates = {
        case: max(r["per_second"] for r in rows if r["case"] == case and r["column"] == LANES)
        for case in ("multi_link", "rssr")
    }
    worst = max(r["difference"] / r["scatter"] for r in found["rows"])
    kernels = {(r["case"], r["work"], r["dtype"]) for r in found["rows"]}
    return (
        f"{rates['multi_link'] / 1e6:.0f} million a second of that corner on one "
        f"{found['device']['name']}, {rates['rssr'] / 1e6:.0f} million of the RSSR; "
        f"{len(found['rows'])} batches of {len(kernels)} kernels, every sample compared with the "
        f"host: differences at most {worst:.1f} times those of neighbouring floats"
    )


def accuracy(found: dict[str, Any]) -> str:
    """Comparisons that agree."""
    verdicts = [r["verdict"] for rows in found["files"].values() for r in rows]
    if set(verdicts) - {"ok", "note", "not run"}:
        raise SystemExit("a file does not agree: run accuracy.py and look")
    return (
        f"{verdicts.count('ok')} comparisons with {len(found['files'])} sets of results from the "
        "literature and other software, all within their limits"
    )


def judged(found: dict[str, Any]) -> str:
    """Public numbers by their oracles."""
    counts = found["all"]["all"]
    known = {kind: counts.get(kind, 0) for kind in ("right", "flagged", "refused")}
    crashed = counts.get("CRASHED", 0)
    wrong = sum(counts.values()) - sum(known.values()) - crashed
    each = ", ".join(f"{n} {kind}" for kind, n in known.items())
    lines = [x for name, x in found["table"].items() if "," not in name]
    seeds = f"{len(found['runs'])} seed{'s' * (len(found['runs']) != 1)}"
    return (
        f"{sum(x['cases'] > 0 for x in lines)} of {len(lines)} public numbers judged by oracles "
        f"that share no code with them, in {sum(counts.values())} cases of {seeds}: "
        f"{each}, {crashed} crashed, {wrong} wrong and reported as OK"
    )


def imports(found: dict[str, Any]) -> str:
    """Models of others."""
    errors = [model["errors"] for model in found["models"].values()]
    mass, acceleration = (max(e[k] for e in errors) for k in ("mass", "acceleration"))
    versions = found["versions"]
    return (
        f"{len(errors)} public robot models: mass matrices within {mass:.0e} and accelerations "
        f"within {acceleration:.0e} of MuJoCo's ({versions['mujoco']}) and Pinocchio's"
    )


def studies(found: dict[str, Any], survive: dict[str, Any]) -> str:
    """The large sweep, and killed runs."""
    sweep = found["studies"]["sweep"]
    kills = survived(survive).removeprefix("`make survive`: ").partition(";")
    count = kills[0].split(" SIGKILLs")[0]
    return (
        f"{sweep['samples'] / 1e6:.0f} million corners, {sweep['numbers drawn']} scattered numbers "
        f"each, over thirteen wheel positions in {sweep['seconds']:.0f} s; {count} kills of "
        f"running studies,{kills[2].split(';')[0]}"
    )


def design(found: dict[str, Any]) -> str:
    """Bump steer by exact gradients."""
    first = found["methods"]["SLSQP, exact gradients"]
    return (
        f"bump steer of a published corner from {found['published, rms [deg]']:.3f}° to "
        f"{first['bump steer, rms [deg]']:.3f}° in {first['seconds']:.1f} s, compiling included"
    )


def lines(found: dict[str, Any]) -> list[str]:
    said = [
        ("Speed", speed(found["throughput"])),
        ("GPU", gpu(found["gpu"])),
        ("Accuracy", accuracy(found["accuracy"])),
        ("Failure", judged(found["fails_safely"])),
        ("Models of others", imports(found["imports"])),
        ("Studies", studies(found["studies"], found["survive"])),
        ("Design", design(found["design"])),
    ]
    return [f"- **{name}**: {text}." for name, text in said]


def filled(page: str, found: dict[str, Any]) -> str:
    """The README's text with the figures of these results."""
    return with_table(page, BEGIN, END, lines(found))


if __name__ == "__main__":
    README.write_text(filled(README.read_text("utf-8"), results()), "utf-8")
