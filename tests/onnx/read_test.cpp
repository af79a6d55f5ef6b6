// Files that are not what they say: one message each, naming file and place; nothing half-loaded.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "onnx/format.pb.h"
#include "onnx/lower.h"
#include "onnx/model.h"
#include "tests/support/error_of.h"
#include "tests/support/folder.h"

namespace tutti::onnx {
namespace {

using test::error_from;
using test::error_of;
using testing::Test;

void add_port(pb::Port& p, const std::string& name, const std::vector<int64_t>& shape) {
  p.set_name(name);
  p.mutable_type()->mutable_tensor_type()->set_elem_type(1);
  auto* dims = p.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int64_t d : shape) dims->add_dim()->set_dim_value(d);
}

void add_node(pb::Graph& g, const std::string& op, const std::vector<std::string>& in, const std::string& out) {
  pb::Node& n = *g.add_node();
  n.set_op_type(op);
  n.set_name("the " + op);
  for (const std::string& name : in) n.add_input(name);
  n.add_output(out);
}

/// y = relu(x w) for x [2, 3].
pb::Model small() {
  pb::Model m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  pb::Graph& g = *m.mutable_graph();
  add_port(*g.add_input(), "x", {2, 3});
  add_port(*g.add_output(), "y", {2, 4});
  pb::Tensor& w = *g.add_initializer();
  w.set_name("w");
  w.set_data_type(1);
  w.add_dims(3);
  w.add_dims(4);
  for (int k = 0; k < 12; ++k) w.add_float_data(static_cast<float>(k));
  add_node(g, "MatMul", {"x", "w"}, "z");
  add_node(g, "Relu", {"z"}, "y");
  return m;
}

/// What reading says of the model after a change.
template <class F>
std::string after(F&& change) {
  pb::Model m = small();
  change(m);
  return error_of([&] { parse(m.SerializeAsString(), "m.onnx"); });
}

testing::AssertionResult says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos) return testing::AssertionFailure() << "no '" << part << "' in: " << text;
  return testing::AssertionSuccess();
}

/// Reads and lowers; only a tutti::Error may stop it.
bool loads(const std::string& bytes) {
  try {
    Model m = parse(bytes, "m.onnx");
    Graph g;
    std::map<std::string, Input> inputs;
    for (const Port& p : m.inputs) inputs[p.name] = {g.feed(p.name, {DType::f32, {2, 3}}), nullptr};
    lower(m, g, inputs);
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::invalid) << e.what();
    EXPECT_FALSE(e.remedy.empty()) << e.what();
    return false;
  }
}

TEST(OnnxRead, TakesASoundModel) {
  Model m = parse(small().SerializeAsString(), "m.onnx");
  EXPECT_EQ(m.opset, 17);
  EXPECT_EQ(m.nodes.size(), 2u);
  EXPECT_EQ(m.weights.at("w").type, (TensorType{DType::f32, {3, 4}}));
  EXPECT_TRUE(loads(small().SerializeAsString()));
}

TEST(OnnxRead, TakesNodesOfAnyOrderOpenSizesAndRepeatedOpsets) {
  pb::Model m = small();
  pb::Graph& g = *m.mutable_graph();
  g.mutable_node()->SwapElements(0, 1);
  g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(-1);
  m.add_opset_import()->set_version(11);
  Model read = parse(m.SerializeAsString(), "m.onnx");
  EXPECT_EQ(read.nodes.at(0).op, "MatMul");
  EXPECT_EQ(read.nodes.at(0).place, 1u);
  EXPECT_EQ(read.inputs.at(0).shape, (Shape{-1, 3}));
  EXPECT_EQ(read.opset, 11);
  EXPECT_TRUE(loads(m.SerializeAsString()));
}

