"""Settings of the documentation, which `make docs` builds."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import jaxmbd  # noqa: E402

# Errors that pages show are one line, without the frames that they passed.
os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="jaxmbd-docs-")
profile = Path(os.environ["IPYTHONDIR"]) / "profile_default"
profile.mkdir()
(profile / "ipython_config.py").write_text('c.InteractiveShell.xmode = "Minimal"\n')

project = "jaxmbd"
author = "the jaxmbd contributors"
copyright = author
version = release = jaxmbd.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas need no network
    "sphinx_copybutton",
    "sphinx_design",
    "public_api",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

# Every notebook runs in every build, in a folder of its own for what it writes.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
nb_execution_show_tb = True

default_role = "literal"  # docstrings write `name`
nitpicky = True
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"jaxmbd {version}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
