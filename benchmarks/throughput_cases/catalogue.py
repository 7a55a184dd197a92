"""The cases, those of the targets first."""

from __future__ import annotations

import warnings
from functools import partial

import jaxmbd as mbd
from throughput_cases.arm import arm
from throughput_cases.case import Case
from throughput_cases.chains import chain

_PLANE = (1.0, 1.0, 0.0)


def _quiet_double_wishbone() -> mbd.Mechanism:
    with warnings.catch_warnings():  # the published inertias of its arms
        warnings.filterwarnings("ignore", message=".*triangle inequality.*")
        return mbd.zoo.double_wishbone()


CASES = {
    case.name: case
    for case in (
        Case("chain8", "8 revolutes, 1 loop", partial(chain, 8, 1), peers=True, small=True),
        Case("chain24", "24 revolutes, 3 loops", partial(chain, 24, 3), peers=True),
        Case("multi_link", "multi-link corner", mbd.zoo.multi_link),
        Case(
            "rssr",
            "RSSR",
            partial(mbd.zoo.rssr, gravity=9.81),
            dt=2e-4,
            spread=1e-3,
            peers=True,
            small=True,
        ),
        Case("arm7", "open 7-revolute arm", arm, peers=True, small=True),
        Case("four_bar_1", "N-four-bar, N = 1", partial(mbd.zoo.n_four_bar, 1), directions=_PLANE),
        Case("double_wishbone", "double wishbone", _quiet_double_wishbone),
        Case("macpherson", "MacPherson corner", mbd.zoo.macpherson),
        Case("four_bar_4", "N-four-bar, N = 4", partial(mbd.zoo.n_four_bar, 4), directions=_PLANE),
        Case(
            "four_bar_10", "N-four-bar, N = 10", partial(mbd.zoo.n_four_bar, 10), directions=_PLANE
        ),
    )
}
