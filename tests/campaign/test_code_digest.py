"""Programs that call back to Python are known by their code and what it encloses."""

import os
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest

from jaxmbd.campaign import Input, StoreDiffers, Study
from jaxmbd.sampling import Normal

CALLED_BACK = """
import jax, numpy as np
from functools import partial
from jaxmbd.campaign.identity import code_digest

GAIN, TABLE = 2.0, {"a": np.arange(3.0), "b": (1, {"x", "y", "z"})}

def host(x):
    return np.asarray(GAIN * x + TABLE["a"].sum())

def model(shift, sample):
    shape = jax.ShapeDtypeStruct((), float)
    return {"y": shift + jax.pure_callback(host, shape, sample["x"])}

first = code_digest(partial(model, 1.0))
print(first)
changed = [code_digest(partial(model, 2.0))]
TABLE["a"][1] += 1e-12
changed.append(code_digest(partial(model, 1.0)))
TABLE["a"] = np.arange(3.0)
assert code_digest(partial(model, 1.0)) == first
GAIN = 2.5
changed.append(code_digest(partial(model, 1.0)))
assert len({first, *changed}) == 4
"""


def test_programs_that_call_back_are_known_by_their_code_and_what_it_encloses():
    """The same in every process; another for another global, table or argument."""
    digests = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu"}
        run = [sys.executable, "-c", CALLED_BACK]
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
        digests.append(done.stdout)
    assert digests[0] == digests[1] and digests[0].startswith("code ")


def test_a_changed_closure_that_is_called_back_is_another_study(tmp_path):
    def study(gain):
        def model(sample):
            shape = jax.ShapeDtypeStruct((), float)
            return {
                "y": jax.pure_callback(
                    lambda x: np.asarray(gain * x), shape, sample["x"], vmap_method="sequential"
                )
            }

        return Study(model, {"x": Input(Normal(0.1), nominal=1.0)}, samples=3)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that lanes cannot compile it
        study(1.0).run(tmp_path / "s.zarr", progress=False)
        study(1.0).run(tmp_path / "s.zarr", progress=False)
        with pytest.raises(StoreDiffers, match="study/program"):
            study(2.0).run(tmp_path / "s.zarr", progress=False)
