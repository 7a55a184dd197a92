"""The design problem of `benchmarks/design.py`, and those who solve it."""
