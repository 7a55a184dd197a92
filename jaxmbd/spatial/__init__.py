"""Rotations and small factorisations: pure functions of arrays, with no mechanism in sight."""
