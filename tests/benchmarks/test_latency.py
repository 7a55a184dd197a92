"""Time to the first result: stages are counted once each, and a changed number costs nothing."""

import time

import latency
from latency_cases.stages import STAGES, Clock


def test_a_stage_is_not_counted_in_the_one_around_it():
    clock = Clock()
    with clock.stage("lowering"):
        clock.timed("graph", time.sleep)(0.05)
    taken = clock.taken()
    assert taken["graph"][1] >= 0.05 > taken["lowering"][1]
    assert sum(wall for _, wall in clock.taken().values()) == 0.0


def test_the_calls_of_one_program():
    found = latency.program("chain3", "value")
    cpu = {call: sum(x for x, _ in stages.values()) for call, stages in found.items()}
    assert all(found["first"][s][0] > 0.0 for s in STAGES if s != "run")
    assert cpu["number"] < 0.2 * cpu["first"] and cpu["batch size"] < 0.5 * cpu["first"]
    assert cpu["structure"] > cpu["number"]
