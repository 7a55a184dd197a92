"""Scenes in a viser server: where their nodes are, and what the camera sees."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbd as mbd
from jaxmbd.viz import Scene, ViserScene, set_stage, viser_server

pytest.importorskip("viser")


@pytest.fixture(scope="module")
def server():
    with viser_server(port=8300) as found:
        assert found.get_host() == "127.0.0.1"
        yield found


def test_nodes_are_where_the_points_of_their_bodies_are(server):
    mech = mbd.zoo.rssr()
    scene = Scene.of(mech)
    shown = ViserScene(server.scene, scene)
    q = mbd.assemble(mech, {"crank": 0.5}).q
    shown.update(q)
    assert shown.visible
    for solid, node in zip(scene.solids, shown.nodes, strict=False):
        frame = shown._frames[solid.body]
        turn = Rotation.from_quat(frame.wxyz, scalar_first=True)
        x = solid.mesh.vertices[0]
        np.testing.assert_array_equal(node.vertices[0], np.float32(x))
        placed = turn.apply(x) + frame.position
        expected = x if solid.body == "ground" else mbd.point_position(mech, q, solid.body, x)
        np.testing.assert_allclose(placed, expected, rtol=0, atol=1e-12)
    shown.update(np.full(len(q), np.nan))
    assert not shown.visible
    shown.remove()


def test_the_camera_sees_the_whole_scene(server):
    scene = Scene.of(mbd.zoo.double_parallel_crank())
    set_stage(server, scene)
    first = server.initial_camera
    back = np.asarray(first.position) - np.asarray(first.look_at)
    every = np.concatenate([x.mesh.vertices for x in scene.solids]) - first.position
    depth = -every @ (back / np.linalg.norm(back))
    away = np.linalg.norm(every, axis=1)
    assert np.all(depth > first.near)
    # A picture is 1.5 times as wide as it is high; corners are farther still.
    corner = np.hypot(1.5, 1.0) * np.tan(0.5 * first.fov)
    assert np.all(np.sqrt(away**2 - depth**2) < corner * depth)
