"""The README's figures of studies are those of the committed results."""

import studies_table
from repository import ROOT


def test_the_readme_has_the_committed_results():
    text = (ROOT / "README.md").read_text("utf-8")
    assert studies_table.filled(text, studies_table.results()) == text
