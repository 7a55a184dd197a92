"""Broken descriptions, broken numbers, and an independent judge of what came out."""
