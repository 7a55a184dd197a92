"""Write the card of environments from a result file of `environments.py --json`.

python benchmarks/environments_table.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from _script import HERE, MEASURED, markdown, with_tables

RESULTS = HERE / "results" / "environments.json"
PAGE = MEASURED / "environments.md"
CONDITIONS = {
    "cart-pole": "RK4, one step of 20 ms",
    "acrobot": "RK4, four steps of 50 ms",
    "active corner": "RK4, three projected steps of 3.3 ms, the road's own for each lane",
    "five-bar": "RK4, four projected steps of 5 ms",
    "six-loop biped": "RK4, five projected steps of 4 ms",
}
BIPED = "six-loop biped"
SUBSTEPS = 5  # of the biped

Results = dict[str, Any]
Lines = list[str]


def number(x: float | None, digits: int = 3) -> str:
    """A number, or a dash where there is none."""
    return "–" if x is None else f"{x:.{digits}g}"


def of_kind(results: Results, kind: str) -> dict[tuple[str, ...], Any]:
    """The parts of a kind by the rest of their labels."""
    found = {}
    for label, part in results["parts"].items():
        first, *rest = label.split(", ")
        if first == kind:
            found[tuple(rest)] = part
    return found


def cards(results: Results) -> dict[tuple[str, ...], Any]:
    """The parts of speed that have a result."""
    return {k: x for k, x in of_kind(results, "speed").items() if "none" not in x}


def head(results: Results) -> Lines:
    facts, versions, counts = (results[k] for k in ("machine", "versions", "counts"))
    return [
        f"{facts['processor']}, {facts['cores']} cores ({facts['vector_unit']}), float64, JAX "
        f"{versions['jax']}, MuJoCo {versions['mujoco']}, Gymnasium {versions['gymnasium']}, "
        f"commit {results['commit'][:10]}; load of the machine at the start "
        f"{facts['load_at_start']:.1f}. {counts['steps']} control steps, of the biped "
        f"{counts['biped']}; those of `jax.vmap` and of gradients {counts['plain']}, of "
        f"{counts['xla lanes']} lanes. MJX is not installed."
    ]


def speeds(results: Results) -> Lines:
    rows = []
    for (name, lanes), x in of_kind(results, "speed").items():
        if "none" in x:
            rows.append([name, lanes, x["none"], *["–"] * 6])
            continue
        outside, inside = x["policy outside"], x["policy inside"]
        rows.append(
            [
                name, lanes, number(outside["steps/s"]), number(outside["steps/s of a core"]),
                number(inside["steps/s"]), number(inside["steps/s of a core"]),
                number(outside["first call [s]"], 2), number(inside["first call [s]"], 2),
                number(x["memory [GiB]"], 2),
            ]
        )  # fmt: skip
    columns = [
        "environment", "lanes", "policy outside [1/s]", "a second of a core", "inside [1/s]",
        "a second of a core", "first call outside [s]", "inside [s]", "memory [GiB]",
    ]  # fmt: skip
    return markdown(columns, rows)


def exactness(results: Results) -> Lines:
    """The worst of all numbers of lanes."""
    energies, rows = of_kind(results, "energy"), []
    for name, conditions in CONDITIONS.items():
        some = [x for (n, _), x in cards(results).items() if n == name]
        if not some:
            continue
        failures: dict[str, int] = {}
        for x in some:
            for status, count in x["failures"].items():
                failures[status] = failures.get(status, 0) + count
        rows.append(
            [
                name, conditions, number(max(x["closure [m]"] for x in some), 2),
                number(energies.get((name,), {}).get("energy"), 2),
                str(sum(x["not finite"] for x in some)), str(sum(x["episodes"] for x in some)),
                ", ".join(f"{n} {s}" for s, n in failures.items()) or "none",
            ]
        )  # fmt: skip
    columns = [
        "environment", "method", "closure [m]", "energy", "numbers not finite", "episodes", "failed"
    ]  # fmt: skip
    return markdown(columns, rows)


def peers(results: Results) -> Lines:
    rows = []
    for name in CONDITIONS:
        x = of_kind(results, "xla").get((name,))
        if x is None:
            continue
        if "none" in x:
            rows.append([name, str(results["counts"]["xla lanes"]), "`jax.vmap`", x["none"], "–"])
            continue
        ours, other = x["lanes"], x["xla"]
        told = f"{number(other['steps/s'])}, first call {number(other['first call [s]'], 2)} s"
        times = number(ours["steps/s"] / other["steps/s"])
        rows.append([name, str(results["counts"]["xla lanes"]), "`jax.vmap`", told, times])
    known = cards(results)
    for (name, lanes), x in of_kind(results, "peer").items():
        ours = known.get((name, lanes))
        for peer in ("MuJoCo", "Gymnasium"):
            if peer not in x:
                continue
            how = f"{x[peer]['threads']} threads" if peer == "MuJoCo" else x[peer]["how"]
            rate = x[peer]["steps/s"]
            row = [name, lanes, f"{peer}, {how}", number(rate)]
            rows.append([*row, number(ours and ours["policy outside"]["steps/s"] / rate)])
    columns = ["environment", "lanes", "by", "control steps [1/s]", "jaxmbd's over it"]
    return markdown(columns, rows)


def agreement(results: Results) -> Lines:
    off = [x["MuJoCo"]["difference"] for x in of_kind(results, "peer").values() if "MuJoCo" in x]
    if not off:
        return []
    return [
        "Coordinates after ten control steps with the same actions differ from MuJoCo's by "
        f"{max(off):.1g} rad or m."
    ]


def gradients(results: Results) -> Lines:
    long, rows = of_kind(results, "long"), []
    for name, steps in dict.fromkeys(k[:2] for k in long):
        cost, errors = (long.get((name, steps, what), {}) for what in ("cost", "errors"))
        cells = [cost.get("in rollouts"), cost.get("memory of a lane [kB]")]
        off = [errors.get("from XLA"), errors.get("from differences")]
        rows.append([name, steps, *map(number, cells), *(number(x, 2) for x in off)])
    for (name,), x in of_kind(results, "gradient").items():
        steps = str(results["counts"]["plain"])
        told = x.get("none") or f"first call {number(x['first call [s]'], 3)} s"
        rows.append([name, steps, told, "–", "–", "–"])
    columns = [
        "environment", "control steps", "gradient, in rollouts", "memory of a lane [kB]",
        "from `jax.vmap`", "from differences",
    ]  # fmt: skip
    return markdown(columns, rows)


def goals(results: Results) -> Lines:
    """What was aimed at, what was reached, and whether that is enough."""
    rows: list[Lines] = []

    def goal(text: str, reached: str, met: bool) -> None:
        rows.append([text, reached, "yes" if met else "**no**"])

    known = cards(results)
    poles = [x for (name, _), x in known.items() if name == "cart-pole"]
    if poles:
        best = max(x["policy outside"]["steps/s of a core"] for x in poles)
        goal("cart-pole: 2e6 control steps a second of a core", number(best), best >= 2e6)
    walks = [x for (name, _), x in known.items() if name == BIPED]
    if walks:
        best = SUBSTEPS * max(x["policy outside"]["steps/s"] for x in walks)
        goal("biped: 4e5 steps of RK4 a second", number(best), best >= 4e5)
        closure = max(x["closure [m]"] for x in walks)
        goal("biped: closure 1e-10 m", number(closure, 2), closure <= 1e-10)
        lost = sum(x["not finite"] + sum(x["failures"].values()) for x in walks)
        goal("biped: random targets, no NaN, no failure", str(lost), lost == 0)
    for (name, steps, what), x in of_kind(results, "long").items():
        if "none" in x:
            goal(f"{name}, {steps} steps: gradient, {what}", x["none"], False)
        elif what == "cost":
            cost = x["in rollouts"]
            goal(f"{name}, {steps} steps: a gradient in 5 rollouts", number(cost), cost <= 5.0)
        else:
            most = 1e-8 if int(steps) <= 32 else 1e-6
            off = x["from XLA"], x["from differences"]
            goal(
                f"{name}, {steps} steps: 1e-10 from `jax.vmap`, {most:g} from differences",
                f"{number(off[0], 2)}, {number(off[1], 2)}",
                off[0] <= 1e-10 and off[1] <= most,
            )
    return markdown(["goal", "reached", "met"], rows)


TABLES: dict[str, Callable[[Results], Lines]] = {
    "machine": head,
    "goals": goals,
    "speeds": speeds,
    "exactness": exactness,
    "peers": peers,
    "agreement": agreement,
    "gradients": gradients,
}


def filled(page: str, results: Results) -> str:
    """The page's text with its tables replaced."""
    return with_tables(page, {name: lines(results) for name, lines in TABLES.items()})


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
