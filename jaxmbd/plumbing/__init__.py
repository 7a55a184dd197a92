"""What any Python package needs: imports on use, names in messages, warnings."""

from jaxmbd.plumbing.imports import import_aside, on_use, optional, require
from jaxmbd.plumbing.names import closest, listed, meant, near
from jaxmbd.plumbing.user_warning import warn_user
