"""Without PyTorch the package is there, and says what is missing when a name of it is used."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules["torch"] = None
import jaxmbd
assert jaxmbd.torch.__all__ == ["MechanismModule", "wrap"]
try:
    jaxmbd.torch.{}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["wrap", "MechanismModule"])
def test_what_is_missing_is_named_with_its_cure(name):
    run = [sys.executable, "-c", WITHOUT.format(name)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "jaxmbd.torch needs torch" in done.stdout
    assert "pip install 'jaxmbd[torch]'" in done.stdout


def test_pytorch_is_imported_on_use():
    program = "import sys, jaxmbd; jaxmbd.torch; print('torch' in sys.modules)"
    run = [sys.executable, "-c", program]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "False\n"
