"""Every example runs, says what it should, and draws; so does the code of README and tutorial."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from documentation import DOCS, program
from repository import ROOT

TUTORIAL = DOCS / "tutorials" / "build_your_own.md"
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))

# What each example must print: its own check of itself.
PRINTS = {
    "01_describe_and_assemble": r"181 of 181 positions assembled\n.*difference \d\.\de-1[2-9] rad",
    "02_simulate_and_plot": r"status OK.*\n.*gave (\d+\.\d{3})\d* J, the mechanism holds \1",
    "03_a_batch": r"reported ok: 0; possible but not assembled: 0\n.*\d\.\de-1[1-9] rad",
    "04_flatten_bump_steer": r"optimal[^#]*root mean square: 0\.0909° before, 0\.000\d\d° after",
    "05_a_study": r"3 of 10 chunks are stored[^#]*20000 of 20000 .*ok[^#]*the last bit: True",
    "06_beyond_one_process": r"8192 of 8192 samples ok\n.*byte for byte the same: True",
    "07_what_drives_what": r"lengths/tierod +0\.26\d +0\.266[^#]*0\.93\d before, 0\.9[89]\d after",
    "08_suspension_kinematics": r"1\.732 deg as published, 0\.34\d deg corrected",
    "09_derivatives_one_can_trust": r"0\.3 m: -154\.073 mm\n.*0\.6 m: 145\.927[^#]*6 of 6 agree",
    "10_synthesise_a_path": r"error \d.\d+e-\d\d[^#]*KKT residual \d.\de-[^#]*no defect of order, "
    "circuit, branch; the input turns fully",
    "11_identify_from_measurements": r"only .* is determined; [^#]*at most [0-2]\.\d standard",
    "12_compliance_steer": r"7292\.\d N/mm in front, 7265\.\d N/mm behind; off by \de-1[4-9]",
    "13_show_a_motion": r"13 of 13 motions are ok[^#]*28\.5 mm as published[^#]*253\.549 mm long",
    "14_learn_an_active_suspension": r"122880 steps[^#]*softer than both, and firmer .*: True",
    "15_learn_a_damper": r"before, [01]\.\d\d after[^#]*network  off by \d?\d\.\d N[^#]*curve +off",
    "16_arm_and_policy": r"cost [789]\.\d+ for unseen .*status 0[^#]*cost [56]\.\d+ .*, status 0",
    "17_differentiable_mpc": r"(\de-(0[89]|1\d) from diff[^#]*){2}before, 0\.0[23]\d N after",
    "18_fold_and_unfold": r"Bennett: -2 by Kutzbach, 1 in[^#]*Bx askew, .*: not as[^#]*moved: ok",
}

# The sixth starts processes of its own, the thirteenth draws much; the others compile much.
SLOW = (
    "04_flatten_bump_steer",
    "05_a_study",
    "06_beyond_one_process",
    "07_what_drives_what",
    "08_suspension_kinematics",
    "09_derivatives_one_can_trust",
    "10_synthesise_a_path",
    "11_identify_from_measurements",
    "12_compliance_steer",
    "13_show_a_motion",
    "14_learn_an_active_suspension",
    "15_learn_a_damper",
    "16_arm_and_policy",
    "17_differentiable_mpc",
    "18_fold_and_unfold",
)


TOGETHER = """
import contextlib, gc, io, json, runpy, sys, traceback
import small_programs
small_programs.prepare()  # this, the collector, the effort and the room as in the other tests
gc.set_threshold(100_000, 20, 20)
import jax
from jaxmbd.lanes.targets import cpu
from room_for_frames import with_room

cpu.effort = 0


def run(script, *arguments):
    said = io.StringIO()
    jax.config.update("jax_enable_x64", False)  # as in a process of its own
    sys.argv = [script, *arguments]
    with contextlib.redirect_stdout(said):
        try:
            with_room(lambda: runpy.run_path(script, run_name="__main__"))
            error = ""
        except BaseException:
            error = traceback.format_exc()
    return said.getvalue(), error


print(json.dumps({order[0]: run(*order) for order in json.loads(sys.argv[1])}))
"""


def run(scripts, folder):
    """Run scripts, [path, argument …] each, with this checkout importable; what they print.

    Importing JAX takes longer than most of them, so they share a process.
    """
    paths = [str(ROOT), str(ROOT / "tests" / "helpers"), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        "MPLBACKEND": "Agg",
        "JAX_COMPILATION_CACHE_DIR": os.environ.get(
            "JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "jax")
        ),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONIOENCODING": "utf-8",
    }
    orders = json.dumps([[str(x) for x in script] for script in scripts])
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, orders],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """(folder, {script: (what it printed, its error)}) of examples, README, first tutorial."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "readme.py").write_text("\n".join(readme_blocks()), "utf-8")
    scripts = [[folder / "readme.py"]]
    if find_spec("matplotlib"):
        (folder / "tutorial.py").write_text(program(TUTORIAL), "utf-8")
        quick = [p for p in EXAMPLES if p.stem not in SLOW]
        scripts += [[folder / "tutorial.py"], *([path, folder / path.stem] for path in quick)]
    return folder, run(scripts, folder)


def readme_blocks():
    """The README's Python code."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


def test_every_example_has_its_check():
    assert [p.stem for p in EXAMPLES] == list(PRINTS)


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem not in SLOW], ids=lambda p: p.stem)
def test_example(path, printed):
    pytest.importorskip("matplotlib")
    folder, found = printed
    check(path, folder, *found[str(path)])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_slow_example(name, tmp_path):
    pytest.importorskip("matplotlib")
    path = ROOT / "examples" / f"{name}.py"
    check(path, tmp_path, *run([[path, tmp_path / name]], tmp_path)[str(path)])


def check(path, folder, text, error):
    """An example ran to its end, printed what it must, and drew one picture."""
    assert not error, text + error
    assert re.search(PRINTS[path.stem], text), text
    pictures = list((folder / path.stem).glob("*.png"))
    assert len(pictures) == 1 and pictures[0].stat().st_size > 10_000
    assert path.stem[:2] == pictures[0].stem[:2]


def test_examples_are_short():
    """Recipes are made of functions, which tests and a benchmark call."""
    for path in EXAMPLES:
        limit = 145 if path.stem >= "15" else 120
        assert len(path.read_text("utf-8").splitlines()) <= limit, path.name


def test_the_quickstart_is_ten_lines():
    assert len([line for line in readme_blocks()[0].splitlines() if line.strip()]) <= 10


def test_the_readme_runs(printed):
    folder, found = printed
    text, error = found[str(folder / "readme.py")]
    assert not error, text + error
    said = re.findall(r"^ *#> (.+)$", "\n".join(readme_blocks()), re.MULTILINE)
    assert said
    for line in said:
        assert line in text, f"the README says {line!r}; it prints\n{text}"


def test_the_first_tutorial_runs(printed):
    """All its cells in order, as one program, which checks what the text says of its results."""
    pytest.importorskip("matplotlib")
    folder, found = printed
    text, error = found[str(folder / "tutorial.py")]
    assert not error, text + error
    assert "'pushrod' is open by" in text and "rocker at 19.95 deg" in text


def test_the_readme_links_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)]+)\)", text):
        path = ROOT / target
        assert path.exists(), target
        if path.suffix == ".png":
            assert path.stat().st_size < 200_000, target
