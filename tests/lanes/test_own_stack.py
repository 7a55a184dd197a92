"""No depth of calls is slow on a stack of its own: no block of frames is returned meanwhile."""

import resource

import pytest

from jaxmbd.lanes.own_stack import on_own_stack

CALLS = 20


def faults(depth: int) -> int:
    """Pages that the system had to find for calls of a function at a depth."""
    if depth:
        return faults(depth - 1)

    def nothing():
        pass

    nothing()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        nothing()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_calls_need_no_new_memory_at_any_depth():
    """A block that is returned after each call needs a page for the next one."""
    assert on_own_stack(lambda: [d for d in range(400) if faults(d) >= CALLS]) == []


def test_results_and_errors_pass():
    assert on_own_stack(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        on_own_stack(lambda: 1 / 0)


def test_it_nests():
    def deep(levels: int) -> int:
        return 0 if levels == 0 else 1 + on_own_stack(lambda: deep(levels - 1))

    assert deep(50) == 50
