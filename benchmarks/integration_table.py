"""Write the page on time integration from a result file of `integration.py --json`.

    python benchmarks/integration_table.py

Each table stands between two lines of comments; whether a goal is met is judged here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from _script import HERE, MEASURED, with_tables

RESULTS = HERE / "results" / "integration.json"
PAGE = MEASURED / "integration.md"

Results = dict[str, Any]
Lines = list[str]
CLOSURE = 1e-12  # goal of residuals [m]
SQUEEZER, PENDULUM = "Andrews' squeezer", "simple pendulum"


def number(x: float | None, digits: int = 2) -> str:
    """A number, or a dash where there is none."""
    return "–" if x is None else f"{x:.{digits}g}"


def table(head: Lines, rows: list[Lines]) -> Lines:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def motions(results: Results) -> dict[str, list[dict[str, Any]]]:
    return results["references"]["motions"]


def head(results: Results) -> Lines:
    """The machine, and how busy it was."""
    facts, versions = results["machine"], results["versions"]
    parts = [x for x in results.values() if isinstance(x, dict) and "commit" in x]
    commits = dict.fromkeys(part["commit"][:10] for part in parts)
    loads = [part["load_at_start"] for part in parts]
    return [
        f"{facts['processor']}, {facts['cores']} cores ({facts['vector_unit']}), float64, JAX "
        f"{versions['jax']}, Exudyn {versions['exudyn']}, commit {', '.join(commits)}; load of the "
        f"machine at the start of the parts {min(loads):.1f} to {max(loads):.1f}."
    ]


def references(results: Results) -> Lines:
    rows = []
    for name, found in motions(results).items():
        for row in found:
            errors, closed = row["errors"], row["closure"]
            position = errors.get("position, extended precision", errors["position"])
            forces = errors.get("multipliers, relative, extended precision")
            ended = row["lanes_ok"], row["lanes"]
            rows.append(
                [
                    name,
                    row["method"],
                    number(position) if row["status"] == "OK" else row["status"],
                    number(errors.get("multipliers") if forces is None else forces),
                    f"{closed['saved']:.0e}, {closed['between']:.0e}",
                    number(closed.get("energy change [J]")),
                    number(row["call_ms"], 3),
                    number(row["one_lane_ms"], 3),
                    number(row["per_lane_ms"], 3),
                    str(ended[1]) if ended[0] == ended[1] else f"{ended[0]} of {ended[1]}",
                    number(row["first_call_s"]),
                ]
            )
    columns = [
        "motion", "method, rtol", "error of position", "of multipliers", "closure: saved, between",
        "energy [J]", "call [ms]", "compiled [ms]", "a lane [ms]", "lanes OK", "first call [s]",
    ]  # fmt: skip
    return table(columns, rows)


def multipliers(results: Results) -> Lines:
    off = results["references"]["multipliers"]
    best = motions(results)["Andrews' squeezer (A03)"][-1]["errors"]
    ours = best["multipliers, relative, extended precision"]
    there = off["by the equations at the published angles and rates"]
    return [
        "The published multipliers of Andrews' squeezer are not right to seven digits. Its "
        "equations, written out in NumPy and solved in extended precision "
        "(`benchmarks/integration_cases/andrews_reference.py`), differ from them by up to "
        f"{off['published']:.2g} of their size. At the *published* angles and rates the same "
        f"equations give multipliers within {there:.1g} of the solution's: the published ones "
        f"contradict the published motion. jaxmbd's are within {ours:.1g} of the solution's.",
    ]


def exudyn(results: Results) -> Lines:
    lines = []
    for name in (SQUEEZER, PENDULUM):
        found = results["beside Exudyn"][name]
        rows = [
            [r["engine"], r["method"], number(r["error"]), number(r["cpu_ms"], 3)]
            + [number(r.get("per_lane_cpu_ms"), 3)]
            for r in sorted(found["points"], key=lambda r: -r["error"])
        ]
        columns = ["", f"{name}: method", "error [rad]", "CPU [ms]", "a lane of 1000, CPU [ms]"]
        ratios = found["Exudyn over jaxmbd"]
        one, batch = ([r[k] for r in ratios] for k in ("one", "batch"))
        lines += [*table(columns, rows), ""]
        lines += [
            f"At the accuracy of each of Exudyn's {len(ratios)} points it takes {min(one):.3g} to "
            f"{max(one):.3g} times the CPU time of jaxmbd for one simulation, {min(batch):.3g} to "
            f"{max(batch):.3g} times that of a simulation in a batch of 1000.",
            "",
        ]
    return lines[:-1]


def long_run(results: Results) -> Lines:
    found = results["long run"]
    rows = [
        [
            r["start"], r["method"], number(r["energy_drift"]), number(r["closure_m"]),
            number(r["largest_angle_rad"], 4), number(r["estimate"]), str(r["steps"]),
            number(r["cpu_s"], 3),
        ]
        for r in found["rows"]
    ]  # fmt: skip
    columns = [
        "start", "method", "energy", "closure [m]", "largest angle [rad]", "estimated error",
        "steps", "CPU with compiling [s]",
    ]  # fmt: skip
    return table(columns, rows)


def events(results: Results) -> Lines:
    found, rows = results["events"], []
    titles = {"recorded": "passages of the middle, recorded", "impacts": "impacts on a wall"}
    for kind, title in titles.items():
        r = found[kind]
        few, lot = r["events"]
        for what, where in (("one lane", "one lane"), ("batch", f"{found['samples']} lanes")):
            times = [number(x, 3) for x in r[f"{what}, ms"]]
            row = [title, where, f"{few}, {lot}", ", ".join(times), f"{r[f'{what}, ratio']:.2f}"]
            rows.append(row)
    columns = ["events", "", "how many", "CPU [ms]", "ratio"]
    return table(columns, rows)


def gradients(results: Results) -> Lines:
    found = results["gradients"]
    titles = {
        "hardpoints": "by hardpoints",
        "road": "by a road of 401 heights, each lane its own",
        "network": "by a network of 5-32-32-1 in `inputs=`",
    }
    rows = [
        [title, number(r["value_s"], 3), number(r["gradient_s"], 3), f"{r['ratio']:.2f}"]
        for title, r in ((title, found[kind]) for kind, title in titles.items())
    ]
    columns = ["gradient", "rollouts, CPU [s]", "values and gradients, CPU [s]", "in rollouts"]
    return table(columns, rows)


def account(results: Results) -> Lines:
    from throughput_table import TITLES

    found = results["account"]
    rows = [
        [TITLES[k], number(r["bare_s"], 3), number(r["simulate_s"], 3), f"{r['ratio']:.2f}"]
        for k, r in found.items()
        if k in TITLES
    ]
    columns = ["mechanism", "bare steps, CPU [s]", "`simulate`, CPU [s]", "ratio"]
    return table(columns, rows)


def cuts(results: Results) -> Lines:
    found = results["cut runs"]
    rows = [
        [
            str(r["calls"]),
            ", ".join(f"{n} {name}" for name, n in r["verdicts"].items()),
            str(r["other_verdicts"]),
            str(r["other_states"]),
        ]
        for r in found["rows"]
    ]
    columns = ["calls", "verdicts", "lanes of another verdict", "of another state"]
    return table(columns, rows)


def estimates(results: Results) -> Lines:
    rows = []
    for name, r in results["estimates"]["methods"].items():
        rows.append(
            [
                name, str(r["runs"]), str(r["ok"]), str(r["ok and beyond accuracy"]),
                number(r["ok, largest true error"]), str(r["inaccurate"]),
                str(r["inaccurate, but right"]), str(r["without an end"]),
                f"{r['estimate within factor']:.0%}", f"{r['estimate too small']:.0%}",
                f"{r['estimate too large']:.0%}",
                f"{r['estimate within factor, large errors']:.0%} of {r['runs of large errors']}",
                f"{r['verify within factor']:.0%} of {r['verified']}",
            ]
        )  # fmt: skip
    columns = [
        "method", "runs", "OK", "of these wrong", "their largest error", "INACCURATE",
        "of these right", "diverged", "estimate within a factor of 10", "too small", "too large",
        "within, if the error is over 1e-4", "`verify` within a factor of 10",
    ]  # fmt: skip
    return table(columns, rows)


def methods(results: Results) -> Lines:
    rows = [
        [
            r["method"], number(r["error"]), number(r["estimate"]), r["status"],
            f"{r['steps']} + {r['rejected']}", number(r["first_call_cpu_s"], 3),
            number(r["one_run_ms"], 3), number(r["batch_us_per_sample"], 3),
        ]
        for r in results["methods"]["rows"]
    ]  # fmt: skip
    columns = [
        "Andrews' squeezer, 0.03 s", "error", "estimated", "status", "steps + rejected",
        "first call, CPU [s]", "one run [ms]", "a sample of a batch [µs]",
    ]  # fmt: skip
    return table(columns, rows)


def corners(results: Results) -> list[tuple[str, dict[str, Any]]]:
    """The corner's results by stiffness."""
    return [(k, x) for k, x in results["corner"].items() if isinstance(x, dict)]


