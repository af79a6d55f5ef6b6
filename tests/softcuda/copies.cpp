// cp.async: copies from global to shared memory that begin at the instruction and are complete after cp.async.wait_all.
// Between the two nobody may touch their bytes: the checks take them for unknown, and for written at both times.
#include "tests/softcuda/block.h"
#include "tests/softcuda/decode.h"
#include "tests/softcuda/operations.h"

namespace tutti::softcuda {

/// The first of the two instructions that a copy is decoded to: where it reads, which needs no memory for a size of 0.
void copy_source(Warp& w, const Instruction& i) {
  In<uint32_t> size(w, i.b);
  uint32_t all = w.active, reading = 0;
  for_active(w, [&](int l) {
    if (size[l] != 0 && size[l] != i.count)
      w.block->fail(CUDA_ERROR_LAUNCH_FAILED, "a copy of a part is not implemented", w, i, l);
    reading |= static_cast<uint32_t>(size[l] != 0) << l;
  });
  w.copy = {nullptr, all, reading, {}, {}};
  if (!reading) return;
  w.set_active(reading);
  w.block->place(w, i, i.count, false, w.copy.from);
  w.set_active(all);
}

/// The second one: where it writes.
void copy_begin(Warp& w, const Instruction& i) {
  w.block->place(w, i, i.count, true, w.copy.to);
  w.block->forget(w, w.copy.to, i.count);
  w.copy.instruction = &i;
  w.copies.push_back(w.copy);
}

void copies_wait(Warp& w, const Instruction&) {
  uint32_t all = w.active;
  for (Copy& c : w.copies) {
    uint32_t done = c.lanes & all;
    c.lanes &= ~all;
    if (!done) continue;
    w.set_active(done);
    unsigned bytes = c.instruction->count;
    for_active(w, [&](int l) {
      auto k = static_cast<size_t>(l);
      auto* to = reinterpret_cast<void*>(c.to[k]);
      if (c.reading >> l & 1)
        std::memcpy(to, reinterpret_cast<const void*>(c.from[k]), bytes);
      else
        std::memset(to, 0, bytes);
    });
    w.block->note_store(w, *c.instruction, c.to, bytes);
  }
  w.set_active(all);
  std::erase_if(w.copies, [](const Copy& c) { return c.lanes == 0; });
}

}  // namespace tutti::softcuda
