"""From a graph to LLVM IR."""
