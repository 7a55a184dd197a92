"""`jaxmbd.torch` in `torch.compile`: one graph, the same bits, nothing compiled twice or kept."""

import gc
import weakref
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own imports
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

whole = partial(torch.compile, backend="aot_eager", fullgraph=True)


def waves(x, by=1.0):
    return {"y": jnp.sin(x) * x * by, "sums": (jnp.sum(x**2), jnp.arange(x.shape[0]))}


def grid(size=3, requires_grad=True):
    return torch.linspace(0.1, 1, size, dtype=torch.float64, requires_grad=requires_grad)


def model_of(f):
    """PyTorch before, between and after two calls."""

    def model(x):
        first = f(torch.cos(x) * 2)
        return (f(first["y"] + x)["y"].square() * first["sums"][0]).sum() + first["sums"][1][-1]

    return model


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_one_graph_has_values_and_gradients_of_eager_calls(backend):
    model = model_of(mbd.torch.wrap(waves))
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    x = grid()
    for _ in range(2):
        found, expected = compiled(x), model(x)
        slopes = [torch.autograd.grad(y, x)[0] for y in (found, expected)]
        close = torch.testing.assert_close if backend == "inductor" else _equal  # its own cosines
        close(found, expected)
        close(*slopes)
    assert counter.frame_count == 1


def _equal(found, expected):
    assert torch.equal(found, expected)


TRANSFORMS = {
    "gradient": torch.func.grad,
    "tangent": lambda f: lambda x: torch.func.jvp(f, (x,), (x.cos(),))[1],
    "hessian": torch.func.hessian,
    "batch": torch.func.vmap,
    "gradients of a batch": lambda f: torch.func.vmap(torch.func.grad(f)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_within_a_graph(name):
    """An operator that had a gradient alone would give tangents of zero."""
    made = TRANSFORMS[name](model_of(mbd.torch.wrap(waves)))
    x = grid(6, requires_grad=False)
    x = x.reshape(2, 3) if "batch" in name else x
    expected = made(x)
    assert expected.abs().max() > 0.1
    assert torch.equal(whole(made)(x), expected)


class Driven(torch.nn.Module):
    """The energy of a four-bar where a network puts it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        mech = mbd.zoo.four_bar()
        self.traces = []

        def energies(mech, qs):
            self.traces.append(qs.shape)
            return lanes.vmap(mbd.potential_energy, in_axes=(None, 0))(mech, qs)

        self.register_buffer("q", torch.tensor(np.asarray(mbd.neutral(mech))))
        self.policy = torch.nn.Linear(2, len(self.q)).double()
        paths = ["points/B/x", "bodies/coupler/mass"]
        self.energies = mbd.torch.MechanismModule(mech, paths, energies)

    def forward(self, x):
        return self.energies(self.q + 0.1 * torch.tanh(self.policy(x)))


def test_training_a_module_compiles_once_to_the_same_bits():
    states = []
    for compiled in (False, True):
        module = Driven()
        counter = CompileCounterWithBackend("aot_eager")
        run = torch.compile(module, backend=counter, fullgraph=True) if compiled else module
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
        for k in range(4):
            optimizer.zero_grad()
            x = torch.linspace(k, k + 1, 10, dtype=torch.float64).reshape(5, 2)
            run(x).square().sum().backward()
            optimizer.step()
            if k == 0:
                first = len(module.traces)
        assert counter.frame_count == compiled and len(module.traces) == first
        states.append(module.state_dict())
    eager, traced = states
    assert all(torch.equal(eager[name], traced[name]) for name in eager)
    assert not torch.equal(
        eager["energies.points/B/x"], Driven().state_dict()["energies.points/B/x"]
    )


def test_a_batch_of_any_size_is_one_graph_more():
    """JAX traces the function with an open size; where it cannot, a graph is of one size."""
    counts = {}
    for name, fn in {"open": jnp.sin, "halved": lambda x: x[: x.shape[0] // 2]}.items():
        counter = CompileCounterWithBackend("aot_eager")
        f = mbd.torch.wrap(fn)
        compiled = torch.compile(lambda x, f=f: f(x * 2) * 3, backend=counter, fullgraph=True)
        for size in (3, 4, 5):
            x = grid(size)
            found, expected = compiled(x), f(x * 2) * 3
            assert torch.equal(found, expected)
            assert torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (found, expected)))
        counts[name] = counter.frame_count
    assert counts == {"open": 2, "halved": 3}


def test_numbers_are_constants_of_a_graph():
    f = mbd.torch.wrap(lambda x, by: (x * by, jnp.copysign(1.0, by)))
    compiled = whole(lambda x, by: f(x, by=by))
    x = torch.ones(2, dtype=torch.int32)
    for by in (1.0, 1, True):
        for found, expected in zip(compiled(x, by), f(x, by=by), strict=True):
            assert found.dtype == expected.dtype and torch.equal(found, expected)


def test_what_a_graph_cannot_hold_breaks_it_and_is_right():
    mech = mbd.zoo.four_bar()
    q = torch.tensor(np.asarray(mbd.neutral(mech)), requires_grad=True)
    energy = mbd.torch.wrap(mbd.potential_energy)
    broken = torch.compile(lambda q: energy(mech, q * 2), backend="aot_eager")
    assert torch.equal(broken(q), energy(mech, q * 2))
    with pytest.raises(Exception, match="input of type <Mechanism>"):
        whole(lambda q: energy(mech, q * 2))(q)
    keyed = mbd.torch.wrap(lambda x: (x, None, jax.random.key(0)))
    with pytest.warns(UserWarning, match="breaks its graph at .*: a result is a random key"):
        assert torch.equal(torch.compile(lambda x: keyed(x), backend="aot_eager")(q)[0], q)
    nothing = mbd.torch.wrap(lambda x: (x, None))
    with (
        pytest.warns(UserWarning, match="cannot hold such results: NoneType"),
        pytest.raises(Exception, match="Unsupported output"),
    ):
        whole(lambda x: nothing(x))(q)
    with (
        pytest.warns(UserWarning, match=r"argument \[0\] is torch.complex128"),
        pytest.raises(TypeError, match="complex128"),
    ):
        torch.compile(lambda x: nothing(x), backend="aot_eager")(q + 0j)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("eager", marks=pytest.mark.slow)])
def test_functions_that_are_dropped_leave_nothing(backend):
    from jaxmbd.torch import compiled, programs

    def dropped():
        def fn(x):
            return jnp.sin(x)

        f = mbd.torch.wrap(fn)
        run = torch.compile(lambda x: f(x).sum(), backend=backend, fullgraph=True)
        run(grid()).backward()
        return weakref.ref(fn)

    gc.collect()
    before = len(programs.CALLS), len(compiled._KERNELS)
    fns = [dropped() for _ in range(2)]
    gc.collect()
    assert [fn() for fn in fns] == [None] * 2
    assert (len(programs.CALLS), len(compiled._KERNELS)) == before


def test_an_exported_graph_needs_its_function():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.f = mbd.torch.wrap(jnp.sin)

        def forward(self, x):
            return self.f(x) + 1

    x = grid(requires_grad=False)
    module = Module()
    exported = torch.export.export(module, (x,)).module()
    assert torch.equal(exported(x), module(x))
    del module
    gc.collect()
    with pytest.raises(RuntimeError, match="as long as the function .* is kept"):
        exported(x)
