"""Environments that `environments.py` measures, their gradients and their peers."""
