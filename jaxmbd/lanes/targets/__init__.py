"""From LLVM IR to machine code that XLA calls, on CPUs and NVIDIA GPUs."""
