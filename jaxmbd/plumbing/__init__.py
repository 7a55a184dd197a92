"""What any Python package needs: imports on use, texts for people, warnings."""

from jaxmbd.plumbing.imports import on_use, optional
from jaxmbd.plumbing.texts import (
    hint,
    listed,
    meant,
    near,
    outline,
    plain,
    refuse,
    text_table,
    unknown,
    warn_user,
)
