"""Are gradients right where they are delicate? Random designs at singular places; outcomes.

    python benchmarks/gradients.py [--samples 150] [--seed 0] [--only FAMILY] [--json FILE]

Every quantity of every design is differentiated along a random direction in forward and in reverse
mode and compared with differences over forty steps. Outcomes:

- right: both modes agree with the differences within their error;
- flagged: the status, or a value or derivative that is not finite, says that there is none;
- refused: an error that says why;
- one-sided: the quantity has a kink there, and the derivative is that of one side;
- unclear: no step size gives differences that settle, and the two modes agree;
- WRONG: finite, reported as good, and contradicted. Exits with 1 if there is one.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from functools import partial
from typing import Any

import _script

_script.start()

import jax  # noqa: E402
import numpy as np  # noqa: E402
from gradient_cases.families import FAMILIES, Family  # noqa: E402

from jaxmbd import lanes  # noqa: E402
from jaxmbd.design.gradient_check import differences  # noqa: E402

STEPS = 0.05 * 0.5 ** np.arange(42)
OUTCOMES = ("right", "flagged", "refused", "one-sided", "unclear", "WRONG")


def judged(family: Family, n: int, rng: np.random.Generator) -> dict[str, list[tuple[str, Any]]]:
    """Quantity to the outcome of each design, with the numbers that it rests on."""
    x = family.draw(rng, n)
    direction = rng.normal(size=x.shape) * np.std(x, axis=0)
    names: list[str] = []

    def values(x: Any) -> Any:
        answer = family.answer(x)
        names[:] = list(answer)
        pairs = list(answer.values())
        return (
            jax.numpy.stack([jax.numpy.asarray(y, float) for y, _ in pairs]),
            jax.numpy.stack([jax.numpy.asarray(ok) for _, ok in pairs]),
        )

    def number(name: str, x: Any) -> Any:
        return jax.numpy.asarray(family.answer(x)[name][0], float)

    fast = lanes.vmap(values)
    here, good = map(np.asarray, fast(x))
    along = lanes.vmap(lambda x, d: jax.jvp(lambda x: values(x)[0], (x,), (d,))[1])
    forward = np.asarray(along(x, direction))
    rounded = x * (1.0 + 4.0 * np.finfo(float).eps * np.sign(rng.normal(size=x.shape)))
    spread = np.abs(np.asarray(along(rounded, direction)) - forward)
    gradient = np.stack(
        [np.asarray(lanes.vmap(jax.grad(partial(number, name)))(x)) for name in names], axis=1
    )
    reverse = np.einsum("nmk,nk->nm", gradient, direction)
    terms = np.einsum("nmk,nk->nm", np.abs(gradient), np.abs(direction))
    offsets = np.concatenate([STEPS, -STEPS])
    lines = (x[:, None] + offsets[:, None] * direction[:, None]).reshape(-1, x.shape[1])
    y, fine = map(np.asarray, fast(lines))
    y = np.where(fine, y, np.nan).reshape(n, 2, len(STEPS), -1)
    above, below = (np.moveaxis(y[:, k], 1, 2) for k in range(2))
    noise = 4.0 * np.finfo(float).eps * (0.3 + np.abs(here))
    found = differences(here, above, below, np.broadcast_to(STEPS, above.shape), noise)
    out: dict[str, list[tuple[str, Any]]] = {}
    for m, name in enumerate(names):
        out[name] = [
            _outcome(
                bool(good[k, m]),
                here[k, m],
                forward[k, m],
                reverse[k, m],
                terms[k, m],
                spread[k, m],
                type(found)(*(part[k, m] for part in found)),
            )
            for k in range(n)
        ]  # fmt: skip
    for name, cases in out.items():
        out[name] = [(o, (x[k].tolist(), detail)) for k, (o, detail) in enumerate(cases)]
        assert len(cases) == n, name
    return out


def _outcome(
    good: bool, y: float, a: float, b: float, terms: float, spread: float, d: Any
) -> tuple[str, Any]:
    """One design's outcome, from forward a, reverse b and differences d.

    `spread` is by how much a changes if the design changes in its last digits: near a dead centre
    no computation can do better.
    """
    detail = [float(v) for v in (y, a, b, d.value, d.error, d.left, d.right)]
    if not good or not np.isfinite(y) or not np.isfinite(a):
        return "flagged", detail

    def same(p: float, q: float, error: float) -> bool:
        allowed = 20.0 * (error + spread) + 1e-9 * (terms + abs(y))
        return abs(p - q) <= allowed + 1e-5 * (abs(p) + abs(q))

    if not np.isfinite(b) or not same(a, b, 0.0):
        return "WRONG", ["reverse", *detail]
    if d.kink or d.jump or d.edge:
        sides = [s for s in (d.left, d.right, d.value) if np.isfinite(s)]
        near = any(
            abs(a - s) <= 1e-3 * (abs(a) + abs(s)) + 20.0 * spread + 1e-9 * terms for s in sides
        )
        within = len(sides) > 1 and min(sides) <= a <= max(sides)
        return ("one-sided" if near or within else "WRONG"), ["kink", *detail]
    ways = [w for w in (d.left, d.right, d.value) if np.isfinite(w)]
    error = max(d.error, max(ways) - min(ways)) if ways else np.inf  # of differences of three kinds
    if same(a, d.value, error) and error <= 1e-2 * (abs(a) + terms) + 1e-9:
        return "right", detail
    if not np.isfinite(d.value) or error > 1e-2 * (abs(a) + abs(d.value)) + 1e-9 * terms:
        return "unclear", detail
    return "WRONG", ["forward and reverse", *detail]


def main() -> int:
    """Run the trial and print the outcomes."""
    options = _script.parser(__doc__)
    options.add_argument("--samples", type=int, default=150, help="designs of each family")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", help="one family")
    options.add_argument("--show", type=int, default=3, help="how many wrong cases to print")
    args = options.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"samples": args.samples, "seed": args.seed, "families": {}}
    total: Counter[str] = Counter()
    for k, (name, family) in enumerate(FAMILIES.items()):
        if args.only and args.only not in name:
            continue
        start = time.process_time()
        cases = judged(family, args.samples, np.random.default_rng([args.seed, k]))
        print(f"{name} ({time.process_time() - start:.0f} s of CPU)", flush=True)
        table = {}
        for quantity, outcomes in cases.items():
            counts = Counter(o for o, _ in outcomes)
            total += counts
            table[quantity] = {o: counts[o] for o in OUTCOMES if counts[o]}
            print(f"  {quantity:16} " + ", ".join(f"{v} {o}" for o, v in table[quantity].items()))
            wrong = [detail for o, detail in outcomes if o == "WRONG"]
            for detail in wrong[: args.show]:
                print("     WRONG", detail)
        results["families"][name] = table
    results["total"] = {o: total[o] for o in OUTCOMES}
    print(", ".join(f"{v} {o}" for o, v in results["total"].items()))
    _script.write(args.json, results)
    return 1 if total["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
