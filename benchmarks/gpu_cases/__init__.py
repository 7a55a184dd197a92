"""What `benchmarks/gpu.py` runs."""
