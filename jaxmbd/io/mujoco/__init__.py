"""Models of MuJoCo: read by its own compiler, as mechanisms with nothing dropped in silence."""
