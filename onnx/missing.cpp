// For builds without protobuf: every function throws an error that says so.
#include "onnx/export.h"
#include "onnx/lower.h"
#include "onnx/model.h"
#include "onnx/raise.h"
#include "onnx/task.h"
#include "onnx/write.h"

namespace tutti::onnx {
namespace {

[[noreturn]] void missing(const std::string& path) {
  throw Error(Code::invalid, path + ": this build of tutti has no ONNX support",
              "install libprotobuf-dev and protobuf-compiler (scripts/deps.sh), then build again");
}

}  // namespace

Model read(const std::string& path, const ReadOptions&) { missing(path); }
Model parse(const std::string&, const std::string& path, const ReadOptions&) { missing(path); }
HostTensor read_tensor(const std::string& path) { missing(path); }
std::string element_name(ElementType) { return ""; }
std::optional<DType> dtype_of(ElementType) { return std::nullopt; }
ElementType element_type(DType) { return 0; }
std::string Node::text() const { return name; }
Values lower(const Model& model, Graph&, const std::map<std::string, Input>&, const LowerOptions&) {
  missing(model.path);
}
HostTensor narrowed(const HostTensor& t, const std::string&) { return t; }
void check_ops(const Model& model) { missing(model.path); }
std::vector<std::string> all_handlers() { return {}; }
std::optional<int64_t> fixed_batch(const Model& model) { missing(model.path); }
std::string bytes_of(const Model&, const std::string& path) { missing(path); }
void write(const std::string& path, const Model&) { missing(path); }
Model raise(const Graph&, const std::map<std::string, std::string>&) { missing("ONNX"); }
Model with_open_batch(const Model& a, const Model&, int64_t, int64_t) { missing(a.path); }
std::vector<std::string> all_forms() { return {}; }
Model exported(const std::string& checkpoint, const Task&, const TrainerOptions&, const InputLayout&,
               const ExportOptions&) {
  missing(checkpoint);
}
Model exported_with(HostTensors, const Task&, const TrainerOptions&, const InputLayout&, const ExportOptions&) {
  missing("ONNX");
}
std::string retrained(const std::string& original, const std::string&, const Task&, const TrainerOptions&,
                      const InputLayout&, const std::string&) {
  missing(original);
}
std::string with_weights(const std::string& original, const HostTensors&, const std::string&) { missing(original); }
std::string file_bytes(const std::string& path) { missing(path); }
HostTensors parted(const HostTensor&, const JoinedOutputs&) { missing("ONNX"); }
std::map<std::string, HostTensor> settings_of(const Model& model, const data::Source&) { missing(model.path); }
Task task(std::shared_ptr<const Model> model, const TaskOptions&) { missing(model->path); }
HostTensors weights(const Model& model, const Task&, const data::Source&) { missing(model.path); }
ModelDef read_definition(const std::string& path) { missing(path); }

}  // namespace tutti::onnx
