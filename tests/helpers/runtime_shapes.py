"""The shapes in jaxmbd's annotations, held to at run time.

jaxtyping's import hook checks arguments and results of every function in the packages that
annotate shapes; `lanes` has protocols that beartype cannot check.
"""

from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

PACKAGES = ("jaxmbd.formulations", "jaxmbd.numerics", "jaxmbd.spatial", "jaxmbd.zoo")
# As type checkers do, an int is taken for a float.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check() -> None:
    """To be called before jaxmbd is imported."""
    install_import_hook(PACKAGES, "runtime_shapes.checked")
