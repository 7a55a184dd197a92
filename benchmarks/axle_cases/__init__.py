"""Parts of the benchmark of axles."""