TEST(OnnxRead, NamesFileAndPlaceOfWhatIsWrong) {
  auto weight = [](pb::Model& m) -> pb::Tensor& { return *m.mutable_graph()->mutable_initializer(0); };
  EXPECT_TRUE(says(after([&](auto& m) { weight(m).set_dims(0, 5); }), {"m.onnx", "initializer 'w'", "[5, 4]", "12"}));
  EXPECT_TRUE(says(after([&](auto& m) { weight(m).set_dims(0, int64_t{1} << 39); }), {"initializer 'w'", "12"}));
  EXPECT_TRUE(says(after([&](auto& m) { weight(m).set_dims(0, -1); }), {"initializer 'w'", "-1"}));
  EXPECT_TRUE(says(after([&](auto& m) { weight(m).set_raw_data("abc"); }), {"initializer 'w'", "[3, 4]"}));
  EXPECT_TRUE(says(after([&](auto& m) { weight(m).set_data_type(8); }), {"initializer 'w'", "STRING"}));
  EXPECT_TRUE(says(after([&](auto& m) { weight(m).set_data_type(99); }), {"initializer 'w'", "type 99"}));
  EXPECT_TRUE(says(after([](auto& m) { m.mutable_opset_import(0)->set_version(6); }), {"opset 6", "7 to 26"}));
  EXPECT_TRUE(says(after([](auto& m) { m.mutable_opset_import(0)->set_version(27); }), {"opset 27", "7 to 26"}));
  EXPECT_TRUE(says(after([](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "y"); }),
                   {"has a cycle: node 0 'the MatMul' (MatMul), which reads a result of node 1 'the Relu' (Relu)"}));
  EXPECT_TRUE(says(after([](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "q"); }), {"'q'", "no node"}));
  EXPECT_TRUE(says(after([](auto& m) { m.mutable_graph()->mutable_node(1)->set_output(0, "z"); }), {"'z'", "already"}));
  EXPECT_TRUE(says(after([](auto& m) { m.mutable_graph()->mutable_output(0)->set_name("q"); }), {"output 'q'"}));
  EXPECT_TRUE(says(after([](auto& m) { m.clear_graph(); }), {"m.onnx", "graph"}));
  EXPECT_TRUE(says(error_of([] { parse("no model at all", "m.onnx"); }), {"m.onnx"}));
}

TEST(OnnxRead, ListsEveryUnknownOp) {
  pb::Model m = small();
  m.mutable_graph()->mutable_node(0)->set_op_type("Frobnicate");
  m.mutable_graph()->mutable_node(1)->set_domain("com.example");
  Model read = parse(m.SerializeAsString(), "m.onnx");
  EXPECT_TRUE(says(error_of([&] { check_ops(read); }),
                   {"node 0 'the MatMul' (Frobnicate), opset 17", "node 1", "com.example"}));
}

TEST(OnnxRead, WeightsOfOtherFilesStayInTheFolder) {
  test::Folder folder;
  pb::Model m = small();
  pb::Tensor& w = *m.mutable_graph()->mutable_initializer(0);
  w.clear_float_data();
  w.set_data_location(1);
  auto put = [&](const std::string& key, const std::string& value) {
    pb::Entry& e = *w.add_external_data();
    e.set_key(key);
    e.set_value(value);
  };
  auto failure = [&] { return error_of([&] { read(folder.write("m.onnx", m.SerializeAsString())); }); };
  put("location", "w.bin");
  EXPECT_TRUE(says(failure(), {"initializer 'w'", "w.bin"}));
  folder.write("w.bin", std::string(47, '\0'));
  EXPECT_TRUE(says(failure(), {"47", "12"}) || says(failure(), {"initializer 'w'", "11"})) << failure();
  folder.write("w.bin", std::string(48, '\0'));
  EXPECT_EQ(read(folder.write("m.onnx", m.SerializeAsString())).weights.at("w").bytes.size(), 48u);
  put("offset", "4");
  EXPECT_TRUE(says(failure(), {"initializer 'w'"}));
  for (const char* bad : {"../w.bin", "/etc/hostname", "", "a/../../w.bin"}) {
    w.mutable_external_data(0)->set_value(bad);
    EXPECT_TRUE(says(failure(), {"initializer 'w'", "inside the model's folder"})) << bad;
  }
}

