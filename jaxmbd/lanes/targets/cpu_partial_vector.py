"""LLVM IR of the driver's last step: remaining samples that do not fill a vector.

Their rows are copied to blocks padded by repeating the last sample; the kernel runs on the blocks,
and the results are copied back. The blocks and the list of them are part of the job's memory.
"""

TAIL = """
define internal void @lanes_tail(ptr %job, ptr %scratch) {
entry:
  %kernel = load ptr, ptr %job
LOADS
  %width = load i64, ptr %table
  %ins.p = getelementptr i64, ptr %table, i64 1
  %ins = load i64, ptr %ins.p
  %outs.p = getelementptr i64, ptr %table, i64 2
  %outs = load i64, ptr %outs.p
  %buffers = add i64 %ins, %outs
  %list.place = add i64 %buffers, POINTERS
  %list = getelementptr i64, ptr %job, i64 %list.place
  %whole = mul i64 %full, %width
  %end.row = sub i64 %batch, 1
  br label %next
next:
  %k = phi i64 [0, %entry], [%k1, %set]
  %more = icmp slt i64 %k, %buffers
  br i1 %more, label %one, label %run
one:
  %place = add i64 %k, POINTERS
  %memory.p = getelementptr i64, ptr %job, i64 %place
  %memory = load ptr, ptr %memory.p
  %row.place = add i64 %k, 7
  %row.p = getelementptr i64, ptr %table, i64 %row.place
  %row = load i64, ptr %row.p
  %batched = icmp sgt i64 %row, 0
  br i1 %batched, label %padded, label %same
same:
  br label %set
padded:
  %block.place = add i64 %row.place, %buffers
  %block.p = getelementptr i64, ptr %table, i64 %block.place
  %block.at = load i64, ptr %block.p
  %block = getelementptr i8, ptr %blocks, i64 %block.at
  %is.in = icmp slt i64 %k, %ins
  br i1 %is.in, label %copy, label %set
copy:
  %from = mul i64 %whole, %row
  %source = getelementptr i8, ptr %memory, i64 %from
  %part = mul i64 %tail, %row
  %c0 = call ptr @memcpy(ptr %block, ptr %source, i64 %part)
  %last.from = mul i64 %end.row, %row
  %last = getelementptr i8, ptr %memory, i64 %last.from
  br label %fill
fill:
  %r = phi i64 [%tail, %copy], [%r1, %filled]
  %r.more = icmp slt i64 %r, %width
  br i1 %r.more, label %filled, label %set
filled:
  %to = mul i64 %r, %row
  %target = getelementptr i8, ptr %block, i64 %to
  %c1 = call ptr @memcpy(ptr %target, ptr %last, i64 %row)
  %r1 = add i64 %r, 1
  br label %fill
set:
  %used = phi ptr [%memory, %same], [%block, %padded], [%block, %fill]
  %list.p = getelementptr ptr, ptr %list, i64 %k
  store ptr %used, ptr %list.p
  %k1 = add i64 %k, 1
  br label %next
run:
  %list.outs = getelementptr ptr, ptr %list, i64 %ins
  call void %kernel(ptr %list, ptr %list.outs, i64 0, i64 1, ptr %scratch)
  br label %back
back:
  %j = phi i64 [%ins, %run], [%j1, %copied]
  %j.more = icmp slt i64 %j, %buffers
  br i1 %j.more, label %copied, label %end
copied:
  %j.row.place = add i64 %j, 7
  %j.row.p = getelementptr i64, ptr %table, i64 %j.row.place
  %j.row = load i64, ptr %j.row.p
  %j.block.p = getelementptr ptr, ptr %list, i64 %j
  %j.block = load ptr, ptr %j.block.p
  %j.memory.place = add i64 %j, POINTERS
  %j.memory.p = getelementptr i64, ptr %job, i64 %j.memory.place
  %j.memory = load ptr, ptr %j.memory.p
  %j.to = mul i64 %whole, %j.row
  %j.target = getelementptr i8, ptr %j.memory, i64 %j.to
  %j.part = mul i64 %tail, %j.row
  %c2 = call ptr @memcpy(ptr %j.target, ptr %j.block, i64 %j.part)
  %j1 = add i64 %j, 1
  br label %back
end:
  ret void
}
"""
