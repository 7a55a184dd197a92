"""Tables in the documentation are those of the committed results."""

import json

import accuracy_table
import design_table
import environments_table
import equal_errors_table
import gpu_bounds
import gpu_table
import integration_table
import learning_table
import pytest
import readme_table
import redundancy_table
import scale_table
import studies_table
import throughput_table

SCRIPTS = (
    accuracy_table,
    design_table,
    environments_table,
    equal_errors_table,
    gpu_bounds,
    gpu_table,
    integration_table,
    learning_table,
    readme_table,
    redundancy_table,
    scale_table,
    studies_table,
    throughput_table,
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_page_has_the_committed_results(script):
    text = script.PAGE.read_text("utf-8")
    several = hasattr(script, "results")
    found = script.results() if several else json.loads(script.RESULTS.read_text("utf-8"))
    assert script.filled(text, found) == text
