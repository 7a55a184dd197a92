"""Memory layout that kernels and their callers agree on."""

from __future__ import annotations

BYTES = {
    "f64": 8, "f32": 4, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8,
}  # fmt: skip
"""Bytes of one element of a type in an argument or a result."""
SLOT = 8
"""Bytes of one element of scratch in one lane, for every type."""
WARP = 32
"""GPU threads whose scratch is interleaved, like that of a vector's lanes on the host."""
