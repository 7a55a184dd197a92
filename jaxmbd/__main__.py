"""``python -m jaxmbd``: the same as the command ``jaxmbd``."""

from jaxmbd.cli import command

if __name__ == "__main__":
    command()
