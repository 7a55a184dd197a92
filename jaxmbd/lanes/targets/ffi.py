"""LLVM IR common to XLA FFI handlers on all targets."""

from __future__ import annotations

_CALL_FRAME = """
  %ext.p = getelementptr i8, ptr %frame, i64 8
  %ext = load ptr, ptr %ext.p
  %plain = icmp eq ptr %ext, null
  br i1 %plain, label %run, label %extended
extended:
  %kind.p = getelementptr i8, ptr %ext, i64 8
  %kind = load i32, ptr %kind.p
  %asked = icmp eq i32 %kind, 1
  br i1 %asked, label %metadata, label %run
metadata:
  %data.p = getelementptr i8, ptr %ext, i64 24
  %data = load ptr, ptr %data.p
  %major = getelementptr i8, ptr %data, i64 24
  store i32 0, ptr %major
  %minor = getelementptr i8, ptr %data, i64 28
  store i32 ABI_MINOR, ptr %minor
  ret ptr null
run:
  %api.p = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.p
  %ctx.p = getelementptr i8, ptr %frame, i64 24
  %ctx = load ptr, ptr %ctx.p
  %args.p = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args.p
  %rets.p = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets.p
"""

FORGET = """
define internal void @lanes_forget(ptr %api, ptr %error) {
  %args = alloca [3 x i64]
  store i64 24, ptr %args
  %a1 = getelementptr i64, ptr %args, i64 1
  store ptr null, ptr %a1
  %a2 = getelementptr i64, ptr %args, i64 2
  store ptr %error, ptr %a2
  %p = getelementptr i8, ptr %api, i64 64
  %f = load ptr, ptr %p
  call void %f(ptr %args)
  ret void
}
"""
"""``lanes_forget(api, error)`` destroys an error returned by XLA's API."""

REFUSE = """
define internal ptr @lanes_refuse(ptr %api, ptr %text, i32 %code) {
  %args = alloca [4 x i64]
  store i64 28, ptr %args
  %a1 = getelementptr i64, ptr %args, i64 1
  store ptr null, ptr %a1
  %a2 = getelementptr i64, ptr %args, i64 2
  store ptr %text, ptr %a2
  %a3 = getelementptr i64, ptr %args, i64 3
  store i32 %code, ptr %a3
  %p = getelementptr i8, ptr %api, i64 48
  %f = load ptr, ptr %p
  %error = call ptr %f(ptr %args)
  ret ptr %error
}
"""
"""``lanes_refuse(api, text, code)`` creates the error (XLA_FFI_Error_Code) a handler returns."""
EXHAUSTED, INTERNAL = 8, 13


def call_frame(abi_minor: int) -> str:
    """The start of a handler: it answers a metadata query, else unpacks ``%frame``.

    It defines %api, %ctx, and the lists %args and %rets for the code that follows.
    """
    return _CALL_FRAME.strip("\n").replace("ABI_MINOR", str(abi_minor))
