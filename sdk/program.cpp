#include "sdk/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>

#include "core/abi/growth.h"
#include "core/base/instr.h"

namespace tutti::sdk {
namespace {

constexpr uint32_t max_rank = 32;
constexpr int64_t max_elements = int64_t{1} << 48;  // keeps sums of byte counts within 64 bits

/// Copies elements of a TuttiArray individually, because another host's elements may be larger or smaller.
template <class T>
class Elements {
 public:
  Elements(const TuttiArray& array, std::string what) : array_(array), what_(std::move(what)) {
    if (array.count == 0) return;
    if (!array.at) throw invalid(fmt::format("{}: {} elements at address NULL", what_, array.count));
    if (array.stride < v1_size<T>)
      throw invalid(
          fmt::format("{}: elements of {} bytes, but at least {} are needed", what_, array.stride, v1_size<T>),
          "set the array's stride to the size of its element");
  }
  uint32_t size() const { return array_.count; }
  T operator[](uint32_t i) const { return element_of<T>(array_, i); }

 private:
  TuttiArray array_;
  std::string what_;
};

bool known_dtype(uint32_t dtype) { return dtype <= TUTTI_U32; }

TensorType parse_type(const TuttiValue& v, const std::string& what) {
  if (v.rank > max_rank)
    throw invalid(fmt::format("{}: rank {} is too large, the maximum is {}", what, v.rank, max_rank));
  if (v.rank && !v.dims) throw invalid(fmt::format("{}: rank {} with dims NULL", what, v.rank));
  DType dtype = known_dtype(v.dtype) ? static_cast<DType>(v.dtype) : DType::u8;
  TensorType type{dtype, Shape(v.dims, v.dims + v.rank)};
  try {
    if (num_elements(type.shape) > max_elements)
      throw invalid(fmt::format("shape {}: more than 2^48 elements", to_string(type.shape)));
  } catch (const Error& e) {
    throw invalid(fmt::format("{}: {}", what, e.what()));
  }
  return type;
}

Value parse_value(const TuttiValue& v, uint32_t i) {
  std::string what = fmt::format("value {}", i);
  Value out;
  out.role = v.role;
  if (v.role > TUTTI_STATE) throw invalid(fmt::format("{}: unknown role {}", what, v.role));
  out.type = parse_type(v, what);
  if (!known_dtype(v.dtype)) out.unknown = fmt::format("{} has the unknown dtype {}", what, v.dtype);
  if (v.role == TUTTI_FEED || v.role == TUTTI_STATE) {
    if (!v.name || !*v.name)
      throw invalid(fmt::format("{}: a {} needs a name", what, v.role == TUTTI_FEED ? "feed" : "state"));
    out.name = v.name;
  }
  if (v.role == TUTTI_CONST && out.unknown.empty()) {
    size_t bytes = num_bytes(out.type);
    if (bytes && !v.data) throw invalid(fmt::format("{}: a constant of {} bytes with data NULL", what, bytes));
    auto* at = static_cast<const std::byte*>(v.data);
    if (bytes) out.data.assign(at, at + bytes);
  }
  return out;
}

/// Checks and copies one node; marks its values in `defined`.
class NodeParser {
 public:
  NodeParser(const std::vector<Value>& values, std::vector<bool>& defined) : values_(values), defined_(defined) {}

  Node parse(const TuttiNode& raw, uint32_t number) {
    number_ = number;
    Node n;
    what_ = fmt::format("node {}", number);
    if (!raw.op || !*raw.op) fail("no op name");
    n.op = raw.op;
    n.label = raw.label ? raw.label : "";
    what_ = fmt::format("node {} ({}{}{})", number, n.op, n.label.empty() ? "" : " in ", n.label);
    n.version = raw.version;
    n.flags = raw.flags;
    if (n.version == 0) fail("op version 0; versions start at 1");
    if (uint32_t bits = n.flags & ~uint32_t{TUTTI_NODE_EXACT})
      n.unknown = fmt::format("unknown node flags {:#x}", bits);
    n.inputs = indices(raw.inputs, raw.input_count, "input");
    n.results = indices(raw.results, raw.result_count, "result");
    for (uint32_t k = 0; k < n.inputs.size(); ++k) check_input(n.inputs[k], k);
    for (uint32_t k = 0; k < n.results.size(); ++k) check_result(n.results[k], k);
    for (const auto* list : {&n.inputs, &n.results})
      for (uint32_t v : *list)
        if (v != TUTTI_NONE && !values_[v].unknown.empty()) n.unknown = values_[v].unknown;
    parse_attrs(raw.attrs, n);
    parse_expr(raw.expr, n);
    return n;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw NodeError(number_, Code::invalid, fmt::format("{}: {}", what_, message));
  }

