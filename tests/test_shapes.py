"""The shapes in annotations are checked while the tests run (`runtime_shapes`)."""

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError
from repository import ROOT
from runtime_shapes import PACKAGES

from jaxmbd.formulations import absolute_forward_dynamics
from jaxmbd.numerics.factorisations import ltdl_solve
from jaxmbd.spatial.rotations import skew
from jaxmbd.zoo import simple_pendulum
from jaxmbd.zoo.drawing import camber_angle


@pytest.mark.parametrize(
    "call",
    [
        lambda: skew(jnp.zeros(4)),
        lambda: jax.jit(skew)(jnp.zeros((1, 3))),
        lambda: ltdl_solve(jnp.eye(3), jnp.ones(2)),
        lambda: ltdl_solve(jnp.ones((3, 2)), jnp.ones(3)),
        lambda: camber_angle(jnp.ones((5, 4))),
        lambda: absolute_forward_dynamics(simple_pendulum(), [0.0], jnp.zeros(1)),
    ],
    ids=["length", "traced", "two axes", "not square", "batch", "no array"],
)
def test_a_wrong_shape_raises(call):
    with pytest.raises(TypeCheckError):
        call()


def test_right_shapes_pass():
    assert skew(jnp.ones(3)).shape == (3, 3)
    assert camber_angle(jnp.ones((5, 3))).shape == (5,)


def test_every_package_with_shapes_is_checked():
    annotated = {
        f"jaxmbd.{path.relative_to(ROOT / 'jaxmbd').parts[0]}"
        for path in (ROOT / "jaxmbd").rglob("*.py")
        if "from jaxtyping import" in path.read_text(encoding="utf8")
    }
    assert annotated == set(PACKAGES)
