"""One module for each kind of reference file; see `benchmarks/accuracy.py`."""