  std::vector<uint32_t> indices(const uint32_t* at, uint32_t count, const char* kind) const {
    if (count && !at) fail(fmt::format("{} {}s at address NULL", count, kind));
    return {at, at + count};
  }

  void check_input(uint32_t v, uint32_t k) const {
    if (v >= values_.size())
      fail(fmt::format("input {} is value {}, but the program has only {} values", k, v, values_.size()));
    if (!defined_[v]) fail(fmt::format("input {} is value {}, which no earlier node produces", k, v));
  }

  void check_result(uint32_t v, uint32_t k) {
    if (v == TUTTI_NONE) return;
    if (v >= values_.size())
      fail(fmt::format("result {} is value {}, but the program has only {} values", k, v, values_.size()));
    if (values_[v].role != TUTTI_TEMP) fail(fmt::format("result {} is value {}, whose role is not TUTTI_TEMP", k, v));
    if (defined_[v]) fail(fmt::format("result {} is value {}, which is already produced by an earlier result", k, v));
    defined_[v] = true;
  }

  void parse_attrs(const TuttiArray& array, Node& n) const {
    Elements<TuttiAttr> attrs(array, what_ + ": attributes");
    for (uint32_t i = 0; i < attrs.size(); ++i) {
      TuttiAttr a = attrs[i];
      if (!a.name || !*a.name) fail(fmt::format("attribute {} has no name", i));
      if (n.attrs.has(a.name)) fail(fmt::format("attribute '{}' occurs twice", a.name));
      if (a.count && !a.data) fail(fmt::format("attribute '{}': {} elements at address NULL", a.name, a.count));
      auto list = [&](auto element) {
        std::vector<decltype(element)> out(a.count);
        if (a.count) std::memcpy(out.data(), a.data, a.count * sizeof element);
        return out;
      };
      switch (a.kind) {
        case TUTTI_ATTR_I64: n.attrs.set(a.name, list(int64_t{})); break;
        case TUTTI_ATTR_F64: n.attrs.set(a.name, list(double{})); break;
        case TUTTI_ATTR_TEXT: n.attrs.set(a.name, std::string(static_cast<const char*>(a.data), a.count)); break;
        default: n.unknown = fmt::format("attribute '{}' has the unknown kind {}", a.name, a.kind);
      }
    }
  }

  void parse_expr(const TuttiArray& array, Node& n) const {
    Elements<TuttiInstr> code(array, what_ + ": expression");
    if (code.size() == 0) return;
    std::vector<TuttiInstr> expr;
    for (uint32_t i = 0; i < code.size(); ++i) {
      expr.push_back(code[i]);
      if (expr[i].code >= instr::count || !known_dtype(expr[i].dtype)) {
        n.unknown =
            fmt::format("the expression contains the unknown instruction {} of dtype {}", expr[i].code, expr[i].dtype);
        return;
      }
    }
    if (!n.unknown.empty()) return;  // instructions cannot be checked against an unknown dtype
    std::vector<uint32_t> given(n.results.size());
    for (uint32_t i = 0; i < expr.size(); ++i) check_instr(expr, i, n, given);
    for (uint32_t k = 0; k < given.size(); ++k)
      if (given[k] > 1 || (given[k] == 0 && n.results[k] != TUTTI_NONE))
        fail(fmt::format("the expression produces result {} {} times, expected once", k, given[k]));
    check_shapes(n);
    n.expr = std::move(expr);
  }