def corner(results: Results) -> Lines:
    lines: Lines = []
    for stiffness, found in corners(results):
        rows = [
            [
                r["method"], number(r["error"]), number(r["wheel_centre_error_m"]),
                number(r["estimate"]), r["status"], f"{r['steps']} + {r['rejected']}",
                number(r["first_call_cpu_s"], 3), number(r["run_cpu_ms"], 3),
            ]
            for r in found["errors"]
        ]  # fmt: skip
        columns = [
            f"bushings of {stiffness}, 0.2 s", "error [rad, m]", "of the wheel centre [m]",
            "estimated", "status", "steps + rejected", "first call, CPU [s]", "one run, CPU [ms]",
        ]  # fmt: skip
        batch, derivatives = found["batch"], found["gradients"]
        peer = batch["kvaerno5"]
        off = [
            x[way]
            for x in derivatives.values()
            if isinstance(x, dict)
            for way in ("forward_off_by", "reverse_off_by")
        ]
        lines += [*table(columns, rows), ""]
        lines += [
            f"Bushings of {stiffness}, a batch at a tolerance of {batch['rtol']:g}: "
            f"{1e-3 * batch['cpu_us_a_sample']:.3g} ms of CPU a sample of {batch['samples']} by "
            f"`Rodas` (error {batch['error']:.2g}), {1e-3 * peer['cpu_us_a_sample']:.3g} ms by "
            f"diffrax's Kvaerno5 under `jax.vmap` ({peer['samples']} samples, error "
            f"{peer['error']:.2g}): {peer['ratio']:.3g} times as much. Derivatives by a hardpoint "
            f"and a bushing's rate, forward and in reverse, are within {max(off):.1g} of "
            "differences.",
            "",
        ]
    return lines[:-1]


