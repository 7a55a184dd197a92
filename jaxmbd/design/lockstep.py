"""Host algorithms that run in step: what they ask at a time is answered by one batch.

Optimisers for one problem, such as SciPy's, call a function and wait. Here many of them run at
once, each in a thread of its own; when all wait, their questions are answered together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any


class _Cancelled(BaseException):
    """Ends a task whose answer will never come."""


class _Desk:
    """Where tasks leave questions and wait for answers."""

    def __init__(self, count: int):
        self.condition = threading.Condition()
        self.questions: dict[int, Any] = {}
        self.answers: dict[int, Any] = {}
        self.working = count
        self.cancelled = False

    def ask(self, who: int, question: Any) -> Any:
        with self.condition:
            if self.cancelled:
                raise _Cancelled
            self.questions[who] = question
            self.working -= 1
            self.condition.notify_all()
            self.condition.wait_for(lambda: who in self.answers or self.cancelled)
            if who not in self.answers:
                raise _Cancelled
            return self.answers.pop(who)

    def leave(self) -> None:
        with self.condition:
            self.working -= 1
            self.condition.notify_all()

    def asked(self) -> dict[int, Any]:
        """All questions, once no task works; none if all have left."""
        with self.condition:
            # With a limit of time, so that Ctrl-C is seen.
            while not self.condition.wait_for(lambda: self.working == 0, timeout=1.0):
                pass
            questions, self.questions = self.questions, {}
            return dict(sorted(questions.items()))

    def answer(self, answers: dict[int, Any]) -> None:
        with self.condition:
            self.answers.update(answers)
            self.working += len(answers)
            self.condition.notify_all()

    def cancel(self) -> None:
        with self.condition:
            self.cancelled = True
            self.condition.notify_all()


def in_step(
    task: Callable[[int, Callable[[Any], Any]], Any],
    count: int,
    evaluate: Callable[[list[Any]], Sequence[Any]],
) -> list[Any]:
    """Run ``task(i, ask)`` for i < count, answering what all of them ask in one batch each time.

    Args:
        task: an algorithm; ``ask(question)`` waits for its answer.
        count: how many, each with a thread.
        evaluate: a list of questions to their answers, in the caller's thread.

    Returns:
        What the tasks return. An error in one of them, in `evaluate`, or Ctrl-C ends all.

    Example:
        >>> from jaxmbd.design.lockstep import in_step
        >>> def climb(i, ask):
        ...     return [ask((i, step)) for step in range(2)]
        >>> in_step(climb, 2, lambda questions: [10 * i + step for i, step in questions])
        [[0, 1], [10, 11]]
    """
    desk, results, errors = _Desk(count), [None] * count, []

    def run(i: int) -> None:
        try:
            results[i] = task(i, lambda question: desk.ask(i, question))
        except _Cancelled:
            pass
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)
        finally:
            desk.leave()

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    try:
        for thread in threads:
            thread.start()
        while questions := desk.asked():
            if errors:
                break
            desk.answer(dict(zip(questions, evaluate(list(questions.values())), strict=True)))
    finally:
        desk.cancel()
        for thread in threads:
            thread.join(timeout=5.0)
    if errors:
        raise errors[0]
    return results