  void check_instr(const std::vector<TuttiInstr>& expr, uint32_t i, const Node& n, std::vector<uint32_t>& given) const {
    const TuttiInstr& x = expr[i];
    auto bad = [&](const std::string& text) { fail(fmt::format("instruction {} of the expression: {}", i, text)); };
    const uint32_t operands[] = {x.a, x.b, x.c};
    uint16_t dtypes[3] = {};
    int count = operand_count(x.code);
    for (int k = 0; k < count; ++k) {
      if (operands[k] >= i)
        bad(fmt::format("operand {} refers to instruction {}; it must refer to an earlier instruction", k,
                        operands[k]));
      if (expr[operands[k]].code == TUTTI_X_RESULT) bad(fmt::format("operand {} is a RESULT, which has no value", k));
      dtypes[k] = expr[operands[k]].dtype;
    }
    auto want = [&](int k, uint16_t dtype) {
      if (dtypes[k] != dtype)
        bad(fmt::format("operand {} has dtype {}, expected {}", k, name(static_cast<DType>(dtypes[k])),
                        name(static_cast<DType>(dtype))));
    };
    switch (x.code) {
      case TUTTI_X_INPUT:
        if (x.a >= n.inputs.size())
          bad(fmt::format("it reads input {}, but the node has only {} inputs", x.a, n.inputs.size()));
        if (DType t = values_[n.inputs[x.a]].type.dtype; x.dtype != static_cast<uint16_t>(t))
          bad(fmt::format("input {} has dtype {}, not {}", x.a, name(t), name(static_cast<DType>(x.dtype))));
        return;
      case TUTTI_X_CONST:
      case TUTTI_X_CAST: return;
      case TUTTI_X_RESULT:
        if (x.b >= n.results.size())
          bad(fmt::format("it writes result {}, but the node has only {} results", x.b, n.results.size()));
        ++given[x.b];
        want(0, x.dtype);
        if (uint32_t v = n.results[x.b]; v != TUTTI_NONE && values_[v].type.dtype != static_cast<DType>(x.dtype))
          bad(fmt::format("result {} has dtype {}, but its value has dtype {}", x.b, name(static_cast<DType>(x.dtype)),
                          name(values_[v].type.dtype)));
        return;
      case TUTTI_X_LESS:
      case TUTTI_X_LESS_EQUAL:
      case TUTTI_X_EQUAL:
        if (x.dtype != TUTTI_BOOL) bad("a comparison must have dtype bool");
        return want(1, dtypes[0]);
      case TUTTI_X_SELECT:
        want(0, TUTTI_BOOL);
        want(1, x.dtype);
        return want(2, x.dtype);
      case TUTTI_X_NOT:
        if (x.dtype != TUTTI_BOOL) bad("NOT must have dtype bool");
        return want(0, TUTTI_BOOL);
      default:
        for (int k = 0; k < count; ++k) want(k, x.dtype);
    }
  }

  void check_shapes(const Node& n) const {
    Shape shape;
    try {
      for (uint32_t v : n.inputs) shape = broadcast_shapes(shape, values_[v].type.shape);
    } catch (const Error& e) {
      fail(e.what());
    }
    for (uint32_t k = 0; k < n.results.size(); ++k)
      if (uint32_t v = n.results[k]; v != TUTTI_NONE && values_[v].type.shape != shape)
        fail(fmt::format("result {} has shape {}, but the inputs broadcast to {}", k, to_string(values_[v].type.shape),
                         to_string(shape)));
  }

