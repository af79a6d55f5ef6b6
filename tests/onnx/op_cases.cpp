// Writes every sample of every op that can be exported as a case of ONNX's backend tests: what the op's own float64
// definition gives is what the file has to give. Says of each op how many, and names those that cannot be exported.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/status.h"
#include "graph/eval.h"
#include "graph/samples.h"
#include "onnx/format.pb.h"
#include "onnx/raise.h"
#include "onnx/write.h"

namespace {

using namespace tutti;

constexpr int64_t most_elements = 20000;  // what lies beyond is for devices

void write_tensor(const std::string& path, const Tensor& t) {
  onnx::pb::Tensor to;
  for (int64_t d : t.type.shape) to.add_dims(d);
  to.set_data_type(onnx::element_type(t.type.dtype));
  std::string bytes(num_bytes(t.type), '\0');
  store_tensor(t, bytes.data());
  to.set_raw_data(bytes);
  std::ofstream(path, std::ios::binary) << to.SerializeAsString();
}

/// The model of one node that gives its first `results` results.
onnx::Model model_of(const OpDef& op, const Sample& sample, const std::vector<Tensor>& in, size_t results) {
  Graph g;
  Values values;
  for (const Tensor& t : in) values.push_back(g.feed(fmt::format("x{}", values.size()), t.type));
  Graph::Scope scope(g, op.name);
  Values out = g.add(op, values, sample.attrs);
  std::map<std::string, std::string> outputs;
  for (size_t k = 0; k < std::min(results, out.size()); ++k) {
    std::string name = fmt::format("y{}", k);
    g.set_state(name, out[k]);
    outputs[name] = name;
  }
  return onnx::raise(g, outputs);
}

/// Numbers of positions inside of the axis: beyond it ours takes the last place, and ONNX takes none.
void clamp_places(const OpDef& op, const Attrs& a, std::vector<Tensor>& in) {
  if (op.name != "embedding" && op.name != "gather" && op.name != "take_along_axis") return;
  const Shape& x = in[0].shape();
  int64_t axis = op.name == "embedding" ? 0 : a.i("axis");
  auto size = static_cast<double>(x[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis)]);
  for (double& place : in[1].at) place = std::clamp(place, 0.0, std::max(size - 1, 0.0));
}

/// Returns whether there is such a case.
bool write_case(const std::string& root, const OpDef& op, size_t which) {
  const Sample& sample = op.samples[which];
  std::vector<Tensor> in = draw(op, sample, which, 1);
  Attrs attrs = sample.attrs.over(op.attrs);
  clamp_places(op, attrs, in);
  std::vector<Tensor> out = evaluate(op, in, attrs);
  for (const auto* all : {&in, &out})
    for (const Tensor& t : *all)
      if (static_cast<int64_t>(t.at.size()) > most_elements) return false;
  onnx::Model model;
  for (size_t results = out.size();; --results) try {
      model = model_of(op, sample, in, results);
      break;
    } catch (const Error& e) {
      if (e.code != Code::declined || results == 1) throw;  // ONNX may give the first alone
    }
  std::string folder = fmt::format("{}/{}.{}/test_data_set_0", root, op.name, which);
  std::filesystem::create_directories(folder);
  onnx::write(folder + "/../model.onnx", model);
  for (const onnx::Port& p : model.inputs)  // "x0", …
    write_tensor(fmt::format("{}/input_{}.pb", folder, &p - model.inputs.data()), in[std::stoul(p.name.substr(1))]);
  for (size_t k = 0; k < model.outputs.size(); ++k) write_tensor(fmt::format("{}/output_{}.pb", folder, k), out[k]);
  return true;
}

int run(const std::string& root) {
  std::vector<std::string> all = onnx::all_forms();
  std::set<std::string> untested(all.begin(), all.end());
  size_t cases = 0, ops = 0;
  for (const OpDef* op : all_ops()) {
    size_t written = 0;
    std::string why;
    for (size_t k = 0; k < op->samples.size(); ++k) try {
        written += write_case(root, *op, k);
      } catch (const Error& e) {
        if (e.code != Code::declined) throw;
        why = e.what();
      }
    if (size_t line = why.find('\n') + 1; !why.empty())
      fmt::print("{}: {} of {} samples: {}\n", op->name, written, op->samples.size(),
                 why.substr(line, why.find('\n', line) - line));
    if (written > 0) untested.erase(op->name);
    cases += written;
    ops += written > 0;
  }
  fmt::print("{} cases of {} ops\n", cases, ops);
  for (const std::string& op : untested) fmt::print("{} has a form and no case\n", op);
  return untested.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw invalid("usage: onnx_op_cases FOLDER");
  return run(argv[1]);
} catch (const std::exception& e) {
  fmt::print(stderr, "onnx_op_cases: {}\n", e.what());
  return 2;
}
