"""One process of `latency.py`: ``python -m latency_cases.child PROGRAM WORK [again]``, prints JSON.

Without `again` it times, one after another, the first call, one with another batch size, one with
another number, and one of another structure; with it, only the first call, for which the caches on
disk are filled.
"""

from __future__ import annotations

import json
import sys
import time

START = time.process_time(), time.perf_counter()

import _script  # noqa: E402

_script.start(cache=False)

import jaxmbd  # noqa: E402, F401

IMPORTED = time.process_time() - START[0], time.perf_counter() - START[1]

from latency_cases.programs import (  # noqa: E402
    BATCH,
    PROGRAMS,
    arguments,
    function,
    other_numbers,
    other_structure,
)
from latency_cases.stages import Clock, Seconds, first_call, watch_lanes  # noqa: E402


def measure(name: str, work: str, *, again: bool) -> dict[str, Seconds]:
    """Seconds of each stage of each call."""
    program, clock = PROGRAMS[name], Clock()
    watch_lanes(clock)
    mech, fn = program.make(), function(PROGRAMS[name], work)
    found = {"first": first_call(clock, fn, *arguments(mech))}
    if again:
        return found
    found["batch size"] = first_call(clock, fn, *arguments(mech, BATCH // 2))
    found["number"] = first_call(clock, fn, *arguments(other_numbers(mech)))
    found["structure"] = first_call(clock, fn, *arguments(other_structure(mech)))
    return found


if __name__ == "__main__":
    seconds = measure(sys.argv[1], sys.argv[2], again="again" in sys.argv[3:])
    print(json.dumps({"import": {"import": IMPORTED}, **seconds}))