  const std::vector<Value>& values_;
  std::vector<bool>& defined_;
  uint32_t number_ = 0;
  std::string what_;
};

void parse_values(const TuttiProgram& raw, Program& p) {
  Elements<TuttiValue> values(raw.values, "values");
  std::set<std::string> names;
  for (uint32_t i = 0; i < values.size(); ++i) {
    p.values.push_back(parse_value(values[i], i));
    const Value& v = p.values.back();
    if (!v.name.empty() && !names.insert(v.name).second)
      throw invalid(fmt::format("value {}: the name '{}' is already used by another feed or state", i, v.name));
  }
}

/// Returns the values that are defined at the end of the step.
std::vector<bool> parse_nodes(const TuttiProgram& raw, Program& p) {
  Elements<TuttiNode> nodes(raw.nodes, "nodes");
  std::vector<bool> defined;
  for (const Value& v : p.values) defined.push_back(v.role != TUTTI_TEMP);
  NodeParser parser(p.values, defined);
  for (uint32_t i = 0; i < nodes.size(); ++i) p.nodes.push_back(parser.parse(nodes[i], i));
  return defined;
}

void parse_states(const TuttiProgram& raw, const std::vector<bool>& defined, Program& p) {
  Elements<TuttiState> states(raw.states, "states");
  std::set<std::string> names;
  std::vector<bool> covered(p.values.size());
  for (uint32_t i = 0; i < states.size(); ++i) {
    TuttiState s = states[i];
    if (!s.name || !*s.name) throw invalid(fmt::format("state {} has no name", i));
    if (!names.insert(s.name).second) throw invalid(fmt::format("state '{}' occurs twice", s.name));
    if (s.after >= p.values.size())
      throw invalid(fmt::format("state '{}': `after` is value {}, but the program has only {} values", s.name, s.after,
                                p.values.size()));
    if (!defined[s.after])
      throw invalid(fmt::format("state '{}': `after` is value {}, which no node produces", s.name, s.after));
    if (s.before != TUTTI_NONE) {
      if (s.before >= p.values.size())
        throw invalid(fmt::format("state '{}': `before` is value {}, but the program has only {} values", s.name,
                                  s.before, p.values.size()));
      const Value& before = p.values[s.before];
      if (before.role != TUTTI_STATE || before.name != s.name)
        throw invalid(
            fmt::format("state '{}': `before` is value {}, which is not the value of this state", s.name, s.before));
      if (before.type != p.type(s.after))
        throw invalid(fmt::format("state '{}' is {} before the step and {} after it", s.name, to_string(before.type),
                                  to_string(p.type(s.after))));
      covered[s.before] = true;
    }
    p.states.push_back({s.name, s.before, s.after});
  }
  for (uint32_t v = 0; v < p.values.size(); ++v) {
    const Value& value = p.values[v];
    if (value.role == TUTTI_STATE && !covered[v])
      throw invalid(fmt::format("value {} of state '{}' is not the `before` of any state in the list", v, value.name));
    if (value.role == TUTTI_FEED && names.contains(value.name))
      throw invalid(fmt::format("'{}' is both a feed and a state", value.name));
  }
}

void parse_groups(const TuttiProgram& raw, Program& p) {
  Elements<TuttiGroup> groups(raw.groups, "groups");
  uint64_t next = 0;
  for (uint32_t i = 0; i < groups.size(); ++i) {
    TuttiGroup g = groups[i];
    uint64_t end = uint64_t{g.first} + g.count;
    if (g.count == 0 || end > p.nodes.size())
      throw invalid(fmt::format("group {}: nodes [{}, {}) are empty or outside of the {} nodes", i, g.first, end,
                                p.nodes.size()));
    if (g.first < next)
      throw invalid(fmt::format("group {}: starts at node {}, inside or before the previous group", i, g.first));
    next = end;
    if (g.kind <= TUTTI_BATCH) p.groups.push_back(g);  // unknown hints are ignored
  }
}

}  // namespace

Program Program::parse(const TuttiProgram& given) {
  if (given.size < v1_size<TuttiProgram>)
    throw invalid(
        fmt::format("program: size is {} bytes, but at least {} are needed", given.size, v1_size<TuttiProgram>));
  auto raw = zero_extended<TuttiProgram>(&given, given.size);
  if (raw.required)
    throw Error(Code::declined, fmt::format("program: `required` contains unknown bits {:#x}", raw.required),
                "use a newer plugin");
  if (raw.numerics > TUTTI_EXACT)
    throw Error(Code::declined, fmt::format("program: unknown numerics {}", raw.numerics), "use a newer plugin");
  Program p;
  p.numerics = raw.numerics;
  parse_values(raw, p);
  parse_states(raw, parse_nodes(raw, p), p);
  parse_groups(raw, p);
  return p;
}

std::string declines_node(const Program& program, const Node& n, bool knows_exact) {
  static constexpr std::string_view moves[] = {"reshape", "transpose", "broadcast", "slice",       "pad", "concat",
                                               "window",  "gather",    "argmax",    "random_bits", "iota"};
  if (program.numerics != TUTTI_FAST && !knows_exact) return "this device does not support exact numerics";
  if (!n.unknown.empty()) return n.unknown;
  if (n.version != 1)
    return fmt::format("version {} of '{}' is not supported; the newest supported version is 1", n.version, n.op);
  if ((n.flags & TUTTI_NODE_EXACT) && !n.elementwise() && std::ranges::find(moves, n.op) == std::end(moves))
    return fmt::format(
        "TUTTI_NODE_EXACT is not supported for '{}', which this device does not round after every instruction", n.op);
  return "";
}

std::vector<uint32_t> Program::feeds() const {
  std::vector<uint32_t> out;
  for (uint32_t v = 0; v < values.size(); ++v)
    if (values[v].role == TUTTI_FEED) out.push_back(v);
  return out;
}

}  // namespace tutti::sdk
