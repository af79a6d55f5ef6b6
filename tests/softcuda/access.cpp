// Loads, stores and shuffles.
#include <algorithm>
#include <limits>

#include "tests/softcuda/block.h"
#include "tests/softcuda/decode.h"

namespace tutti::softcuda {
namespace {

template <class Element, class Register>
void load(Warp& w, const Instruction& i) {
  BlockRun::Places at;
  w.block->place(w, i, sizeof(Element) * i.count, false, at);
  for (size_t k = 0; k < i.count; ++k) {
    auto* d = reinterpret_cast<Register*>(w.words(i.data[k]));
    for_active(w, [&](int l) {
      Element x;
      std::memcpy(&x, reinterpret_cast<const Element*>(at[static_cast<size_t>(l)]) + k, sizeof x);
      d[l] = static_cast<Register>(x);  // NOLINT(bugprone-signed-char-misuse): it extends the sign
    });
  }
}

template <class Element, class Register>
void store(Warp& w, const Instruction& i) {
  BlockRun::Places at;
  w.block->place(w, i, sizeof(Element) * i.count, true, at);
  for (size_t k = 0; k < i.count; ++k) {
    const auto* from = reinterpret_cast<const Register*>(w.words(i.data[k]));
    for_active(w, [&](int l) {
      auto x = static_cast<Element>(from[l]);
      std::memcpy(reinterpret_cast<Element*>(at[static_cast<size_t>(l)]) + k, &x, sizeof x);
    });
  }
}

template <class Element>
Handler handler(bool stores, bool wide) {
  if (wide) return stores ? store<Element, uint64_t> : load<Element, uint64_t>;
  if constexpr (sizeof(Element) == 8) return nullptr;
  return stores ? store<Element, uint32_t> : load<Element, uint32_t>;
}

template <class T>
void load_parameter(Warp& w, const Instruction& i) {
  T x;
  std::memcpy(&x, w.block->parameters() + i.offset, sizeof x);
  write<T>(w, i.d, [&](int) { return x; });
}

std::string hex(uint64_t x) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(x));
  return text;
}

const char* name_of(Space space) {
  return space == Space::global ? "global" : space == Space::shared ? "shared" : "local";
}

}  // namespace

Handler access_handler(bool store, Type element, bool wide) {
  switch (element) {
    case Type::u8:
    case Type::b8: return handler<uint8_t>(store, wide);
    case Type::s8: return handler<int8_t>(store, wide);
    case Type::u16:
    case Type::b16: return handler<uint16_t>(store, wide);
    case Type::s16: return handler<int16_t>(store, wide);
    case Type::u32:
    case Type::b32:
    case Type::f32: return handler<uint32_t>(store, wide);
    case Type::s32: return handler<int32_t>(store, wide);
    case Type::u64:
    case Type::s64:
    case Type::b64:
    case Type::f64: return handler<uint64_t>(store, wide);
    default: return nullptr;
  }
}

Handler parameter_handler(Type type) {
  if (bytes_of(type) == 8) return load_parameter<uint64_t>;
  return bytes_of(type) == 4 ? load_parameter<uint32_t> : nullptr;
}

void BlockRun::place(Warp& w, const Instruction& i, unsigned bytes, bool store, Places& at) {
  auto offset = static_cast<uint64_t>(i.offset + host_offset(i.space));
  if (i.base < 0) {
    at.fill(offset);
  } else if (i.base_wide) {
    const auto* base = reinterpret_cast<const uint64_t*>(w.words(i.base));
    for (size_t l = 0; l < lanes; ++l) at[l] = base[l] + offset;
  } else {
    const uint32_t* base = w.words(i.base);
    for (size_t l = 0; l < lanes; ++l) at[l] = base[l] + offset;
  }
  check_range(w, i, at, bytes);
  if (watched_) watch(w, i, at, bytes, store);
  if (i.space == Space::local)
    for (size_t l = 0; l < lanes; ++l) at[l] += (w.first_thread + l) * function_.local_bytes;
}

/// From an address of the kernel to the host's, of the first thread in local memory.
int64_t BlockRun::host_offset(Space space) const {
  if (space == Space::global) return 0;
  bool shared = space == Space::shared;
  return reinterpret_cast<int64_t>(shared ? shared_.data() : local_.data()) -
         static_cast<int64_t>(shared ? shared_window : local_window);
}

BlockRun::Extent BlockRun::extent(const Warp& w, const Places& at) {
  Extent e;
  if (w.active == ~0u) {
    for (size_t l = 0; l < lanes; ++l) {
      auto a = static_cast<int64_t>(at[l]);
      e.first = a < e.first ? a : e.first;
      e.last = a > e.last ? a : e.last;
      e.bits |= at[l];
    }
    return e;
  }
  for (size_t l = 0; l < lanes; ++l) {
    auto a = static_cast<int64_t>(at[l]);
    e.first = w.mask[l] && a < e.first ? a : e.first;
    e.last = w.mask[l] && a > e.last ? a : e.last;
    e.bits |= w.mask[l] ? at[l] : 0;
  }
  return e;
}