// As Hugging Face's cache keeps them; what onnxruntime follows and what it refuses.
TEST(OnnxRead, LinksLeadToWhereTheModelItselfIsKept) {
  namespace fs = std::filesystem;
  test::Folder folder;
  pb::Model m = small();
  pb::Tensor& w = *m.mutable_graph()->mutable_initializer(0);
  w.clear_float_data();
  w.set_data_location(1);
  pb::Entry& e = *w.add_external_data();
  e.set_key("location");
  e.set_value("w.bin");
  for (const char* name : {"blobs", "snapshot", "elsewhere", "plain/inner"}) fs::create_directories(folder / name);
  for (const char* name : {"blobs/b", "elsewhere/b", "plain/inner/b"}) folder.write(name, std::string(48, '\0'));
  folder.write("blobs/a", m.SerializeAsString());
  folder.write("plain/m.onnx", m.SerializeAsString());
  auto read_with = [&](const std::string& model, const std::string& target) {
    fs::path at = fs::path(folder / model).parent_path() / "w.bin";
    fs::remove(at);
    fs::create_symlink(target, at);
    return read(folder / model).weights.at("w").bytes.size();
  };
  fs::create_symlink("../blobs/a", folder / "snapshot/m.onnx");
  EXPECT_EQ(read_with("snapshot/m.onnx", "../blobs/b"), 48u);
  EXPECT_EQ(read_with("plain/m.onnx", "inner/b"), 48u);
  fs::create_symlink("plain", folder / "linked");
  EXPECT_EQ(read(folder / "linked/m.onnx").weights.at("w").bytes.size(), 48u);
  for (const char* model : {"snapshot/m.onnx", "plain/m.onnx"})
    EXPECT_TRUE(says(error_of([&] { read_with(model, "../elsewhere/b"); }),
                     {"initializer 'w'", "'w.bin' is a link to", "elsewhere/b", "link both into one folder"}));
  EXPECT_TRUE(says(error_of([&] { read_with("plain/m.onnx", "nothing"); }), {"is not in the model's folder"}));
}

TEST(OnnxRead, EveryCutAndEveryChangedByteIsAnErrorOrAModel) {
  std::string bytes = small().SerializeAsString();
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(loads(bytes.substr(0, n)) && n < 40) << n;
  size_t sound = 0;
  for (size_t k = 0; k < bytes.size(); ++k)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[k] = static_cast<char>(changed[k] ^ (1 << bit));
      sound += loads(changed);
    }
  EXPECT_GT(sound, 0u);  // a weight's bytes may hold anything
}

TEST(OnnxLower, DoesNotComputeLargeTensorsForAShape) {
  pb::Model m = small();
  pb::Graph& g = *m.mutable_graph();
  g.clear_node();
  pb::Tensor& size = *g.add_initializer();
  size.set_name("size");
  size.set_data_type(7);
  size.add_dims(1);
  size.add_int64_data(int64_t{1} << 36);
  pb::Tensor& zero = *g.add_initializer();
  zero = size;
  zero.set_name("zero");
  zero.set_int64_data(0, 0);
  add_node(g, "ConstantOfShape", {"size"}, "large");
  add_node(g, "Cast", {"large"}, "numbers");
  pb::Attribute& to = *g.mutable_node(1)->add_attribute();
  to.set_name("to");
  to.set_type(2);
  to.set_i(6);
  add_node(g, "Gather", {"numbers", "zero"}, "shape");
  add_node(g, "Expand", {"x", "shape"}, "y");
  Model read = parse(m.SerializeAsString(), "m.onnx");
  Graph graph;
  Value x = graph.feed("x", {DType::f32, {2, 3}});
  EXPECT_TRUE(says(error_of([&] { lower(read, graph, {{"x", {x, nullptr}}}); }), {"node 2", "2147483648"}));
}

