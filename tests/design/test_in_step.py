"""Host algorithms in step: batches, errors, interruption."""

import pytest

from jaxmbd.design import in_step


def test_what_waits_is_answered_together():
    batches = []

    def evaluate(questions):
        batches.append(list(questions))
        return [q + 1 for q in questions]

    def task(i, ask):
        x = 10 * i
        for _ in range(i):
            x = ask(x)
        return x

    assert in_step(task, 4, evaluate) == [0, 11, 22, 33]
    assert batches == [[10, 20, 30], [21, 31], [32]]


def test_an_error_in_a_task_ends_all():
    def task(i, ask):
        ask(i)
        if i == 1:
            raise RuntimeError("task 1 failed")
        return ask(i)

    with pytest.raises(RuntimeError, match="task 1 failed"):
        in_step(task, 3, lambda questions: questions)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_evaluation_ends_all(kind):
    def evaluate(questions):
        raise kind

    with pytest.raises(kind):
        in_step(lambda i, ask: ask(i), 3, evaluate)
