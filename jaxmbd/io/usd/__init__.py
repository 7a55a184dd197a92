"""Stages of USD (UsdPhysics) as mechanisms, with nothing dropped in silence."""
