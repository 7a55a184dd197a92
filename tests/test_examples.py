"""Every example runs, says what it should, and draws; the README's code runs as it stands."""

import os
import re
import subprocess
import sys

import pytest
from repository import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))

# What each example must print: its own check of itself.
PRINTS = {
    "01_describe_and_assemble": r"181 of 181 positions assembled\n.*difference \d\.\de-1[2-9] rad",
    "02_simulate_and_plot": r"status OK.*\n.*gave (\d+\.\d{3})\d* J, the mechanism holds \1",
    "03_a_batch": r"reported ok: 0; possible but not assembled: 0\n.*\d\.\de-1[1-9] rad",
    "04_flatten_bump_steer": r"root mean square: 0\.0909° before, 0\.00\d\d° after",
}


def run(arguments, folder):
    """Run Python in `folder` with this checkout importable; its output."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        "MPLBACKEND": "Agg",
        "JAX_COMPILATION_CACHE_DIR": os.environ.get(
            "JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "jax")
        ),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def readme_blocks():
    """The README's Python code."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


def test_every_example_has_its_check():
    assert [p.stem for p in EXAMPLES] == list(PRINTS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    pytest.importorskip("matplotlib")
    text = run([path, tmp_path / "out"], tmp_path)
    assert re.search(PRINTS[path.stem], text), text
    pictures = list((tmp_path / "out").glob("*.png"))
    assert len(pictures) == 1 and pictures[0].stat().st_size > 10_000
    assert path.stem[:2] == pictures[0].stem[:2]


def test_examples_are_short():
    for path in EXAMPLES:
        assert len(path.read_text("utf-8").splitlines()) <= 120, path.name


def test_the_quickstart_is_ten_lines():
    assert len([line for line in readme_blocks()[0].splitlines() if line.strip()]) <= 10


def test_the_readme_runs(tmp_path):
    """All blocks in order, as one program: later ones use the names of earlier ones."""
    script = tmp_path / "readme.py"
    blocks = readme_blocks()
    assert len(blocks) >= 5
    script.write_text("\n".join(blocks), "utf-8")
    text = run([script], tmp_path)
    said = re.findall(r"^ *#> (.+)$", "\n".join(blocks), re.MULTILINE)
    assert len(said) >= 8
    for line in said:
        assert line in text, f"the README says {line!r}; it prints\n{text}"


def test_the_readme_links_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)]+)\)", text):
        path = ROOT / target
        assert path.exists(), target
        if path.suffix == ".png":
            assert path.stat().st_size < 200_000, target
