#include "tests/onnx/node_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "onnx/lower.h"
#include "onnx/model.h"
#include "train/run/runner.h"

namespace tutti::test {
namespace {

namespace fs = std::filesystem;

std::string join(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

/// The first difference beyond ONNX's tolerance for floats, "" where there is none. `atol` is 1e-5, not 1e-7: inputs of
/// the cases lie around 1, and single precision has seven digits.
std::string difference(const HostTensor& got, const HostTensor& expected) {
  if (got.type != expected.type) return fmt::format("{}, expected {}", to_string(got.type), to_string(expected.type));
  double rtol = 1e-3, atol = 1e-5;
  if (is_narrow(got.type.dtype)) {
    rtol = std::max(rtol, 2 * unit_roundoff(got.type.dtype));
    atol = unit_roundoff(got.type.dtype) / 4;
  }
  for (size_t i = 0; i < static_cast<size_t>(num_elements(got.type.shape)); ++i) {
    double a = got.item(i), b = expected.item(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    bool near = is_float(got.type.dtype) && std::isfinite(a) && std::isfinite(b) &&
                std::abs(a - b) <= atol + rtol * std::abs(b);
    if (!near) return fmt::format("element {} is {}, expected {}", i, a, b);
  }
  return "";
}

/// What differs for one set of data, "" where nothing does.
std::string run_set(const onnx::Model& model, const std::string& folder, const Device& device) {
  Graph graph;
  HostTensors fed;
  std::map<std::string, HostTensor> given;
  std::map<std::string, onnx::Input> inputs;
  for (size_t k = 0; k < model.inputs.size(); ++k) {
    const std::string& name = model.inputs[k].name;
    std::string file = join(folder, fmt::format("input_{}.pb", k));
    given[name] = onnx::read_tensor(file);
    HostTensor small = onnx::narrowed(given[name], file);
    inputs[name] = {graph.feed(name, small.type), &given[name]};
    fed.emplace(name, std::move(small));
  }
  Values y = onnx::lower(model, graph, inputs);
  for (size_t k = 0; k < y.size(); ++k) graph.set_state(fmt::format("output {}", k), y[k]);
  HostTensors states = run(graph, device, fed);
  for (size_t k = 0; k < y.size(); ++k) {
    std::string file = join(folder, fmt::format("output_{}.pb", k));
    HostTensor expected = onnx::narrowed(onnx::read_tensor(file), file);
    std::string what = difference(states.at(fmt::format("output {}", k)), expected);
    if (!what.empty()) return fmt::format("output {} ({}): {}", k, model.outputs[k].name, what);
  }
  return "";
}

/// The message without the path and the node, so that equal reasons are one.
std::string short_reason(const std::string& message, const std::string& path) {
  std::string text = message.starts_with(path) ? message.substr(std::min(message.size(), path.size() + 2)) : message;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::vector<std::string> cases_below(const std::string& root) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().filename() == "model.onnx") out.push_back(entry.path().parent_path().string());
  std::sort(out.begin(), out.end());
  return out;
}

CaseResult run_case(const std::string& folder, const Device& device) {
  CaseResult out{.name = fs::path(folder).filename().string()};
  std::string path = join(folder, "model.onnx");
  try {
    // A case names the opset in which its op changed last: below 13 it means the same in 13.
    onnx::Model model = onnx::read(path, {.oldest = 1});
    out.opset = model.opset;
    out.op = model.nodes.size() == 1 ? model.nodes[0].op : "several nodes";
    for (size_t k = 0;; ++k) {
      std::string set = join(folder, fmt::format("test_data_set_{}", k));
      if (!fs::is_directory(set)) {
        if (k == 0) out.reason = "no data";
        break;
      }
      out.reason = run_set(model, set, device);
      if (!out.reason.empty()) return out;
    }
    if (out.reason.empty()) out.verdict = Verdict::pass;
  } catch (const onnx::Unsupported& e) {
    out.verdict = Verdict::not_applicable;
    out.reason = short_reason(e.what(), path);
  } catch (const Error& e) {
    if (e.code == Code::declined) out.verdict = Verdict::not_applicable;
    out.reason = short_reason(e.what(), path);
  }
  return out;
}

}  // namespace tutti::test
