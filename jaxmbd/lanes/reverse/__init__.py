"""Reverse mode on the graph."""
