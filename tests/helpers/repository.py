"""Paths in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
REFERENCES = DATA / "groundtruth"  # results of other people's software, and of the literature
