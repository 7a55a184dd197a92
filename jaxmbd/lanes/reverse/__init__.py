"""Reverse-mode differentiation on the graph."""
