#include "kernels/cpu/eval_build.h"

#include <algorithm>
#include <bit>

#include "core/base/instr.h"
#include "core/base/status.h"
#include "core/geometry/copy.h"

namespace tutti::kernels {
namespace {

/// Larger operands are assumed to be read from memory, not from caches.
constexpr size_t large_bytes = size_t{8} << 20;

/// Shorter inner loops are not separate blocks.
constexpr int64_t shortest_row = 96;

using instr::constant_of;
using instr::operand_count;

bool computable(DType t) { return t != DType::f64 && t != DType::i64; }

/// Whether an integer instruction can overflow u8 or bool.
bool overflows(const TuttiInstr& i) {
  return (i.dtype == TUTTI_U8 || i.dtype == TUTTI_BOOL) &&
         (i.code == TUTTI_X_ADD || i.code == TUTTI_X_SUB || i.code == TUTTI_X_MUL || i.code == TUTTI_X_NEG ||
          i.code == TUTTI_X_SHL);
}

void fill(void* y, const void* a, const void*, const void*, int64_t n) {
  std::fill_n(static_cast<uint32_t*>(y), n, *static_cast<const uint32_t*>(a));
}

}  // namespace

Lane lane_of(DType t) { return is_float(t) ? Lane::f32 : t == DType::u32 ? Lane::u32 : Lane::i32; }

std::string Eval::declines(std::span<const TuttiInstr> code) {
  for (const TuttiInstr& i : code) {
    auto t = static_cast<DType>(i.dtype);
    if (!computable(t)) return "dtype " + std::string(name(t));
    if (i.code <= TUTTI_X_RESULT || i.code == TUTTI_X_CAST || i.code == instr::round) continue;
    Lane from = lane_of(static_cast<DType>(code[i.code == TUTTI_X_SELECT ? i.b : i.a].dtype));
    if (!isa_kernels().find(i.code, from, lane_of(t), 0))
      return "instruction " + std::to_string(i.code) + " on " + std::string(name(t));
  }
  return "";
}

Eval::Eval(std::span<const TuttiInstr> code, const Shape& dims, const std::vector<Operand>& in,
           const std::vector<DType>& out, std::vector<int> in_place, bool exact) {
  if (std::string why = declines(code); !why.empty()) throw Error(Code::declined, "the evaluator has no " + why);
  in_place.resize(out.size(), -1);
  dims_ = dims;
  total_ = num_elements(dims);
  if (total_ == 0) return;
  Shape dense = strides_of(dims);  // strides of outputs
  std::vector<std::vector<int64_t>*> strides = {&dense};
  for (const Operand& x : in) {
    in_.push_back({size_of(x.dtype), Access::direct, x.strides});
    in_.back().size = size_of(x.dtype);
  }
  for (Input& x : in_) strides.push_back(&x.strides);
  merge_dimensions(dims_, strides);
  inner_ = dims_.back();
  flat_ = dims_.size() > 1 && inner_ < shortest_row;
  for (Input& x : in_) {
    bool zero = std::all_of(x.strides.begin(), x.strides.end(), [](int64_t s) { return s == 0; });
    if (zero)
      x.access = Access::uniform;
    else if (flat_)
      x.access = x.strides == dense ? Access::direct : Access::gathered;
    else
      x.access = x.strides.back() == 1 ? Access::direct : x.strides.back() == 0 ? Access::row : Access::gathered;
  }
  for (DType t : out) out_size_.push_back(size_of(t));
  for (size_t k = 0; k < in.size(); ++k) in_[k].slot = slots_++;
  for (size_t k = 0; k < out.size(); ++k) out_slot_.push_back(slots_++);
  if (dims_.size() > 16)
    throw Error(Code::declined, "more than 16 dimensions are not supported (after merging adjacent ones)");

  // The builder gets input dtypes from the INPUT instructions.
  Builder(*this, code, out, in_place, exact).build();
  // Many large arrays are read from memory: with short blocks the processor prefetches the next ones during computation
  // (measured, Adam on 16M elements: 53 GB/s with 512 elements, 67 with 128). Few arrays, or small ones in caches, are
  // faster with long blocks (relu6's gradient, two arrays of 6 MB: 1,050 us with 128 elements, 450 with 1024).
  size_t bytes = 0, arrays = 0;
  for (const Input& x : in_)
    if (x.access == Access::direct) bytes += static_cast<size_t>(total_) * x.size, ++arrays;
  block_ = arrays > 3 && bytes > large_bytes ? 128 : registers_ <= 4 ? 1024 : 512;
  if (!flat_) per_row_ = (inner_ + block_ - 1) / block_;
  cost_ = static_cast<int64_t>(each_.size()) / 4 + 1;
  scratch_ = (slots_ * sizeof(void*) + 63) / 64 * 64 + (scalars_ * size_t{4} + 63) / 64 * 64 +
             registers_ * static_cast<size_t>(block_) * 4;
}

uint32_t Eval::Builder::add(Op op) {
  auto same = [&](const Op& o) {
    return o.fn == op.fn && op.fn && o.operands == op.operands && o.a == op.a && o.b == op.b && o.c == op.c &&
           o.input == op.input && o.dtype == op.dtype;
  };
  for (uint32_t k = 0; k < ops_.size(); ++k)
    if (same(ops_[k])) return k;
  ops_.push_back(op);
  return static_cast<uint32_t>(ops_.size() - 1);
}

uint32_t Eval::Builder::input(uint32_t number) {
  if (loaded_[number] >= 0) return static_cast<uint32_t>(loaded_[number]);
  Op op;
  for (const TuttiInstr& i : code_)
    if (i.code == TUTTI_X_INPUT && i.a == number) op.dtype = static_cast<DType>(i.dtype);
  op.input = static_cast<int>(number);
  op.access = eval_.in_[number].access;
  Storage s = storage_of(op.dtype);
  if (s != Storage::word) op.fn = isa_kernels().load(s);  // needs conversion; words are read in place
  uint32_t at = add(op);
  loaded_[number] = at;
  return at;
}

uint32_t Eval::Builder::constant(double x, DType t) {
  Op op;
  op.access = Access::uniform;
  op.dtype = t;
  uint32_t bits;
  if (lane_of(t) == Lane::f32)
    bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  else if (t == DType::u32)
    bits = static_cast<uint32_t>(round_to(t, x));
  else
    bits = static_cast<uint32_t>(static_cast<int32_t>(round_to(t, x)));
  for (auto [at, have] : bits_)
    if (have == bits && ops_[at].dtype == t) return at;
  uint32_t at = add(op);
  bits_.emplace_back(at, bits);
  return at;
}

uint32_t Eval::Builder::compute(const TuttiInstr& i, const std::vector<uint32_t>& at) {
  Op op;
  op.operands = operand_count(i.code);
  op.dtype = static_cast<DType>(i.dtype);
  uint32_t arg[3] = {at[i.a], op.operands > 1 ? at[i.b] : 0, op.operands > 2 ? at[i.c] : 0};
  // Frequency: results of uniform operands are computed once, results of per-row operands once per row.
  op.access = Access::uniform;
  for (int k = 0; k < op.operands; ++k) {
    Access w = ops_[arg[k]].access;
    if (w == Access::direct || w == Access::gathered)
      op.access = Access::direct;
    else if (w == Access::row && op.access == Access::uniform)
      op.access = Access::row;
  }
  uint32_t scalars = 0;
  if (op.access == Access::direct)
    for (int k = 0; k < op.operands; ++k)
      if (ops_[arg[k]].access == Access::uniform || ops_[arg[k]].access == Access::row) scalars |= 1u << k;
  op.a = arg[0];
  op.b = arg[1];
  op.c = arg[2];
  DType from = ops_[arg[i.code == TUTTI_X_SELECT ? 1 : 0]].dtype;
  Lane lane = lane_of(from);
  if (i.code == instr::round) {
    op.fn = lane == Lane::f32 ? isa_kernels().narrow(storage_of(op.dtype)) : nullptr;
    return op.fn ? add(op) : arg[0];
  }
  if (i.code != TUTTI_X_CAST) {
    op.fn = exact_ && lane == Lane::f32 ? isa_kernels().find_exact(i.code, scalars) : nullptr;
    if (!op.fn) op.fn = isa_kernels().find(i.code, lane, lane_of(op.dtype), scalars);
    uint32_t y = add(op);
    if (!overflows(i)) return y;
    Op wrap = op;
    wrap.operands = 1;
    wrap.a = y;
    wrap.b = wrap.c = 0;
    Storage s = storage_of(op.dtype);
    wrap.fn = s == Storage::u8 ? isa_kernels().narrow(s) : isa_kernels().clamp(s, Lane::i32);
    return add(wrap);
  }
  if (from == op.dtype) return arg[0];
  Storage s = storage_of(op.dtype);
  if (s == Storage::u8 || s == Storage::boolean) {
    if (s == Storage::u8 && from == DType::boolean) return arg[0];
    op.fn = isa_kernels().clamp(s, lane);
    return add(op);
  }
  if (lane != lane_of(op.dtype)) {
    op.fn = isa_kernels().find(TUTTI_X_CAST, lane, lane_of(op.dtype), 0);
    op.a = add(op);
  }
  if (s == Storage::word || from == DType::boolean || from == DType::u8) return op.a;
  op.fn = isa_kernels().narrow(s);
  return add(op);
}

void Eval::Builder::collect() {
  std::vector<uint32_t> at(code_.size());
  loaded_.assign(eval_.in_.size(), -1);
  for (size_t k = 0; k < code_.size(); ++k) {
    const TuttiInstr& i = code_[k];
    if (i.code == TUTTI_X_INPUT)
      at[k] = input(i.a);
    else if (i.code == TUTTI_X_CONST)
      at[k] = constant(constant_of(i), static_cast<DType>(i.dtype));
    else if (i.code == TUTTI_X_RESULT)
      results_.emplace_back(i.b, at[i.a]);
    else
      at[k] = compute(i, at);
  }
  // A result that is an unmodified input whose memory another output overwrites is copied through a register.
  for (auto& [o, k] : results_) {
    const Op& op = ops_[k];
    if (op.fn || op.input < 0 || op.access != Access::direct) continue;
    for (size_t other = 0; other < in_place_.size(); ++other)
      if (other != o && in_place_[other] == op.input) {
        Op copy;
        copy.fn = isa_kernels().load(Storage::word);
        copy.operands = 1;
        copy.a = k;
        copy.dtype = op.dtype;
        k = add(copy);
        break;
      }
  }
}

/// Lets operations write directly to their output if nothing reads the overwritten memory later.
void Eval::Builder::choose_direct() {
  for (auto [o, k] : results_) ops_[k].read = true;
  for (uint32_t k = static_cast<uint32_t>(ops_.size()); k-- > 0;) {
    Op& op = ops_[k];
    if (!op.read) continue;
    const uint32_t arg[3] = {op.a, op.b, op.c};
    for (int j = 0; j < op.operands; ++j) {
      ops_[arg[j]].read = true;
      ops_[arg[j]].last = std::max(ops_[arg[j]].last, k);
    }
  }
  auto end = static_cast<uint32_t>(ops_.size());
  for (auto [o, k] : results_) ops_[k].last = end;  // stored at the end, unless direct
  for (auto [o, k] : results_) {
    Op& op = ops_[k];
    if (!op.fn || op.access != Access::direct || op.direct_output >= 0 || storage_of(out_[o]) != Storage::word)
      continue;
    int shared = in_place_[o];
    bool safe = true;
    if (shared >= 0)
      for (uint32_t j = 0; j < ops_.size(); ++j)
        if (ops_[j].read && ops_[j].input == shared && (ops_[j].fn ? j : ops_[j].last) > k) safe = false;
    if (safe) op.direct_output = static_cast<int>(o);
  }
}

void Eval::Builder::assign_scalars() {
  Eval& e = eval_;
  for (size_t k = 0; k < e.in_.size(); ++k)  // unused inputs need no loads
    if (loaded_[k] < 0 || !ops_[static_cast<size_t>(loaded_[k])].read) e.in_[k].access = Access::uniform;
  // Scalars: constants, and results computed once or once per row.
  e.first_scalar_ = e.slots_;
  for (auto [at, bits] : bits_) {
    if (!ops_[at].read) continue;
    ops_[at].slot = static_cast<uint16_t>(e.first_scalar_ + e.scalars_++);
    ops_[at].has_slot = true;
    e.constants_.emplace_back(ops_[at].slot, bits);
  }
  for (Op& op : ops_) {
    if (!op.read || op.has_slot) continue;
    bool scalar = op.access == Access::uniform || op.access == Access::row;
    if (scalar && op.fn)
      op.slot = static_cast<uint16_t>(e.first_scalar_ + e.scalars_++);
    else if (op.direct_output >= 0)
      op.slot = e.out_slot_[static_cast<size_t>(op.direct_output)];
    else if (!op.fn && op.access != Access::gathered)
      op.slot = e.in_[static_cast<size_t>(op.input)].slot;
    else
      continue;
    op.has_slot = true;
  }
  e.first_register_ = static_cast<uint16_t>(e.first_scalar_ + e.scalars_);
}

uint16_t Eval::Builder::take_register() {
  if (free_.empty()) return static_cast<uint16_t>(eval_.first_register_ + eval_.registers_++);
  uint16_t r = free_.back();
  free_.pop_back();
  return r;
}

void Eval::Builder::assign_registers() {
  Eval& e = eval_;
  auto is_register = [&](const Op& op) { return op.has_slot && op.slot >= e.first_register_; };
  // Gathered inputs are copied before the block's first step, so they keep their registers for the whole block.
  for (Op& op : ops_) {
    if (!op.read || op.input < 0 || op.access != Access::gathered) continue;
    Input& x = e.in_[static_cast<size_t>(op.input)];
    x.buffer = take_register();
    x.slot = x.buffer;
    if (!op.fn) {
      op.slot = x.buffer;
      op.has_slot = true;
    }
  }
  for (uint32_t k = 0; k < ops_.size(); ++k) {
    Op& op = ops_[k];
    if (!op.read || !op.fn) continue;
    uint32_t arg[3] = {op.a, op.b, op.c};
    for (int j = 0; j < op.operands; ++j) {
      const Op& from = ops_[arg[j]];
      bool again = false;  // x * x must free its operand only once
      for (int i = 0; i < j; ++i) again |= arg[i] == arg[j];
      if (!again && is_register(from) && from.last == k && !(from.access == Access::gathered && !from.fn))
        free_.push_back(from.slot);
    }
    if (!op.has_slot) {
      op.slot = take_register();
      op.has_slot = true;
    }
    Step s{op.fn, op.slot, 0, 0, 0, op.access == Access::uniform || op.access == Access::row};
    if (op.input >= 0)
      s.a = e.in_[static_cast<size_t>(op.input)].slot;
    else
      s.a = ops_[op.a].slot;
    s.b = op.operands > 1 ? ops_[op.b].slot : s.a;
    s.c = op.operands > 2 ? ops_[op.c].slot : s.a;
    (op.access == Access::uniform ? e.once_ : e.each_).push_back(s);
    if (op.access == Access::gathered) op.access = Access::direct;
  }
}

void Eval::Builder::store_results() {
  Eval& e = eval_;
  uint16_t wide = 0;
  bool has_wide = false;
  for (auto [o, k] : results_) {
    Op& op = ops_[k];
    if (op.direct_output == static_cast<int>(o)) continue;
    Storage s = storage_of(out_[o]);
    uint16_t from = op.slot;
    if (op.access == Access::uniform || op.access == Access::row) {  // one value for the whole block
      uint16_t to = e.out_slot_[o];
      if (s != Storage::word) {
        if (!has_wide) wide = take_register();
        has_wide = true;
        to = wide;
      }
      e.each_.push_back({fill, to, from, from, from, false});
      from = to;
      if (s == Storage::word) continue;
    }
    e.each_.push_back({isa_kernels().store(s), e.out_slot_[o], from, from, from, false});
  }
}

void Eval::Builder::build() {
  collect();
  choose_direct();
  assign_scalars();
  assign_registers();
  store_results();
  eval_.slots_ = static_cast<uint16_t>(eval_.first_register_ + eval_.registers_);
}

}  // namespace tutti::kernels
