"""Parts of `benchmarks/throughput.py`: mechanisms, work, columns, other engines and targets."""
