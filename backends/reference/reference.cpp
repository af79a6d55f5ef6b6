#include "backends/reference/reference.h"

#include <fmt/format.h>

#include "backends/reference/executable.h"
#include "core/abi/growth.h"
#include "core/base/text.h"
#include "graph/op.h"
#include "sdk/shortage.h"

namespace tutti::reference {

Bound bind(const sdk::Program& program, uint32_t k, const TuttiOps& ops) {
  const sdk::Node& n = program.nodes[k];
  auto decline = [](const std::string& reason) { return Error(Code::declined, reason); };
  bool exact = program.numerics == TUTTI_EXACT;
  const OpDef* op = find_op(n.op);
  if (exact && !n.elementwise() && !(op && op->ordered)) throw decline(fmt::format("'{}' has no exact numerics", n.op));
  if (!op && n.elementwise()) {
    Bound bound{nullptr, n.attrs, {n.expr, {}}};
    for (const TuttiInstr& i : n.expr)
      if (i.code == TUTTI_X_RESULT) bound.expr.results.push_back(static_cast<DType>(i.dtype));
    return bound;
  }
  if (!op && ops.known && ops.known(n.op.c_str(), n.version)) return {nullptr, n.attrs, {}};
  if (!op) throw decline(fmt::format("unknown op '{}'", n.op));
  if (n.version > static_cast<uint32_t>(op->version))
    throw decline(fmt::format("version {} of '{}' is not supported; the newest supported version is {}", n.version,
                              n.op, op->version));
  if ((n.flags & TUTTI_NODE_EXACT) && !op->exact && !exact)
    throw decline(fmt::format(
        "TUTTI_NODE_EXACT is not supported for '{}', which this device does not round after every instruction", n.op));
  // If it accepted these, steps with conv2d would become channels-last for it.
  if (n.op.starts_with("conv2d_nhwc")) throw decline("it is computed as conv2d and transposes");
  Bound bound{op, {}};
  std::vector<TensorType> in;
  for (uint32_t v : n.inputs) in.push_back(program.type(v));
  Types out;
  try {
    bound.attrs = n.attrs.over(op->attrs);
    out = infer_types(*op, in, bound.attrs);
  } catch (const Error& e) {
    throw decline(e.what());
  }
  if (out.size() != n.results.size())
    throw decline(fmt::format("'{}' has {} results, but the node has {}", n.op, out.size(), n.results.size()));
  for (size_t r = 0; r < out.size(); ++r)
    if (uint32_t v = n.results[r]; v != TUTTI_NONE && program.type(v) != out[r])
      throw decline(fmt::format("result {} of '{}' should be {}, but is {} in the program", r, n.op, to_string(out[r]),
                                to_string(program.type(v))));
  return bound;
}

namespace {

class ReferenceSession : public sdk::HostSession<Shared> {
 public:
  explicit ReferenceSession(const TuttiOps& ops) { shared_.ops = ops; }
  void check(const sdk::Program& program, std::span<uint8_t> accepted, const sdk::Why& why) override {
    for (uint32_t k = 0; k < program.nodes.size(); ++k) {
      try {
        bind(program, k, shared_.ops);
        accepted[k] = 1;
      } catch (const Error& e) {
        why(k, e.what());
      }
    }
  }

  std::unique_ptr<sdk::Executable> compile(sdk::Program program, const TuttiOptions& options) override {
    std::vector<Bound> bound;
    for (uint32_t k = 0; k < program.nodes.size(); ++k) {
      try {
        bound.push_back(bind(program, k, shared_.ops));
      } catch (const Error& e) {
        throw sdk::NodeError(k, e.code, fmt::format("node {}: {}", k, e.what()), e.remedy);
      }
    }
    return make_executable(shared_, std::move(program), std::move(bound), options.flags & TUTTI_OPT_PROFILE);
  }
};

class ReferencePlugin : public sdk::Plugin {
 public:
  const char* name() const override { return "reference"; }
  const char* version() const override { return TUTTI_VERSION; }
  bool profiles() const override { return true; }

  std::vector<sdk::Device> devices() override {
    sdk::Device d;
    d.name = "reference (float64 on the host)";
    d.driver = "tutti " TUTTI_VERSION;
    d.kind = TUTTI_SOFTWARE;  // emulated on the host, so the selector prefers any other device
    sdk::take_host_memory(d);
    return {d};
  }

  std::unique_ptr<sdk::Session> open(uint32_t device, const sdk::Options& options) override {
    if (device != 0) throw invalid(fmt::format("reference: no device {}", device), "its one device is 0");
    for (const auto& [key, value] : options) {
      if (key != "threads")
        throw invalid(fmt::format("reference: unknown option '{}'", key), "the valid option is: threads");
      if (parse_number<int>(value).value_or(0) < 1)  // accepted as on every CPU device, but the loops use one thread
        throw invalid(fmt::format("reference: option threads is '{}'", value), "use an integer of at least 1");
    }
    return std::make_unique<ReferenceSession>(find_extension<TuttiOps>(host_.extensions(), TUTTI_EXT_OPS));
  }
};

}  // namespace

sdk::Plugin* make_plugin() { return new ReferencePlugin; }

}  // namespace tutti::reference
