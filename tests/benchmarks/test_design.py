"""The README's figures of design are those of the committed results."""

import design_table
from repository import ROOT


def test_the_readme_has_the_committed_results():
    text = (ROOT / "README.md").read_text("utf-8")
    assert design_table.filled(text, design_table.results()) == text
