"""Memory allocated by the CPU driver: sizes are aligned, failures are handled, all is freed."""

import ctypes
from ctypes import CFUNCTYPE, c_int32, c_int64, c_size_t, c_void_p

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulation import frame
from jax import lax

from jaxmbd import lanes
from jaxmbd.lanes.targets import cpu, cpu_driver
from jaxmbd.lanes.targets.ffi import EXHAUSTED, INTERNAL

ERROR, ALIGNMENT, WIDTH = 0xE0, 64, 4


class Host:
    """A C library and an XLA with two threads that record the calls made to them.

    Attributes:
        refuse: index of the allocation that fails.
        asked: requested sizes [bytes].
        held: blocks not yet freed.
        scratch: scratch pointers passed to the kernel.
        message, code: of the error that the driver created.
    """

    def __init__(self, refuse: int = -1):
        self.refuse, self.asked, self.held, self.scratch = refuse, [], {}, []
        self.message, self.code = b"", 0

    def allocate(self, alignment: int, size: int) -> int:
        assert alignment == ALIGNMENT
        self.asked.append(size)
        if len(self.asked) - 1 == self.refuse or size % alignment:
            return 0
        block = ctypes.create_string_buffer(size + alignment)
        address = -(-ctypes.addressof(block) // alignment) * alignment
        self.held[address] = block
        return address

    def free(self, address: int | None) -> None:
        if address:
            del self.held[address]

    def kernel(self, inputs: int, outputs: int, first: int, last: int, scratch: int | None):
        """Doubles rows of three numbers, and writes a mark to its scratch."""
        assert scratch and scratch % ALIGNMENT == 0
        self.scratch.append(scratch)
        c_int64.from_address(scratch).value = first
        x, y = (c_void_p.from_address(p).value for p in (inputs, outputs))
        first = min(first, last - WIDTH)
        rows = ctypes.c_double * (3 * (last - first))
        at = first * 3 * 8
        y_rows = np.frombuffer(rows.from_address(y + at))
        y_rows[:] = 2.0 * np.frombuffer(rows.from_address(x + at))

    def api(self):
        """XLA's functions: errors, a thread pool."""

        def create(args):
            self.message = ctypes.string_at(c_void_p.from_address(args + 16).value)
            self.code = c_int32.from_address(args + 24).value
            return ERROR

        def schedule(args):
            task, job = (c_void_p.from_address(args + k).value for k in (24, 32))
            CFUNCTYPE(None, c_void_p)(task)(job)
            return 0

        def threads(args):
            c_int64.from_address(c_void_p.from_address(args + 24).value).value = 2
            return 0

        one = CFUNCTYPE(c_void_p, c_void_p)
        self.functions = {48: one(create), 136: one(schedule), 144: one(threads)}
        table = (c_int64 * 24)()
        for offset, function in self.functions.items():
            table[offset // 8] = ctypes.cast(function, c_void_p).value
        return table

    def drive(self, batch: int, scratch: int = 24) -> tuple[int | None, np.ndarray, np.ndarray]:
        """Run the kernel over a batch; returns the driver's return value, arguments, results."""
        kept = [
            CFUNCTYPE(c_void_p, c_size_t, c_size_t)(self.allocate),
            CFUNCTYPE(None, c_void_p)(self.free),
            CFUNCTYPE(None, c_void_p, c_void_p, c_int64, c_int64, c_void_p)(self.kernel),
        ]
        addresses = [ctypes.cast(f, c_void_p).value for f in kept]
        symbols = dict(zip(("test_allocate", "test_free"), addresses, strict=False))
        text = cpu_driver.module(cpu.abi_minor())
        text = text.replace("@aligned_alloc(", "@test_allocate(").replace("@free(", "@test_free(")
        (address,) = cpu.link(cpu.compile_object(text), ["lanes_drive"], symbols)
        numbers = cpu_driver.table(WIDTH, 1, 1, scratch, 2, 0)
        table = (c_int64 * len(numbers))(*numbers)
        x, y = np.arange(3.0 * batch).reshape(batch, 3), np.zeros((batch, 3))
        at = frame(self, [(x, x.shape)], [(y, y.shape)], kept)
        call = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)
        return call(address)(at, addresses[2], ctypes.addressof(table)), x, y


@pytest.mark.parametrize("batch", [4, 8, 37])
def test_sizes_are_whole_multiples_and_all_is_given_back(batch):
    host = Host()
    error, x, y = host.drive(batch)
    assert error is None and not host.held
    np.testing.assert_array_equal(y, 2.0 * x)
    assert host.asked and all(size and size % ALIGNMENT == 0 for size in host.asked)


@pytest.mark.parametrize("refuse", [0, 1])
def test_refused_memory_is_xlas_error(refuse):
    """The first allocation is for the job, the second for a thread's scratch."""
    host = Host(refuse)
    error, _, _ = host.drive(37)
    assert error == ERROR and host.message == b"lanes: the host has no memory for a kernel"
    assert host.code == EXHAUSTED and not host.held


def test_a_batch_smaller_than_a_vector_is_refused():
    host = Host()
    error, _, y = host.drive(WIDTH - 1)
    assert error == ERROR and host.code == INTERNAL and not host.asked and not y.any()


def test_a_call_that_needs_too_much_memory_raises():
    """A cumulative sum with 2⁴⁴ elements: more than any address space."""

    def fn(x):
        def step(c, _):
            return c + x, c

        return jnp.sum(lax.scan(step, x, None, length=2**44)[1])

    with pytest.raises(jax.errors.JaxRuntimeError, match="the host has no memory for a kernel"):
        jax.block_until_ready(lanes.vmap(fn)(jnp.ones(3)))
