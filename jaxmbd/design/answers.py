"""Answers to the questions of optimisers in step: designs and curvatures, batched and kept.

Optimisers for one problem, such as SciPy's, call a function and wait. Here many of them run at
once, each in a thread of its own; when all wait, their questions are answered together.

Evaluations may be kept in a file. Optimisers are deterministic, so that a run that was ended, begun
anew with the same file, passes through its past in no time and goes on where it stopped, with the
same numbers.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.design.curvatures import Curvatures
from jaxmbd.design.evaluation import Evaluation
from jaxmbd.design.problem import Problem


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
        >>> from jaxmbd.design.answers import in_step
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


class Kept:
    """Answers by question in an SQLite file.

    Args:
        path: the file; created if there is none.
        problem: JSON values that determine the problem.

    Raises:
        ValueError: the file belongs to another problem, or is no such file.
    """

    def __init__(self, path: str | Path, problem: dict[str, Any]):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(problem, sort_keys=True)
        try:
            self._file = sqlite3.connect(self.path)
            with self._file:
                self._file.execute("create table if not exists problem (text)")
                self._file.execute(
                    "create table if not exists answers (question blob primary key, answer blob)"
                )
                known = self._file.execute("select text from problem").fetchone()
                if known is None:
                    self._file.execute("insert into problem values (?)", (text,))
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is no file of kept evaluations: {error}") from None
        if known is not None and known[0] != text:
            old, new = json.loads(known[0]), json.loads(text)
            what = [k for k in sorted(old.keys() | new.keys()) if old.get(k) != new.get(k)]
            self._file.close()
            raise ValueError(
                f"{self.path} keeps the evaluations of another problem, which differs in "
                f"{', '.join(what)}; remove it, or give another store="
            )

    def __len__(self) -> int:
        return self._file.execute("select count(*) from answers").fetchone()[0]

    def find(self, questions: Sequence[bytes]) -> list[bytes | None]:
        """The answers that are known."""
        found = []
        for question in questions:
            row = self._file.execute(
                "select answer from answers where question = ?", (question,)
            ).fetchone()
            found.append(None if row is None else row[0])
        return found

    def add(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep answers; they are on disk when this returns."""
        with self._file:
            self._file.executemany("insert or replace into answers values (?, ?)", pairs)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def question(kind: str, *arrays: np.ndarray) -> bytes:
    """A key of a question by its numbers."""
    digest = blake2b(kind.encode(), digest_size=20)
    for x in arrays:
        digest.update(np.ascontiguousarray(x, np.float64).tobytes())
    return digest.digest()


class Answers:
    """Answers what optimisers in step ask for.

    ``("design", x)`` by a row and its Jacobian, ``("curvature", x, v, w)`` by a Hessian-vector
    product of the rows weighted by w, ``("hessian", x, w)`` by the matrix.

    Args:
        problem: whose rows are asked for.
        size: largest number of questions at a time; batches are padded to few sizes, because a new
            size costs compiling.
        kept: where answers are kept, or None.
        margin: what answers ``("margin", x)`` by a row and its Jacobian.
        report: called after each batch of designs with its number and rows.
    """

    def __init__(
        self,
        problem: Problem,
        size: int,
        kept: Kept | None,
        margin: Evaluation | None,
        report: Callable[[int, np.ndarray], None],
    ):
        self.problem, self.kept, self.margin, self.report = problem, kept, margin, report
        self.sizes = sorted({1, *(-(-size // k) for k in (1, 4, 16))})
        self.computed = self.rounds = 0

    def __call__(self, questions: Sequence[Any]) -> list[Any]:
        """The answers to questions of any kinds, in their order."""
        answers: list[Any] = [None] * len(questions)
        for kind in ("design", "margin", "curvature", "hessian"):
            chosen = [i for i, q in enumerate(questions) if q[0] == kind]
            if chosen:
                found = self._of_kind(kind, [questions[i][1:] for i in chosen])
                for i, answer in zip(chosen, found, strict=True):
                    answers[i] = answer
                if kind == "design":
                    self.report(self.rounds, np.stack([row for row, _ in found]))
        self.rounds += 1
        return answers

    def _of_kind(self, kind: str, asked: list[tuple[np.ndarray, ...]]) -> list[Any]:
        keys = [question(self._name(kind), *x) for x in asked]
        known = self.kept.find(keys) if self.kept is not None else [None] * len(keys)
        new = [i for i, answer in enumerate(known) if answer is None]
        fresh: list[tuple[np.ndarray, ...]] = []
        if new:
            size = next((s for s in self.sizes if s >= len(new)), len(new))
            rows = [new[min(i, len(new) - 1)] for i in range(size)]
            stacked = [np.stack([asked[i][k] for i in rows]) for k in range(len(asked[0]))]
            fresh = list(zip(*self._computed(kind, *stacked), strict=True))[: len(new)]
            self.computed += len(new) if kind == "design" else 0
            if self.kept is not None:
                packed = [np.concatenate([x.ravel() for x in a]).tobytes() for a in fresh]
                self.kept.add([(keys[i], b) for i, b in zip(new, packed, strict=True)])
        at = iter(fresh)
        found = [next(at) if a is None else self._unpacked(kind, a) for a in known]
        return [x[0] if kind in ("curvature", "hessian") else x for x in found]

    def _name(self, kind: str) -> str:
        """A name of what is computed; the problem's own functions are known to what is kept."""
        if kind == "margin" and self.kept is not None:
            assert self.margin is not None
            return f"margin {self.margin.digest}"
        return kind

    def _computed(self, kind: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        if kind == "design":
            return self.problem.evaluation.jacobians(*arrays)
        if kind == "margin":
            assert self.margin is not None
            return self.margin.jacobians(*arrays)
        if kind == "hessian":
            return (self._curvatures.hessians(*arrays),)
        return (self._curvatures.products(*arrays),)

    @cached_property
    def _curvatures(self) -> Curvatures:
        return Curvatures(self.problem.evaluation)

    def _unpacked(self, kind: str, stored: bytes) -> tuple[np.ndarray, ...]:
        x = np.frombuffer(stored)
        n = len(self.problem.evaluation.unknowns)
        if kind == "curvature":
            return (x,)
        if kind == "hessian":
            return (x.reshape(n, n),)
        m = len(x) // (n + 1)
        return x[:m], x[m:].reshape(m, n)
