"""Cases of `benchmarks/integration.py` that measure more than work and precision."""