void BlockRun::check_range(Warp& w, const Instruction& i, const Places& at, unsigned bytes) {
  Extent e = extent(w, at);
  Range& range = ranges_[static_cast<size_t>(&i - function_.code.data())];
  bool aligned = !(e.bits & (bytes - 1));
  if (aligned && e.first >= range.begin && e.last + bytes <= range.end) return;
  if (i.space == Space::global) {
    if (Allocation* a = memory_.find(static_cast<uint64_t>(e.first), static_cast<uint64_t>(e.last - e.first) + bytes))
      range = {static_cast<int64_t>(a->base), static_cast<int64_t>(a->end())};
  } else {
    range.begin = static_cast<int64_t>(i.space == Space::shared ? shared_window : local_window) + host_offset(i.space);
    range.end = range.begin + (i.space == Space::shared ? function_.shared_bytes : function_.local_bytes);
  }
  for_active(w, [&](int l) {
    auto a = static_cast<int64_t>(at[static_cast<size_t>(l)]);
    std::string address = hex(static_cast<uint64_t>(a - host_offset(i.space)));
    if (a & (bytes - 1)) fail(CUDA_ERROR_MISALIGNED_ADDRESS, "the address " + address + " is misaligned", w, i, l);
    bool inside = (a >= range.begin && a + bytes <= range.end) ||
                  (i.space == Space::global && memory_.find(static_cast<uint64_t>(a), bytes));
    if (!inside)
      fail(CUDA_ERROR_ILLEGAL_ADDRESS, "the address " + address + " is outside " + name_of(i.space) + " memory", w, i,
           l);
  });
}

void BlockRun::watch(Warp& w, const Instruction& i, const Places& at, unsigned bytes, bool store) {
  if (i.space == Space::local) return;
  for_active(w, [&](int l) {
    uint64_t a = at[static_cast<size_t>(l)];
    bool global = i.space == Space::global;
    Allocation* allocation = global ? memory_.find(a, bytes) : nullptr;
    uint64_t offset = a - (global ? allocation->base : reinterpret_cast<uint64_t>(shared_.data()));
    if (memory_.checks().uninitialised)
      check_known(w, i, l, global ? allocation->known : shared_known_, offset, bytes, store);
    if (memory_.checks().races)
      check_races(w, i, l, global ? allocation->cells : shared_cells_, offset, bytes, store,
                  global ? grid_.launch : runs_);
  });
}

void BlockRun::forget(Warp& w, const Places& at, unsigned bytes) {
  if (!memory_.checks().uninitialised) return;
  for_active(w, [&](int l) {
    uint64_t offset = at[static_cast<size_t>(l)] - reinterpret_cast<uint64_t>(shared_.data());
    for (uint64_t k = offset; k < offset + bytes; ++k) shared_known_[k] = false;
  });
}

void BlockRun::check_known(Warp& w, const Instruction& i, int lane, std::vector<bool>& known, uint64_t offset,
                           unsigned bytes, bool store) const {
  for (uint64_t k = offset; k < offset + bytes; ++k) {
    if (store)
      known[k] = true;
    else if (!known[k])
      fail(CUDA_ERROR_LAUNCH_FAILED, std::string("uninitialised ") + name_of(i.space) + " memory is read", w, i, lane);
  }
}

void BlockRun::check_races(Warp& w, const Instruction& i, int lane, std::vector<Cell>& cells, uint64_t offset,
                           unsigned bytes, bool store, uint64_t launch) const {
  Visit now{launch, number_, interval_, w.first_thread + static_cast<unsigned>(lane)};
  for (uint64_t k = offset; k < offset + bytes; ++k)
    if (!cells[k].touch(now, store))
      fail(CUDA_ERROR_LAUNCH_FAILED, std::string("a race in ") + name_of(i.space) + " memory", w, i, lane);
}

namespace {

/// source_of(lane, operand): the lane that it reads, if that is in its segment.
template <class F>
void shuffle(Warp& w, const Instruction& i, F source_of) {
  In<uint32_t> from(w, i.a), delta(w, i.b), clamp(w, i.c), members(w, i.e);
  std::array<uint32_t, lanes> old;
  for (int l = 0; l < lanes; ++l) old[static_cast<size_t>(l)] = from[l];
  for (uint32_t bits = w.active; bits; bits &= bits - 1) {
    int l = std::countr_zero(bits);
    if ((members[l] & ~w.active) || !(members[l] >> l & 1))
      w.block->fail(CUDA_ERROR_LAUNCH_FAILED, "a shuffle that only some of its lanes reach", w, i, l);
    int segment = static_cast<int>(clamp[l] >> 8 & 31);
    int last = (l & segment) | (static_cast<int>(clamp[l] & 31) & ~segment);
    int source = source_of(l, static_cast<int>(delta[l] & 31));
    bool inside = source <= last;
    if (!(members[l] >> (inside ? source : l) & 1))
      w.block->fail(CUDA_ERROR_LAUNCH_FAILED, "a shuffle from a lane that is not a member", w, i, l);
    w.words(i.d)[l] = old[static_cast<size_t>(inside ? source : l)];
    if (i.d2 >= 0) w.words(i.d2)[l] = inside;
  }
}

}  // namespace

void shuffle_down(Warp& w, const Instruction& i) {
  shuffle(w, i, [](int lane, int delta) { return lane + delta; });
}

void shuffle_butterfly(Warp& w, const Instruction& i) {
  shuffle(w, i, [](int lane, int mask) { return lane ^ mask; });
}

}  // namespace tutti::softcuda
