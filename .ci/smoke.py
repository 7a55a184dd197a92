"""What must work in an environment into which jaxmbd was just installed; run outside the checkout.

With the name of an extra, what the extra adds is tried instead.
"""

import doctest
import importlib
import subprocess
import sys
import tempfile
from pathlib import Path

IMPORT = "import time; t = time.process_time(); import jaxmbd; print(time.process_time() - t)"
IMPORT_SECONDS = 1.5
DOCUMENTED = (
    "jaxmbd.zoo.spatial_linkages",
    "jaxmbd.dynamics.forward",
    "jaxmbd.analysis.assembly",
    "jaxmbd.analysis.simulation",
)


def bare() -> None:
    """Without extras: imports fast, computes by kernels, names what is missing."""
    seconds = min(float(run("-c", IMPORT)) for _ in range(4))
    print(f"import jaxmbd: {seconds:.2f} s of CPU")
    assert seconds < IMPORT_SECONDS, f"importing takes {seconds:.2f} s"

    import jax

    jax.config.update("jax_enable_x64", True)
    import jaxmbd as mbd

    print(f"jaxmbd {mbd.__version__} on JAX {jax.__version__}, Python {sys.version.split()[0]}")
    assert "site-packages" in mbd.__file__, mbd.__file__
    for name in DOCUMENTED:
        found = doctest.testmod(importlib.import_module(name))
        assert found.attempted and not found.failed, name
    kernels(mbd)
    runs(mbd)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rssr.json"
        mbd.save(mbd.zoo.rssr(), path)
        assert mbd.topology(mbd.load(path)) is mbd.topology(mbd.zoo.rssr())
    try:
        from jaxmbd import viz

        viz.topology_figure(mbd.zoo.rssr())
    except ImportError as error:
        assert "pip install 'jaxmbd[viz]'" in str(error), error
    else:
        raise AssertionError("matplotlib came along without the extra viz")
    assert "no trouble found" in run("-m", "jaxmbd", "check", "zoo:rssr")


def kernels(mbd) -> None:
    """A batch and its derivatives by a compiled kernel, as XLA computes them."""
    import jax
    import jax.numpy as jnp

    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q + 1e-3 * jnp.arange(33.0)[:, None]
    v = jnp.ones((33, mbd.topology(mech).nv))

    def energy(q, v):
        vdot, _ = mbd.forward_dynamics(mech, q, v, backend="xla")
        return jnp.sum(vdot**2)

    both = jax.value_and_grad(energy)
    by_kernel = jax.jit(mbd.lanes.vmap(both, strict=True))(q, v)
    by_xla = jax.jit(jax.vmap(both))(q, v)
    for a, b in zip(by_kernel, by_xla, strict=True):
        assert jnp.allclose(a, b, rtol=1e-8, atol=1e-8 * float(jnp.max(jnp.abs(b)))), abs(a - b)


def runs(mbd) -> None:
    """Runs of a closed loop, of equal and of adaptive steps, and their derivatives, as kernels.

    JAX writes loops and derivatives in other equations from release to release. Values must be
    those of XLA, and derivatives agree with each other and with differences.
    """
    import jax
    import jax.numpy as jnp

    mech = mbd.zoo.rssr()
    q, mass = mbd.assemble(mech).q, mech.bodies["rocker"].mass
    v = mbd.assemble_velocity(mech, q, {"crank": 1.0}) * jnp.linspace(1.0, 5.0, 5)[:, None]
    axes, h = (None, 0), 1e-4 * mass

    def close(found, expected, rtol):
        most = rtol * jnp.max(jnp.abs(expected))
        assert most > 0 and jnp.all(jnp.abs(found - expected) <= most), (found, expected)

    for how in ({"method": "rk4", "dt": 1e-3}, {"method": "dormand_prince", "rtol": 1e-6}):

        def speed(mass, v, how=how):
            changed = mbd.set_variables(mech, {"bodies/rocker/mass": mass})
            run = mbd.simulate(changed, q, v, t1=0.02, throw=False, backend="xla", **how)
            return run.v[-1, 0]

        speeds = jax.jit(mbd.lanes.vmap(speed, axes, strict=True))
        close(speeds(mass, v), jax.jit(jax.vmap(speed, axes))(mass, v), 1e-10)
        rates = jax.jit(jax.jacfwd(speeds))(mass, v)
        close(rates, (speeds(mass + h, v) - speeds(mass - h, v)) / (2 * h), 1e-5)
        close(jax.jit(jax.jacrev(speeds))(mass, v), rates, 1e-8)
        if how["method"] == "rk4":  # by JAX's own reverse mode; of adaptive steps it takes long
            inside = mbd.lanes.vmap(jax.grad(speed), axes, strict=True)
            close(jax.jit(inside)(mass, v), rates, 1e-8)


def demo() -> None:
    """The demonstration, with few samples."""
    with tempfile.TemporaryDirectory() as folder:
        print(run("-m", "jaxmbd", "demo", "--quick", "--out", folder))
        assert list(Path(folder).rglob("*.png")), "no figure"


def run(*arguments: str) -> str:
    """What another process of this Python prints."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    demo() if sys.argv[1:] == ["demo"] else bare()