/// What lowering says of y = OP(x, n…) with these integers as inputs and attributes.
std::string lowering_error(const std::string& op, const std::vector<std::vector<int64_t>>& inputs,
                           const std::map<std::string, std::vector<int64_t>>& attributes = {}) {
  pb::Model m = small();
  pb::Graph& g = *m.mutable_graph();
  g.clear_node();
  std::vector<std::string> names = {"x"};
  for (const auto& numbers : inputs) {
    pb::Tensor& t = *g.add_initializer();
    t.set_name(names.emplace_back("n" + std::to_string(names.size())));
    t.set_data_type(7);
    t.add_dims(static_cast<int64_t>(numbers.size()));
    for (int64_t n : numbers) t.add_int64_data(n);
  }
  add_node(g, op, names, "y");
  for (const auto& [name, numbers] : attributes) {
    pb::Attribute& a = *g.mutable_node(0)->add_attribute();
    a.set_name(name);
    a.set_type(numbers.size() == 1 ? 2 : 7);
    a.set_i(numbers[0]);
    for (int64_t n : numbers) a.add_ints(n);
  }
  Model read = parse(m.SerializeAsString(), "m.onnx");
  Graph graph;
  Value x = graph.feed("x", {DType::f32, {2, 3}});
  Error e = error_from([&] { lower(read, graph, {{"x", {x, nullptr}}}); });
  EXPECT_EQ(e.code, Code::invalid) << e.what();
  EXPECT_FALSE(e.remedy.empty()) << e.what();
  EXPECT_TRUE(says(e.what(), {"m.onnx: node 0 'the " + op + "' (" + op + ")"}));
  return e.what();
}

// Numbers that no machine holds: an error before anything overflows, is divided by zero or allocated.
TEST(OnnxLower, HugeAndMissingNumbersAreErrors) {
  constexpr int64_t huge = int64_t{1} << 62, most = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(says(lowering_error("Expand", {{huge, huge, 2, 3}}), {"more than 2^62 elements"}));
  EXPECT_TRUE(says(lowering_error("Tile", {{huge, huge}}), {"more than 2^62 elements"}));
  EXPECT_TRUE(says(lowering_error("Reshape", {{most, most}}), {"6 elements cannot be reshaped"}));
  EXPECT_TRUE(says(lowering_error("Reshape", {{huge, -1}}), {"[2, 3]"}));
  EXPECT_TRUE(says(lowering_error("Reshape", {{2, -255}}), {"every dimension must be >= 0"}));
  EXPECT_TRUE(says(lowering_error("Pad", {{most, most, most, most}}), {"more than 2^62 elements"}));
  EXPECT_TRUE(says(lowering_error("Trilu", {{}}), {"k has 0 elements, expected 1"}));
  EXPECT_TRUE(says(lowering_error("CumSum", {{}}), {"axis has 0 elements, expected 1"}));
  EXPECT_TRUE(says(lowering_error("CumSum", {{7}}), {"axis 7 is out of range for a tensor of rank 2"}));
  EXPECT_TRUE(says(lowering_error("LRN", {}, {{"size", {most}}}), {"size 2147483648"}));
  EXPECT_TRUE(
      says(lowering_error("Split", {}, {{"num_outputs", {most}}}), {"num_outputs is 2147483648, but the node has 1"}));
  EXPECT_TRUE(says(lowering_error("DepthToSpace", {}, {{"blocksize", {most}}}), {"must be [N, C, H, W]"}));
  EXPECT_TRUE(says(lowering_error("Transpose", {}, {{"perm", {48, 1}}}), {"axis 48"}));
  EXPECT_TRUE(says(lowering_error("Col2Im", {{4, 4}, {0, 2}}), {"must have rank 3"}));
}

TEST(OnnxLower, SaysWhichInputDoesNotFit) {
  Model m = parse(small().SerializeAsString(), "m.onnx");
  Graph g;
  EXPECT_TRUE(says(error_of([&] { lower(m, g, {}); }), {"m.onnx", "'x'", "FLOAT [2, 3]"}));
  Value wrong = g.feed("x", {DType::f32, {2, 5}});
  EXPECT_TRUE(says(error_of([&] { lower(m, g, {{"x", {wrong, nullptr}}}); }), {"'x'", "f32[2, 5]"}));
}

}  // namespace
}  // namespace tutti::onnx
