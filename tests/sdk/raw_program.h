// Builds the C structs of a program by hand, as a host would lay them out.
#pragma once
#include <bit>
#include <deque>
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"

namespace tutti::test {

class RawProgram {
 public:
  uint32_t value(uint32_t role, uint32_t dtype, std::vector<int64_t> dims, const char* name = nullptr,
                 const void* data = nullptr) {
    const auto& kept = shapes_.emplace_back(std::move(dims));
    values.push_back({role, dtype, static_cast<uint32_t>(kept.size()), 0, kept.data(), name, data});
    return static_cast<uint32_t>(values.size() - 1);
  }
  TuttiNode& node(const char* op, std::vector<uint32_t> inputs, std::vector<uint32_t> results) {
    const auto& in = indices_.emplace_back(std::move(inputs));
    const auto& out = indices_.emplace_back(std::move(results));
    nodes.push_back({op,
                     nullptr,
                     1,
                     0,
                     in.data(),
                     out.data(),
                     static_cast<uint32_t>(in.size()),
                     static_cast<uint32_t>(out.size()),
                     {},
                     {}});
    return nodes.back();
  }
  /// An expression `code(x0, x1)` in dtype f32 for the newest node.
  void binary(uint16_t code) {
    expr({{TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_INPUT, TUTTI_F32, 1, 0, 0},
          {code, TUTTI_F32, 0, 1, 0},
          {TUTTI_X_RESULT, TUTTI_F32, 2, 0, 0}});
  }
  void expr(std::vector<TuttiInstr> code) {
    const auto& kept = exprs_.emplace_back(std::move(code));
    nodes.back().expr = array(kept);
  }
  void attrs(std::vector<TuttiAttr> list) {
    const auto& kept = attrs_.emplace_back(std::move(list));
    nodes.back().attrs = array(kept);
  }
  TuttiProgram raw() const {
    TuttiProgram p = {};
    p.size = sizeof p;
    p.values = array(values);
    p.nodes = array(nodes);
    p.states = array(states);
    p.groups = array(groups);
    return p;
  }
  template <class T>
  static TuttiArray array(const std::vector<T>& v) {
    return {v.data(), static_cast<uint32_t>(v.size()), sizeof(T)};
  }

  std::vector<TuttiValue> values;
  std::vector<TuttiNode> nodes;
  std::vector<TuttiState> states;
  std::vector<TuttiGroup> groups;

 private:
  std::deque<std::vector<int64_t>> shapes_;
  std::deque<std::vector<uint32_t>> indices_;
  std::deque<std::vector<TuttiInstr>> exprs_;
  std::deque<std::vector<TuttiAttr>> attrs_;
};

/// s' = a * b + s over f32[3]: feeds a (value 0) and b (1), state s (2 before, 4 after), t = a * b (3).
struct MultiplyAdd : RawProgram {
  MultiplyAdd() {
    for (const char* name : {"a", "b"}) value(TUTTI_FEED, TUTTI_F32, {3}, name);
    value(TUTTI_STATE, TUTTI_F32, {3}, "s");
    value(TUTTI_TEMP, TUTTI_F32, {3});
    value(TUTTI_TEMP, TUTTI_F32, {3});
    node("mul", {0, 1}, {3});
    binary(TUTTI_X_MUL);
    node("add", {3, 2}, {4});
    binary(TUTTI_X_ADD);
    states.push_back({"s", 2, 4});
  }
};

/// y = max(x w + b, 0) over feed x [m, k] and states w [k, n], b [1, n]; y is a state.
struct MatmulBiasRelu : RawProgram {
  MatmulBiasRelu(int64_t m, int64_t k, int64_t n) {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {m, k}, "x"), w = value(TUTTI_STATE, TUTTI_F32, {k, n}, "w");
    uint32_t b = value(TUTTI_STATE, TUTTI_F32, {1, n}, "b"), p = value(TUTTI_TEMP, TUTTI_F32, {m, n});
    uint32_t q = value(TUTTI_TEMP, TUTTI_F32, {m, n}), y = value(TUTTI_TEMP, TUTTI_F32, {m, n});
    static const int64_t no = 0;
    node("matmul", {x, w}, {p});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    node("add", {p, b}, {q});
    binary(TUTTI_X_ADD);
    node("relu", {q}, {y});
    expr({{TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_CONST, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_MAX, TUTTI_F32, 0, 1, 0},
          {TUTTI_X_RESULT, TUTTI_F32, 2, 0, 0}});
    states = {{"w", w, w}, {"b", b, b}, {"y", TUTTI_NONE, y}};
  }
};

}  // namespace tutti::test
