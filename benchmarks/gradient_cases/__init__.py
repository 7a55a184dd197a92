"""Designs at places where derivatives are delicate, and what is differentiated there."""