def spread(results: Results) -> Lines:
    found = results["spread"]
    least, mean, most = found["steps"]
    batch, alone = found["batch_cpu_s"], found["one_by_one_cpu_s"]
    return [
        f"{found['samples']} runs of an RSSR linkage by `DormandPrince`, each as long as its own "
        f"time, of {least} to {most} steps ({mean:.0f} on average), in no order: {batch:.3g} s of "
        f"CPU as a batch, {alone:.3g} s one by one ({batch / alone:.2f} of it). The samples of a "
        "vector wait for the longest of them: the same in the order of their lengths take "
        f"{found['ordered_cpu_s']:.3g} s.",
    ]


def goals(results: Results) -> Lines:
    """What was aimed at, what was reached, and whether that is enough."""
    found = motions(results)
    squeezer = found["Andrews' squeezer (A03)"]
    near = [r for r in squeezer if r["status"] == "OK" and r["errors"]["position"] <= 2e-8]
    quick = min(near, key=lambda r: r["one_lane_ms"], default=None)
    best = squeezer[-1]["errors"]
    rows: list[tuple[str, str, bool]] = []

    def goal(text: str, reached: str, met: bool) -> None:
        rows.append((text, reached, met))

    if quick:
        goal(
            "squeezer, 2e-8 of position: one lane in 2 ms",
            f"{quick['one_lane_ms']:.2f} ms compiled, {quick['call_ms']:.2f} ms as a call",
            quick["one_lane_ms"] <= 2.0,
        )
        goal(
            "the same, 0.1 ms a lane in 1000 lanes",
            f"{quick['per_lane_ms']:.3f} ms of CPU",
            quick["per_lane_ms"] <= 0.1,
        )
    else:
        goal("squeezer, 2e-8 of position", "not reached", False)
    forces = best["multipliers, relative, extended precision"]
    ten = best["position, extended precision"]
    goal("squeezer, angles to 10 digits", f"off by {ten:.1g} rad", ten <= 1e-9)
    goal("its multipliers to 7 digits of the solution", f"off by {forces:.1g}", forces <= 1e-7)
    off = best["multipliers, relative"]
    goal("its multipliers to 7 digits of the published", f"off by {off:.2g}", off <= 1e-7)
    closed = [r["closure"] for rows in found.values() for r in rows]
    worst = max(max(x["saved"], x["between"]) for x in closed)
    goal(
        "closure of published motions, wherever there is a state, 1e-12",
        f"{worst:.1g}",
        worst <= CLOSURE,
    )
    ended = [r["status"] == "OK" for rows in found.values() for r in rows]
    everywhere = sum(ended) == len(ended)
    goal("every published motion under one call", f"{sum(ended)} of {len(ended)} rows", everywhere)
    lost = sum(r["lanes"] - r["lanes_ok"] for rows in found.values() for r in rows)
    lanes = sum(r["lanes"] for rows in found.values() for r in rows)
    where = [n for n, rows in found.items() if any(r["lanes_ok"] < r["lanes"] for r in rows)]
    told = f"{lost} of {lanes} fail" + (f": {', '.join(where)}" if where else "")
    goal("every lane of its batches", told, lost == 0)
    bricard = max(r["one_lane_ms"] for r in found["Bricard (A04)"])
    goal("Bricard, 10 s in 250 ms", f"at most {bricard:.2f} ms", bricard <= 250.0)
    for name in (SQUEEZER, PENDULUM):
        ratios = results["beside Exudyn"][name]["Exudyn over jaxmbd"]
        one, batch = (min(r[k] for r in ratios) for k in ("one", "batch"))
        goal(f"{name}: ahead of Exudyn, one simulation", f"at least {one:.2g} times", one > 1.0)
        told = f"at least {batch:.3g} times"
        goal(f"{name}: 100 times in batches of 1000", told, batch >= 100.0)
    for r in results["long run"]["rows"]:
        drift, closure = r["energy_drift"], r["closure_m"]
        goal(
            f"four-bar {r['start']}, 1000 s, {r['method']}: energy 1e-6, closure 1e-12",
            f"{drift:.2g}, {closure:.2g}",
            drift < 1e-6 and closure < CLOSURE,
        )
    for kind in ("recorded", "impacts"):
        for what in ("one lane", "batch"):
            x = results["events"][kind][f"{what}, ratio"]
            goal(f"200 events ({kind}, {what}) cost at most twice", f"{x:.2f}", x <= 2.0)
    for kind, most in (("hardpoints", 5.0), ("road", 6.0), ("network", 6.0)):
        x = results["gradients"][kind]["ratio"]
        goal(f"gradient ({kind}) costs at most {most:g} rollouts", f"{x:.2f}", x <= most)
    other = sum(r["other_verdicts"] for r in results["cut runs"]["rows"])
    goal("the same verdicts however a run is cut", f"{other} differ", other == 0)
    shares = results["estimates"]["methods"].items()
    wrong = sum(r["ok and beyond accuracy"] for _, r in shares)
    goal("no run is OK and wrong", f"{wrong} of {sum(r['ok'] for _, r in shares)}", wrong == 0)
    for name, r in shares:
        x, y = r["estimate within factor"], r["verify within factor"]
        goal(f"{name}: estimate within a factor of 10 in 95 %", f"{x:.0%}", x >= 0.95)
        goal(f"{name}: `verify` within a factor of 10 in 95 %", f"{y:.0%}", y >= 0.95)
    first = corners(results)[0][1]["errors"][0]["first_call_cpu_s"]
    goal("corner: the first stiff call in 3 s", f"{first:.2f} s of CPU", first <= 3.0)
    for stiffness, x in corners(results):
        best = min(r["wheel_centre_error_m"] for r in x["errors"] if r["status"] == "OK")
        goal(f"corner of {stiffness}: 1e-6 m every millisecond", f"{best:.1g} m", best <= 1e-6)
        ratio = x["batch"]["kvaerno5"]["ratio"]
        told = f"{ratio:.3g} times"
        goal(f"corner of {stiffness}: 100 times diffrax's Kvaerno5", told, ratio >= 100.0)
    found = results["spread"]
    ratio = found["batch_cpu_s"] / found["one_by_one_cpu_s"]
    told = f"{ratio:.2f}"
    goal("steps spread 1:1000: a batch costs 1.3 times the single runs", told, ratio <= 1.3)
    return table(
        ["goal", "reached", "met"],
        [[text, reached, "yes" if met else "**no**"] for text, reached, met in rows],
    )


TABLES: dict[str, Callable[[Results], Lines]] = {
    "machine": head,
    "goals": goals,
    "references": references,
    "multipliers": multipliers,
    "exudyn": exudyn,
    "long run": long_run,
    "events": events,
    "gradients": gradients,
    "account": account,
    "cuts": cuts,
    "estimates": estimates,
    "spread": spread,
    "corner": corner,
    "methods": methods,
}


def filled(page: str, results: Results) -> str:
    """The page's text with its tables replaced."""
    return with_tables(page, {name: lines(results) for name, lines in TABLES.items()})


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
