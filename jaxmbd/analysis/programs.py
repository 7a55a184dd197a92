"""What the functions that a user calls have in common: each is one compiled program."""

from jaxmbd.lanes import compiled, host_jit

program = host_jit(compiled)
"""``program(backend, fn, *args)`` is ``fn(*args)``, compiled once by a backend ("auto", "lanes" or
"xla") for arguments of the same shapes; leaves that are no arrays are static."""
