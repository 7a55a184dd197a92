"""Broken descriptions, broken numbers, and an independent check of the results."""
