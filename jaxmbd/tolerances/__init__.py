"""Tolerances: scatter of the parts as built, or of the design that all parts are made to fit."""

from jaxmbd.tolerances.scatter import shared, split

__all__ = ["shared", "split"]
