"""Answers to the questions of optimisers in step: designs and Hessians, in batches, stored.

Optimisers for one problem, such as SciPy's, call a function and wait. Here many of them run at
once, each in a thread of its own; when all wait, their questions are answered together.

Evaluations may be stored in a file. Optimisers are deterministic: an interrupted run that is begun
again with the same file takes its past from there and goes on where it stopped.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from jaxmbd.design.evaluation import Evaluation
from jaxmbd.design.problem import Problem


class _Cancelled(BaseException):
    """Ends a task whose answer will never come."""


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
    messages: SimpleQueue[Any] = SimpleQueue()  # (task, whether it asks, its question)
    answers: list[SimpleQueue[Any]] = [SimpleQueue() for _ in range(count)]
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(i: int) -> None:
        def ask(question: Any) -> Any:
            messages.put((i, True, question))
            if isinstance(answer := answers[i].get(), _Cancelled):
                raise answer
            return answer

        try:
            results[i] = task(i, ask)
        except _Cancelled:
            pass
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)
        finally:
            messages.put((i, False, None))

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    try:
        for thread in threads:
            thread.start()
        working = count
        while working and not errors:
            every = sorted((_next(messages) for _ in range(working)), key=lambda x: x[0])
            questions = {i: question for i, asks, question in every if asks}
            if questions and not errors:
                for i, answer in zip(questions, evaluate(list(questions.values())), strict=True):
                    answers[i].put(answer)
            working = len(questions)
    finally:
        for thread, its in zip(threads, answers, strict=True):
            its.put(_Cancelled())
            thread.join(timeout=5.0)
    if errors:
        raise errors[0]
    return results


def _next(messages: SimpleQueue[Any]) -> Any:
    """The next message; the wait is cut in pieces, so that Ctrl-C is seen on every platform."""
    while True:
        try:
            return messages.get(timeout=1.0)
        except Empty:
            pass


class Store:
    """Answers by question in an SQLite file, for one problem, which JSON values determine.

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
            raise ValueError(f"{self.path} is no store of evaluations: {error}") from None
        if known is not None and known[0] != text:
            old, new = json.loads(known[0]), json.loads(text)
            what = [k for k in sorted(old.keys() | new.keys()) if old.get(k) != new.get(k)]
            self._file.close()
            raise ValueError(
                f"{self.path} has the evaluations of another problem, which differs in "
                f"{', '.join(what)}; remove it, or give another store="
            )

    def find(self, questions: Sequence[bytes]) -> list[bytes | None]:
        """The answers that are known."""
        text = "select answer from answers where question = ?"
        rows = (self._file.execute(text, (question,)).fetchone() for question in questions)
        return [None if row is None else row[0] for row in rows]

    def add(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Store answers; they are on disk when this returns."""
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

    ``("design", x)`` and ``("margin", x)`` by a row and its Jacobian, ``("hessian", x, w)`` by a
    tuple of one, the Hessian of the rows weighted by w.

    Args:
        problem: whose rows are asked for.
        store: where answers are stored, or None.
        margin: of closure, or None.
        report: called after each batch of designs, with a text and their objectives.
    """

    def __init__(
        self,
        problem: Problem,
        store: Store | None,
        margin: Evaluation | None,
        report: Callable[[str, np.ndarray], None],
    ):
        evaluation = problem.evaluation
        self.problem, self.store, self.report = problem, store, report
        self.computed = self.rounds = 0
        self.unknowns = len(evaluation.unknowns)
        self.names = {"design": "design", "hessian": "hessian"}  # in the file
        self.functions: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
            "design": evaluation.jacobians,
            "hessian": evaluation.hessians,
        }
        if margin is not None:
            self.functions["margin"] = margin.jacobians
            self.names["margin"] = "margin" if store is None else f"margin {margin.digest}"

    def __call__(self, questions: Sequence[Any]) -> list[Any]:
        """The answers to questions of any kinds, in their order."""
        answers: list[Any] = [None] * len(questions)
        for kind in self.functions:
            chosen = [i for i, q in enumerate(questions) if q[0] == kind]
            if chosen:
                found = self._of_kind(kind, [questions[i][1:] for i in chosen])
                for i, answer in zip(chosen, found, strict=True):
                    answers[i] = answer
                if kind == "design":
                    rows = np.stack([row for row, _ in found])
                    text = f"round {self.rounds}: {len(rows)} designs"
                    self.report(text, self.problem.merits(rows))
        self.rounds += 1
        return answers

    def _of_kind(self, kind: str, asked: list[tuple[np.ndarray, ...]]) -> list[Any]:
        keys = [question(self.names[kind], *x) for x in asked]
        known = self.store.find(keys) if self.store is not None else [None] * len(keys)
        new = [i for i, answer in enumerate(known) if answer is None]
        fresh: list[tuple[np.ndarray, ...]] = []
        if new:
            stacked = [np.stack([asked[i][k] for i in new]) for k in range(len(asked[0]))]
            fresh = list(zip(*self.functions[kind](*stacked), strict=True))
            self.computed += len(new) if kind == "design" else 0
            if self.store is not None:
                packed = [np.concatenate([x.ravel() for x in a]).tobytes() for a in fresh]
                self.store.add([(keys[i], b) for i, b in zip(new, packed, strict=True)])
        at = iter(fresh)
        return [next(at) if a is None else self._unpacked(kind, a) for a in known]

    def _unpacked(self, kind: str, stored: bytes) -> tuple[np.ndarray, ...]:
        x, n = np.frombuffer(stored), self.unknowns
        if kind == "hessian":
            return (x.reshape(n, n),)
        m = len(x) // (n + 1)
        return x[:m], x[m:].reshape(m, n)
