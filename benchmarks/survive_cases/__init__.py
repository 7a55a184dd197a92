"""Parts of `survive.py`."""
