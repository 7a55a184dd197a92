"""Mechanisms as robot descriptions: MJCF and URDF."""
