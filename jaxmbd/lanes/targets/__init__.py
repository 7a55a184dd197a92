"""From LLVM IR to code that XLA calls: host processors and NVIDIA GPUs."""
