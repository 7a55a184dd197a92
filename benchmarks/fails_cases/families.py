"""The families of cases: the modules of this folder that have `NUMBERS` and `judged`."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fails_cases.judged import CRASHED, Judged

HERE = Path(__file__).parent
LIST = HERE / "without_oracle.txt"


def names() -> list[str]:
    """Names of all families, found without importing them."""
    return sorted(path.stem for path in HERE.glob("*.py") if _is_family(path))


def _is_family(path: Path) -> bool:
    defined: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {x.id for x in targets if isinstance(x, ast.Name)}
    return {"NUMBERS", "judged"} <= defined


def family(name: str) -> Any:
    """The module of a family."""
    return importlib.import_module(f"fails_cases.{name}")


def oracles() -> dict[str, dict[str, str]]:
    """Each number that is judged to its oracle, by family."""
    found: dict[str, dict[str, str]] = {}
    for name in names():
        for number, oracle in family(name).NUMBERS.items():
            found.setdefault(number, {})[name] = oracle
    return found


def without_oracle() -> list[str]:
    """The public numbers of which it is known that they have no oracle."""
    return LIST.read_text("utf-8").splitlines()


def list_without_oracle() -> None:
    """Write the list anew, of the public numbers that no family judges."""
    from fails_cases.public_numbers import public_numbers

    covered = {number.partition(", ")[0] for number in oracles()}
    left = sorted(set(public_numbers()) - covered)
    LIST.write_text("".join(f"{number}\n" for number in left), "utf-8")


def run(name: str, seed: int, size: int) -> Iterator[Judged]:
    """The cases of a family; an error of its own is a crash."""
    module = family(name)
    try:
        for case in module.judged(seed, max(1, round(size * getattr(module, "SHARE", 1.0)))):
            if case.number not in module.NUMBERS:
                raise ValueError(f"{case.number!r} is not in NUMBERS of {name}")
            yield case
    except Exception as error:
        import traceback

        where = " < ".join(
            f"{f.name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[::-1][:6]
        )
        text = f"{type(error).__name__}: {str(error)[:300]} | {where} | {name}, seed {seed}"
        yield Judged(next(iter(module.NUMBERS)), CRASHED, float("nan"), text)
