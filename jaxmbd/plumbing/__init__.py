"""What any Python package needs: imports on use, names in messages, warnings."""

from jaxmbd.plumbing.imports import import_aside, on_use, optional, require
from jaxmbd.plumbing.messages import closest, listed, meant, near, warn_user
