"""Parts of `benchmarks/integration.py`: one module for each kind of evidence."""
