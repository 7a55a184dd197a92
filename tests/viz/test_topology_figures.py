"""Topology diagrams: everything is there, nothing overlaps or leaves the page."""

import numpy as np
import pytest
from random_mechanisms import random_mechanism

import jaxmbd as mbd
from jaxmbd.viz.topology_diagram import cards, tree_layout

pytest.importorskip("matplotlib")
from jaxmbd.viz import redundancy_figure, topology_figure  # noqa: E402


def chain(count):
    """`count` links in a row on hinges."""
    bodies = {f"link_{k}": mbd.Body(1.0, (k + 0.5, 0.0), 0.1) for k in range(count)}
    names = ["ground", *bodies]
    joints = {
        f"hinge_{k}": mbd.Revolute(names[k], names[k + 1], (float(k), 0.0)) for k in range(count)
    }
    return mbd.Mechanism(bodies, joints)


MECHANISMS = {
    "rssr": mbd.zoo.rssr,
    "multi_link": mbd.zoo.multi_link,
    "stewart_gough": mbd.zoo.stewart_gough,
    "delta_robot": mbd.zoo.delta_robot,
    "chain": lambda: chain(40),
    "random": lambda: random_mechanism(3),
}


def written(figure):
    """Texts of a figure with their extents [in]."""
    renderer, dpi = figure.canvas.get_renderer(), figure.dpi
    return [
        (t.get_text(), t.get_window_extent(renderer).get_points() / dpi)
        for t in figure.axes[0].texts
    ]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in ("chain", "stewart_gough", "delta_robot")))
     for n in MECHANISMS],
)  # fmt: skip
def test_all_names_are_on_the_page(name):
    mech = MECHANISMS[name]()
    top, figure = mbd.topology(mech), topology_figure(mech)
    texts = written(figure)
    width, height = figure.get_size_inches()
    said = [text for text, _ in texts]
    assert all(said.count(body) >= 1 for body in top.bodies)
    for joint, place in top.layout.items():
        shown = place.q or place.rows
        ends = (f"[{shown.start}:{shown.stop}]", f"[{shown.start}]")
        assert any(joint in text for text in said)
        assert shown.stop == shown.start or any(text.endswith(ends) for text in said)
    for text, ((left, low), (right, high)) in texts:
        assert left > 0 and low > 0 and right < width and high < height, text


@pytest.mark.parametrize("seed", range(20))
def test_boxes_of_a_tree_do_not_overlap_and_parents_are_above_their_children(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 40))
    names = ["root", *(f"n{k}" for k in range(count))]
    below: dict[str, list[str]] = {}
    for k, name in enumerate(names[1:]):
        below.setdefault(names[rng.integers(0, k + 1)], []).append(name)
    widths = dict(zip(names, rng.uniform(0.5, 2.0, len(names)), strict=True))
    pairs = [tuple(rng.choice(names, 2, replace=False)) for _ in range(4)]
    boxes = tree_layout(below, "root", widths, pairs)
    assert boxes.keys() == set(names)
    assert min(b.x - b.width / 2 for b in boxes.values()) == pytest.approx(0.0)
    for parent, children in below.items():
        xs = [boxes[c].x for c in children]
        assert boxes[parent].x == pytest.approx((min(xs) + max(xs)) / 2)
        assert all(boxes[c].depth == boxes[parent].depth + 1 for c in children)
    for depth in {b.depth for b in boxes.values()}:
        row = sorted((b for b in boxes.values() if b.depth == depth), key=lambda b: b.x)
        for left, right in zip(row, row[1:], strict=False):
            assert right.x - left.x >= (left.width + right.width) / 2 + 0.25 - 1e-9


def test_linked_siblings_come_together():
    below = {"root": ["a", "b", "c", "d"]}
    boxes = tree_layout(below, "root", dict.fromkeys(["root", *"abcd"], 1.0), [("a", "d")])
    assert abs(boxes["a"].x - boxes["d"].x) == pytest.approx(1.25)


def test_redundant_rows_and_idle_spins_are_marked():
    mech = mbd.zoo.four_bar()
    marked, _ = cards(mech, mbd.redundancy(mech))
    assert marked["cut joint C"].rows == (False, True, False, True, True)
    assert marked["cut joint C"].other in ("coupler", "rocker")
    rssr = mbd.zoo.rssr()
    marked, below = cards(rssr, mbd.redundancy(rssr))
    assert [key for key, card in marked.items() if card.idle] == ["coupler"]
    assert below["coupler"] == ["cut joint B"] and marked["cut joint B"].other == "rocker"


def test_redundancy_is_explained_below_the_diagram(tmp_path):
    mech = mbd.zoo.four_bar()
    path = tmp_path / "four_bar.png"
    said = " ".join(text for text, _ in written(redundancy_figure(mech, path=path)))
    for row in mbd.redundancy(mech).rows:
        assert str(row) in said
    assert "3 redundant" in said and path.read_bytes().startswith(b"\x89PNG")
    assert "spins by" in " ".join(text for text, _ in written(redundancy_figure(mbd.zoo.rssr())))


def test_notebooks_show_figures():
    assert topology_figure(mbd.zoo.rssr())._repr_png_().startswith(b"\x89PNG")


def test_drives_and_couplings_are_on_the_cards():
    mech = mbd.zoo.four_bar()
    driven = mech.replace(drives={"motor": mbd.Drive("A", lambda t, _: 0.1 * t)})
    lines = cards(driven)[0]["crank"].lines
    assert lines[1].startswith("drive motor  row[")
