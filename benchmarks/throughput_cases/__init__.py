"""What `benchmarks/throughput.py` is made of: mechanisms, work, columns, peers and targets."""
