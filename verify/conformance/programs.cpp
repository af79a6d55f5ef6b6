#include "verify/conformance/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/os/memory.h"
#include "graph/ops/add.h"
#include "graph/ops/clamp.h"
#include "graph/ops/mul.h"

namespace tutti::conformance {

SmallProgram::SmallProgram(int64_t n, const std::string& state) : size_(static_cast<size_t>(n)) {
  TensorType type{DType::f32, {n}};
  Value a = graph_.feed("a", type), b = graph_.feed("b", type), s = graph_.state(state, type);
  Value half = graph_.full(DType::f32, 0.5);
  graph_.set_state(state, s + clamp(a * b * half, -1e30, 1e30));
  lowered_ = std::make_unique<Lowered>(graph_, std::vector<TuttiGroup>{{TUTTI_CHAIN, 0, 2, 0}});
}

std::vector<float> drawn(size_t n, int k) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(1 + (i * 7 + static_cast<size_t>(k) * 3) % 11);
  return out;
}

SmallRun::SmallRun(RawSession& session, const TuttiProgram& program, size_t n, const std::string& state)
    : session_(session), state_(state), want_(n) {
  x_ = session_.compile(program, &memory_);
  session_.prepare(x_);
}

uint64_t SmallRun::enqueue(int k) {
  std::vector<float> a = drawn(want_.size(), 2 * k), b = drawn(want_.size(), 2 * k + 1);
  std::vector<void*> feeds = session_.stage(x_, 2);
  std::memcpy(feeds[0], a.data(), a.size() * sizeof(float));
  std::memcpy(feeds[1], b.data(), b.size() * sizeof(float));
  for (size_t i = 0; i < want_.size(); ++i) want_[i] += 0.5 * a[i] * b[i];
  return session_.run(x_);
}

void SmallRun::write(const std::vector<float>& values) {
  session_.write(state_, values);
  want_.assign(values.begin(), values.end());
}

void SmallRun::verify(Findings& f, const std::string& when) {
  std::vector<float> got = session_.read(state_, want_.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - want_[i]) <= 1e-5 * std::abs(want_[i])) continue;
    return f.add(fmt::format("{}: element {} of the state is {}, expected {}", when, i, got[i], want_[i]));
  }
}

ProgramCopy::ProgramCopy(const TuttiProgram& program, const Growth& growth) : growth_(growth) {
  uint32_t size = growth.size<TuttiProgram>();
  program_ = static_cast<TuttiProgram*>(place(size));
  std::memcpy(static_cast<void*>(program_), &program, std::min<size_t>(size, sizeof program));
  program_->size = size;
  program_->values = copy<TuttiValue>(program.values);
  program_->nodes = copy<TuttiNode>(program.nodes);
  program_->states = copy<TuttiState>(program.states);
  program_->groups = copy<TuttiGroup>(program.groups);
  for (uint32_t k = 0; k < program.nodes.count; ++k) {
    node(k).attrs = copy<TuttiAttr>(node(k).attrs);
    node(k).expr = copy<TuttiInstr>(node(k).expr);
    node(k).inputs = copy(node(k).inputs, node(k).input_count);
    node(k).results = copy(node(k).results, node(k).result_count);
  }
}

ProgramCopy::~ProgramCopy() {
  for (auto [at, bytes] : pages_) os::unmap_pages(at, bytes);
}

void* ProgramCopy::place(size_t bytes) {
  if (!growth_.guarded) {
    auto& words = heap_.emplace_back((bytes + 7) / 8 + 1, 0xA5A5A5A5A5A5A5A5u);
    return words.data();
  }
  size_t page = os::page_size(), whole = (bytes + page - 1) / page * page + page;
  void* at = os::map_pages(whole, page);
  if (!at) throw std::bad_alloc();
  pages_.emplace_back(at, whole);
  os::forbid_access(static_cast<char*>(at) + whole - page, page);
  return static_cast<char*>(at) + whole - page - bytes;
}

template <class T>
TuttiArray ProgramCopy::copy(const TuttiArray& array) {
  if (array.count == 0) return array;
  uint32_t stride = growth_.size<T>();
  auto* at = static_cast<char*>(place(size_t{stride} * array.count));
  std::memset(at, 0xA5, size_t{stride} * array.count);
  for (uint32_t i = 0; i < array.count; ++i)
    std::memcpy(at + size_t{stride} * i, static_cast<const char*>(array.at) + size_t{array.stride} * i,
                std::min<size_t>(stride, array.stride));
  return {at, array.count, stride};
}

const uint32_t* ProgramCopy::copy(const uint32_t* at, uint32_t count) {
  if (count == 0) return at;
  auto* out = static_cast<uint32_t*>(place(count * sizeof(uint32_t)));
  std::memcpy(out, at, count * sizeof(uint32_t));
  return out;
}

}  // namespace tutti::conformance
