"""Answers to the questions of optimisers in step: designs and curvatures, batched and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jaxmbd.design.curvatures import Curvatures
from jaxmbd.design.evaluation import Evaluation
from jaxmbd.design.kept import Kept, question
from jaxmbd.design.problem import Problem


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
