// What lowering says of nodes that have too few, too many or the wrong inputs: never nothing.
#include <gtest/gtest.h>

#include "onnx/format.pb.h"
#include "onnx/lower.h"
#include "onnx/model.h"

namespace tutti::onnx {
namespace {

/// y = OP(x0, x1, …) of `count` inputs of that type: the first `fed` are inputs of the model, the others initializers.
pb::Model model_of(const std::string& op, size_t count, const TensorType& type, size_t fed) {
  pb::Model m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(21);
  auto* classical = m.add_opset_import();
  classical->set_domain("ai.onnx.ml");
  classical->set_version(3);
  pb::Graph& g = *m.mutable_graph();
  pb::Node& n = *g.add_node();
  n.set_name("the node");
  size_t dot = op.rfind('.');
  n.set_op_type(dot == std::string::npos ? op : op.substr(dot + 1));
  if (dot != std::string::npos) n.set_domain(op.substr(0, dot));
  for (size_t k = 0; k < count; ++k) {
    std::string name = "x" + std::to_string(k);
    n.add_input(name);
    if (k < fed) {
      pb::Port& p = *g.add_input();
      p.set_name(name);
      p.mutable_type()->mutable_tensor_type()->set_elem_type(element_type(type.dtype));
      continue;
    }
    pb::Tensor& t = *g.add_initializer();
    t.set_name(name);
    t.set_data_type(element_type(type.dtype));
    for (int64_t d : type.shape) t.add_dims(d);
    t.set_raw_data(std::string(num_bytes(type), '\0'));
  }
  n.add_output("y");
  pb::Port& y = *g.add_output();
  y.set_name("y");
  y.mutable_type()->mutable_tensor_type()->set_elem_type(1);
  return m;
}

/// The refusal of a model, or "" if it can be computed.
std::string refusal(const pb::Model& m, const TensorType& type) {
  const std::string prefix = "m.onnx: node 0 'the node' (" + m.graph().node(0).op_type() + "): ";
  try {
    Model model = parse(m.SerializeAsString(), "m.onnx");
    Graph g;
    std::map<std::string, Input> inputs;
    for (const Port& p : model.inputs) inputs[p.name] = {g.feed(p.name, type), nullptr};
    lower(model, g, inputs);
    return "";
  } catch (const Error& e) {
    std::string text = e.what();
    EXPECT_EQ(e.code, Code::invalid) << text;
    EXPECT_FALSE(e.remedy.empty()) << text;
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    EXPECT_GT(text.size(), prefix.size() + 5) << text;
    return text;
  } catch (const std::exception& e) {
    ADD_FAILURE() << prefix << "no Error but '" << e.what() << "'";
    return "";
  }
}

TEST(OnnxRefusals, AlwaysSayWhy) {
  size_t refused = 0, taken = 0;
  for (const std::string& op : all_handlers())
    for (DType dtype : {DType::f32, DType::i32, DType::boolean})
      for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{2, 3, 4, 4}, Shape{0}})
        for (size_t count : {0, 1, 2, 3, 5, 9})
          for (size_t fed : count < 2 ? std::vector<size_t>{count} : std::vector<size_t>{1, count}) {
            SCOPED_TRACE(op + " of " + std::to_string(count) + " " + to_string(TensorType{dtype, shape}));
            TensorType type{dtype, shape};
            (refusal(model_of(op, count, type, fed), type).empty() ? taken : refused) += 1;
          }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(taken, 1000u);
}

}  // namespace
}  // namespace tutti::onnx
