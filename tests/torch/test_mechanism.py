"""`jaxmbd.torch.MechanismModule`: numbers of a mechanism as parameters that PyTorch trains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

torch = pytest.importorskip("torch")

PATHS = ["points/B/x", "bodies/coupler/mass", "points/C_coupler"]


def energy(mech, q, by=1.0):
    return by * mbd.potential_energy(mech, q)


@pytest.fixture(scope="module")
def four_bar():
    mech = mbd.zoo.four_bar()
    return mech, np.asarray(mbd.assemble(mech, {"A": 0.3}).q)


def test_parameters_are_the_numbers_at_their_paths(four_bar):
    mech, q = four_bar
    module = mbd.torch.MechanismModule(mech, PATHS, energy)
    parameters = module.variables()
    values = mbd.get_variables(mech, PATHS)
    assert list(parameters) == PATHS == list(dict(module.named_parameters()))
    for path, x in parameters.items():
        assert x.dtype == torch.float64 and x.requires_grad
        np.testing.assert_array_equal(x.detach(), values[path])
    (2 * module(q)).backward()
    expected = jax.grad(lambda x: energy(mbd.set_variables(mech, x), q, 2.0))(values)
    for path, x in parameters.items():
        np.testing.assert_allclose(x.grad, expected[path], rtol=1e-12, atol=1e-12)
    assert abs(expected["bodies/coupler/mass"]) > 1


def test_the_mechanism_follows_the_parameters(four_bar):
    mech, q = four_bar
    module = mbd.torch.MechanismModule(mech, PATHS, energy)
    with torch.no_grad():
        module.variables()["bodies/coupler/mass"].mul_(2.0)
    kept = module.mechanism()
    assert kept.bodies["coupler"].mass == 2 * mech.bodies["coupler"].mass
    assert abs(module(q).item() - float(energy(kept, q))) < 1e-12
    with torch.no_grad():
        module.variables()["bodies/coupler/mass"].mul_(-1.0)
    assert kept.bodies["coupler"].mass > 0
    with pytest.raises(ValueError, match="coupler"):
        module.mechanism()


def test_a_state_is_saved_and_read(four_bar):
    mech, q = four_bar
    one, two = (mbd.torch.MechanismModule(mech, PATHS, energy) for _ in range(2))
    with torch.no_grad():
        one.variables()["points/B/x"].add_(0.01)
    two.load_state_dict(one.state_dict())
    assert two(q).item() == one(q).item() != float(energy(mech, q))


def test_designs_side_by_side(four_bar):
    """Copies of the parameters, one for each design, by `torch.func`."""
    mech, q = four_bar
    module = mbd.torch.MechanismModule(mech, PATHS[:2], energy)
    stacked = {n: torch.stack([x.detach(), 1.1 * x.detach()]) for n, x in module.named_parameters()}
    call = torch.func.vmap(lambda x: torch.func.functional_call(module, x, (q,)))
    each = [
        float(energy(mbd.set_variables(mech, {n: x[k].item() for n, x in stacked.items()}), q))
        for k in range(2)
    ]
    np.testing.assert_allclose(call(stacked), each, rtol=1e-12)


def test_paths_with_dots_and_wrong_paths(four_bar):
    mech = mbd.Mechanism(
        bodies={"bob": mbd.Body(mass=1.0, com=(1.0, 0, 0))},
        joints={"pin": mbd.Revolute("ground", "bob", at=(0, 0, 0), axis=(0, 1, 0))},
    )
    module = mbd.torch.MechanismModule(mech, ["points/pin.at/z"], lambda m: m.points["pin.at"][2])
    assert list(module.state_dict()) == ["points/pin:at/z"]
    assert list(module.variables()) == ["points/pin.at/z"]
    module().backward()
    assert module.variables()["points/pin.at/z"].grad == 1
    with pytest.raises(ValueError, match="did you mean 'bodies/coupler/mass'"):
        mbd.torch.MechanismModule(four_bar[0], ["bodies/coupler/mas"], energy)


def test_training_finds_a_hardpoint_and_compiles_once(four_bar):
    mech, q = four_bar
    traces = []

    def height(mech, qs):
        traces.append(1)
        return jax.vmap(lambda q: mbd.point_position(mech, q, "coupler", "C_coupler")[2])(qs)

    qs = np.asarray(q) + np.linspace(0, 1, 5)[:, None]
    target = torch.from_dlpack(
        height(mbd.set_variables(mech, {"points/C_coupler/x": 0.85}), jnp.asarray(qs))
    )
    module = mbd.torch.MechanismModule(mech, ["points/C_coupler/x"], height)
    optimizer = torch.optim.LBFGS(module.parameters(), line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = (module(qs) - target).square().sum()
        value.backward()
        return value

    traces.clear()
    for _ in range(3):
        optimizer.step(loss)
    assert abs(module.variables()["points/C_coupler/x"].item() - 0.85) < 1e-7
    assert len(traces) == 2  # values and gradient
