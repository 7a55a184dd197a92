"""Imported models against the engines whose formats they are in."""
