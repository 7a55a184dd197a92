"""Campaigns: many variants of one mechanism, their spread, and results files."""

from jaxmbd.campaign.extras import optional
from jaxmbd.campaign.monte_carlo import Normal, Spread, Uniform, draw, evaluate, spread
from jaxmbd.campaign.progress import progress_bar
from jaxmbd.campaign.results import Results, Variable, load_results
from jaxmbd.campaign.suspension_corner import CornerStudy, corner, corner_outputs, run_corner
from jaxmbd.campaign.table import shown, spread_table, status_line

__all__ = [
    "CornerStudy",
    "Normal",
    "Results",
    "Spread",
    "Uniform",
    "Variable",
    "corner",
    "corner_outputs",
    "draw",
    "evaluate",
    "load_results",
    "optional",
    "progress_bar",
    "run_corner",
    "shown",
    "spread",
    "spread_table",
    "status_line",
]
