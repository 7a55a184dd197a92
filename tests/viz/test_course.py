"""Courses, casts and arrows: what an animation shows is what was computed."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.viz.course import (
    GHOST,
    WORST,
    Course,
    Track,
    arrow_scale,
    arrows_along,
    cast_of,
    chosen_arrows,
    tracks,
)
from jaxmbd.viz.moving_picture import Painter


@pytest.fixture(scope="module")
def pendulum():
    return mbd.zoo.simple_pendulum()


@pytest.fixture(scope="module")
def swing(pendulum):
    return mbd.simulate(pendulum, [0.3], t1=1.0, dt=5e-3)


def test_frames_are_the_nearest_times(pendulum, swing):
    [track] = tracks(pendulum, swing)
    course = Course.of(pendulum, track, speed=0.5, rate=20.0)
    assert course.clock[-1] == pytest.approx(2.0) and len(course.clock) == 41
    np.testing.assert_allclose(course.track.t, 0.5 * course.clock, rtol=0, atol=2.6e-3)
    for k in (0, 17, 40):
        position = course.at(k)["bob"].position
        row = int(np.argmin(np.abs(swing.t - course.track.t[k])))
        np.testing.assert_allclose(position, mbd.poses(pendulum, swing.q[row])["bob"].position)


def test_what_has_no_times_is_played_to_and_fro(pendulum):
    [track] = tracks(pendulum, np.linspace(0.0, 1.0, 5)[:, None])
    course = Course.of(pendulum, track)
    np.testing.assert_allclose(
        course.track.q[:, 0], [0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25], rtol=0, atol=1e-15
    )


def test_a_motion_that_fails_ends_there(pendulum, swing):
    q = np.array(swing.q)
    q[60:] = np.nan
    [track] = tracks(pendulum, swing._replace(q=q))
    assert len(track.q) == len(track.t) == len(track.v) == 60
    with pytest.raises(ValueError, match="no coordinates of the solution are finite"):
        tracks(pendulum, np.full((4, 1), np.nan))
    with pytest.raises(ValueError, match=r"shape \(3,\); this mechanism takes \(1,\)"):
        tracks(pendulum, np.zeros(3))


def test_a_sweep_keeps_what_closes(pendulum):
    q = np.array([[np.nan], [0.1], [0.2], [np.nan]])
    [track] = tracks(pendulum, q)
    assert track.q.tolist() == [[0.1], [0.2]] and track.t is None


def test_times_that_stand_still_are_none(pendulum, swing):
    [track] = tracks(pendulum, swing._replace(t=0.0 * swing.t))
    assert track.t is None and len(track.q) == len(swing.t)
    with pytest.raises(ValueError, match="rate=0; give frames"):
        cast_of(pendulum, swing, rate=0)


def test_times_that_run_backwards_or_end_in_nothing(pendulum, swing):
    with pytest.raises(ValueError, match=r"times run backwards: t\[1\] = 0.995 s comes after 1 s"):
        tracks(pendulum, swing._replace(t=np.asarray(swing.t)[::-1]))
    t = np.array(swing.t)
    t[50:] = np.nan
    [track] = tracks(pendulum, swing._replace(t=t))
    assert len(track.q) == len(track.t) == 50
    assert len(cast_of(pendulum, swing._replace(t=0.0 * t)).clock) > 1


def test_traces_and_arrows_are_on_the_stage(pendulum, swing):
    far = np.array([-1.055, 0.0, 0.0])
    cast = cast_of(pendulum, swing, traces=[("bob", far)], arrows="hinge")
    [path] = cast.actors[0].traces
    assert np.linalg.norm(path, axis=1).min() > 1.05
    tips = cast.arrows[:, 0].sum(axis=1)
    for x in (path, tips):
        assert np.all(np.abs(x - cast.stage.centre) <= cast.stage.half + 1e-12)
    pytest.importorskip("matplotlib")
    painter = Painter(cast)
    seen, [ax] = painter.camera.seen(tips)[0], painter.figure.axes
    for x, (low, high) in zip(seen.T, (ax.get_xlim(), ax.get_ylim()), strict=True):
        assert low < x.min() and x.max() < high


def test_one_pose_and_none(pendulum):
    [track] = tracks(pendulum, [0.4])
    assert track.q.tolist() == [[0.4]] and track.t is None
    rssr = mbd.zoo.rssr()
    [track] = tracks(rssr, None)
    np.testing.assert_allclose(track.q[0], mbd.assemble(rssr).q)


def test_samples_are_drawn_over_each_other(pendulum):
    lengths, drawn = np.array([1.0, 0.9, 1.1, 1.2]), np.array([-1.0, 0.0, 0.0])

    def run(length):
        mech = pendulum.replace(bodies={"bob": mbd.Body(1.0, com=length * drawn)})
        return mech, mbd.simulate(mech, [0.3], t1=0.2, dt=1e-2)

    mechs, motions = jax.vmap(run)(lengths)
    cast = cast_of(mechs, motions, worst=3, ghosts=3, traces=[("bob", (-0.5, 0.0, 0.0))])
    assert [a.sample for a in cast.actors] == [0, 3, 2]
    assert [a.colour for a in cast.actors] == [None, WORST, GHOST]
    for actor in cast.actors:
        start = actor.course.at(0)["bob"].position
        assert np.linalg.norm(start) == pytest.approx(lengths[actor.sample])
        middle, [path] = 0.5 * actor.course.where["bob"].position, actor.traces
        middle *= 1.0 / lengths[actor.sample]
        away = np.linalg.norm(path[:, None] - middle, axis=2)
        np.testing.assert_allclose(away.min(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(path, axis=1), 0.5, rtol=1e-4)
    assert "worst sample in red: 3" in cast.notes
    with pytest.raises(ValueError, match="worst=4, but the solution has 4 samples"):
        cast_of(mechs, motions, worst=4)
    with pytest.raises(ValueError, match="'bop'.*bob"):
        cast_of(pendulum, [0.1], traces=[("bop", (0, 0))])


def test_arrows_of_reactions_are_the_reactions(pendulum, swing):
    [track] = tracks(pendulum, swing)
    arrows = arrows_along(pendulum, track.frames(np.array([0, 50, 199])), ("hinge",))
    for k, row in enumerate((0, 50, 199)):
        q, v = swing.q[row], swing.v[row]
        vdot, lam = mbd.forward_dynamics(pendulum, q, v)
        wrench = mbd.joint_reactions(pendulum, q, v, vdot, lam)["hinge"]
        np.testing.assert_allclose(arrows[k, 0], [np.zeros(3), wrench[3:]], rtol=0, atol=1e-12)


def test_arrows_of_a_driven_motion_take_its_efforts(pendulum):
    turn = mbd.simulate_driven(pendulum, {"hinge": lambda t: 2.0 * t}, t=np.linspace(0, 1, 4))
    [track] = tracks(pendulum, turn)
    assert track.tau is not None
    [[foot, force], *_] = arrows_along(pendulum, track, ("hinge",))[3]
    # A point mass at 1 m turns at 2 rad/s: it is pulled inwards with 4 N and carried.
    inwards = -np.asarray(mbd.poses(pendulum, turn.q[3])["bob"].position)
    np.testing.assert_allclose(force, 4.0 * inwards + [0.0, 9.81, 0.0], rtol=0, atol=1e-9)


def test_arrows_of_a_spring_pull_at_its_end():
    mech = mbd.zoo.simple_pendulum().replace(
        forces={
            "spring": mbd.SpringDamper(
                "ground",
                "bob",
                (-1.0, -1.0, 0.0),
                (-1.0, 0.0, 0.0),
                stiffness=50.0,
                free_length=0.8,
            )
        }
    )
    still = Track(np.zeros((1, 1)))
    [[foot, force]] = arrows_along(mech, still, ("spring",))[0]
    np.testing.assert_allclose(foot, [-1.0, 0.0, 0.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(force, [0.0, -10.0, 0.0], rtol=0, atol=1e-12)
    cast = cast_of(mech, [0.0], arrows="forces")
    assert "longest arrow: 10 N" in cast.notes
    assert chosen_arrows(mech, ["spring", "reactions"]) == ("spring", "hinge")
    with pytest.raises(ValueError, match="'sprung'"):
        chosen_arrows(mech, "sprung")


def test_small_forces_have_arrows_too():
    """Lengths go with the forces, or with their square roots where small ones could not be seen."""
    close = np.array([[[0.0, 0.0, 50.0], [100.0, 0.0, 0.0]]])
    factors, legend = arrow_scale(close, longest=0.3)
    np.testing.assert_allclose(factors, 0.3 / 100.0)
    assert legend == "longest arrow: 100 N"
    apart = np.array([[[0.0, 0.0, 1.0], [100.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [25.0, 0.0, 0.0]]])
    factors, legend = arrow_scale(apart, longest=0.3)
    drawn = np.linalg.norm(factors[..., None] * apart, axis=-1)
    np.testing.assert_allclose(drawn, [[0.03, 0.3], [0.0, 0.15]])
    assert "half as long: 25 N" in legend
    blow = np.array([[[1e5, 0.0, 0.0]], *[[[10.0, 0.0, 0.0]]] * 20])
    assert "square root" in arrow_scale(blow, 0.3)[1]
    assert arrow_scale(np.zeros((4, 2, 3)), 0.3)[1] == "no forces"


def test_the_stage_has_room_for_the_course(pendulum, swing):
    cast = cast_of(pendulum, swing)
    lowest = np.min(np.asarray(swing.q)[:, 0])
    assert lowest < 0.31 and cast.stage.floor < -0.9  # the bob hangs a metre below the hinge
    assert cast.actors[0].scene.floor > -0.1


def test_the_course_of_a_driven_motion_has_its_own_reactions():
    """With the driving efforts, points that are driven and inputs: not those of a free motion."""
    from jaxmbd.observe import Driven, Reaction, constant_speed

    mech, t = mbd.zoo.slider_crank(), np.linspace(0.0, 0.05, 13)
    course = {"O": constant_speed(40.0 * np.pi)}
    driven = Driven(course, t, {n: Reaction(n) for n in ("A", "T")}, inputs={"T": [30.0]})
    cast = cast_of(mech, driven, arrows=["A", "T"], traces=[("rod", "A")])
    track = cast.actors[0].course.track
    found = arrows_along(mech, track, ("A", "T"))[:, :, 1]
    expected = driven.trajectory(mech).curves
    for k, name in enumerate(("A", "T")):
        np.testing.assert_allclose(found[:, k], expected[name][track.row], atol=1e-9)
    free = arrows_along(mech, track._replace(experiment=None), ("A", "T"))[:, :, 1]
    assert np.max(np.abs(free - found)) > 100.0
    # A turn of 50 ms is slowed down, and its path does not depend on the frames.
    assert "50 times slower" in cast.notes and len(cast.clock) > 60
    assert cast_of(mech, driven, speed=1.0).clock[-1] < 0.06
    np.testing.assert_allclose(cast.actors[0].traces[0][:, 1:], 0.0, atol=1e-9)
