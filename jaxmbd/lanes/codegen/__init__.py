"""Code generation: from a graph to LLVM IR."""
