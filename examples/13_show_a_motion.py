"""A motion as pictures: a page to send on, a still picture, samples over each other, forces.

    python examples/13_show_a_motion.py [folder for the files]

A published multi-link corner is let go under its wheel load. Twelve more are made with scattered
hardpoints, springs and dampers; all of them go into one HTML file that plays in any browser without
a network: the published one in full, the others pale, the one that rises most in red, with the
forces in the joints as arrows. Then it is checked that what is drawn is what was computed.
"""

import sys
from pathlib import Path

import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd.suspension import zoo_corner
from jaxmbd.viz import Scene, animation, corner_wheel, picture

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")

# --- Thirteen corners, let go ------------------------------------------------------------------
published = mbd.zoo.multi_link()
rng = np.random.default_rng(3)
COUNT = 13  # the first one is as published
scatter = {
    "points": {
        n: 8e-3 * rng.standard_normal((COUNT, 3)) for n in ("upper_arm_ball", "tierod_inboard")
    },
    "rate": 1.2e5 * (1.0 + 0.12 * rng.standard_normal(COUNT)),
    "damping": 4e3 * (1.0 + 0.3 * rng.uniform(-1.0, 1.0, COUNT)),
}
scatter["points"] = {n: x * (np.arange(COUNT) > 0)[:, None] for n, x in scatter["points"].items()}
scatter["rate"][0], scatter["damping"][0] = 1.2e5, 4e3


def let_go(sample):
    """A corner and its motion from where it is drawn, at rest."""
    moved = {n: published.points[n] + x for n, x in sample["points"].items()}
    mech = mbd.zoo.multi_link(moved, sample["rate"], damping=sample["damping"])
    return mech, mbd.simulate(mech, mbd.assemble(mech).q, t1=0.4, dt=1e-3, save_every=4)


runs = [let_go(jax.tree.map(lambda x, k=k: x[k], scatter)) for k in range(COUNT)]
corners, motions = jax.tree.map(lambda *samples: np.stack(samples), *runs)  # a batch, as of vmap
print(f"{np.sum(np.asarray(motions.status) == mbd.Status.OK)} of {COUNT} motions are ok")


def height(mech, q):
    """Height of the wheel centre over where it is drawn [m]."""
    return (
        mbd.point_position(mech, q, "upright", "wheel_centre")[2] - mech.points["wheel_centre"][2]
    )


heights = jax.vmap(jax.vmap(height, in_axes=(None, 0)))(corners, motions.q)
highest = np.max(np.asarray(heights), axis=1)
worst = int(np.argmax(highest))
print(
    f"the wheel rises by {1e3 * highest[0]:.1f} mm as published, {1e3 * highest[worst]:.1f} mm "
    f"in sample {worst}"
)

# --- Pictures of all of them --------------------------------------------------------------------
OUT.mkdir(parents=True, exist_ok=True)
shown = dict(
    title="A multi-link corner after release",
    wheels=[corner_wheel(published, zoo_corner("multi_link"))],
    traces=[("upright", "wheel_centre")],
    arrows=["sph_ua", "sph_lat", "sph_tl"],
    worst=worst,
    speed=0.2,
)
page = animation(OUT / "13_show_a_motion.html", corners, motions, **shown)
print(f"wrote {page}, {page.stat().st_size / 1e6:.1f} MB")
picture(corners, motions, OUT / "13_show_a_motion.png", frame=20, **shown)
print(f"wrote {OUT / '13_show_a_motion.png'}")

# --- What is drawn is what was computed ---------------------------------------------------------
scene, q = Scene.of(published), motions.q[0, -1]
[spring] = [span for span in scene.spans if span.name == "spring"]
placed = scene.span_placement(spring, mbd.poses(published, q))
drawn = placed.stretch * np.linalg.norm(spring.at_b - spring.at_a)
ends = [
    mbd.point_position(published, q, b, p)
    for b, p in ((spring.a, "spring_top"), (spring.b, "spring_bottom"))
]
length = float(np.linalg.norm(ends[1] - ends[0]))
print(f"the spring is drawn {1e3 * drawn:.3f} mm long; off by {abs(drawn - length):.1e} m")
if abs(drawn - length) > 1e-12:
    sys.exit("the picture is not that of the motion")
