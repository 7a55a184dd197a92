"""Kernels for GPUs with more arguments than PTX versions before 8.1 have room for."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulation import Machine, run

from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import ptx

COUNT = 620  # and two results, 8 bytes each: PTX before 8.1 has 4352 bytes
SIZE = 40


def first_and_sum(*xs):
    return xs[0], jnp.stack(xs).sum()


@pytest.fixture(scope="module")
def many():
    """A kernel of many arguments, every second of which has a batch axis."""
    flags = tuple(k % 2 == 0 for k in range(COUNT))
    return Kernel(jax.make_jaxpr(first_and_sum)(*[0.0] * COUNT), flags)


def test_a_launch_hands_all_of_them_over(many):
    rng = np.random.default_rng(8)
    args = [rng.normal(size=SIZE if b else ()) for b in many.batched]
    first, total = run(many, args, Machine())
    np.testing.assert_array_equal(first, args[0])
    np.testing.assert_allclose(total, sum(np.broadcast_to(x, SIZE) for x in args), atol=1e-11)


@pytest.mark.skipif(ptx.assembler() is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_their_code_assembles(many, arch):
    text = ptx.generate(many.emitter(1, gpu=True).module(), arch)
    assert ptx.assemble(text, arch).startswith(b"\x7fELF")


@pytest.mark.parametrize("number", ptx.KNOWN)
def test_every_target_has_a_version_with_room(many, number):
    text = ptx.generate(many.emitter(1, gpu=True).module(), f"sm_{number}")
    ((major, minor),) = re.findall(r"^\.version (\d+)\.(\d+)", text, re.MULTILINE)
    assert (int(major), int(minor)) >= (8, 1)
