// The modules of kernels with cooperative matrices: every matrix has a component type that is declared before it.
#include "backends/vulkan/cooperative.h"

#include <gtest/gtest.h>

#include <map>

#include "backends/vulkan/compiler.h"
#include "backends/vulkan/matrix_probe.h"
#include "kernels/codegen/kernel.h"
#include "tests/sdk/rendered/fake_driver.h"

namespace tutti::vulkan {
namespace {

constexpr uint32_t op_type_float = 22, op_type_matrix = 4456, op_load = 4457, op_store = 4458, op_multiply = 4459;

TEST(CooperativeModules, MatricesHaveFloatComponents) {
  codegen::Target t;
  t.language = &codegen::Language::glsl();
  t.half_storage = true;
  t.subgroup = 32;
  t.cooperative = {{16, 16, 16}};
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      codegen::Matmul p{DType::f16, 72, 41, 33, ta, tb};
      p.bias = true;
      p.relu = true;
      const codegen::LaunchList list = codegen::matmul(t, p);
      ASSERT_EQ(list.launches[0].name, "matmul_coop");
      const codegen::KernelSource source = codegen::render(t, *list.launches[0].kernel);
      EXPECT_TRUE(source.whole_subgroups);
      const std::vector<uint32_t> words = compile_glsl(source.text);
      std::map<uint32_t, uint32_t> floats, count;  // bits of a type; instructions by number
      std::vector<uint32_t> bits;                  // of the matrices' components
      for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
        const uint32_t op = words[at] & 0xffff;
        ++count[op];
        if (op == op_type_float) floats[words[at + 1]] = words[at + 2];
        if (op == op_type_matrix) bits.push_back(floats[words[at + 2]]);
      }
      std::sort(bits.begin(), bits.end());
      EXPECT_EQ(bits, (std::vector<uint32_t>{16, 16, 32}));
      EXPECT_EQ(count[op_type_float], 2u);
      for (uint32_t op : {op_load, op_store, op_multiply}) EXPECT_GT(count[op], 0u) << op;
    }
}

TEST(CooperativeModules, OthersStayAsTheyAre) {
  const std::vector<uint32_t> words = compile_glsl("#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n");
  EXPECT_EQ(with_component_types(words), words);
}

std::shared_ptr<test::Tape> tape_with_matrices() {
  auto tape = std::make_shared<test::Tape>();
  sdk::Traits& t = tape->traits;
  t.language = &codegen::Language::glsl();
  t.half_storage = true;
  t.subgroup = 32;
  t.max_local = 256;
  t.cooperative = {{16, 16, 16}};
  return tape;
}

TEST(CooperativeProbe, FindsWrongNumbers) {
  auto tape = tape_with_matrices();
  std::string why = declines_cooperative_matrices(*test::make_fake_driver(tape));  // whose kernels do nothing
  EXPECT_NE(why.find("element 0 of a product is 0, expected "), std::string::npos) << why;
  EXPECT_EQ(tape->built.size(), 1u);
  EXPECT_TRUE(tape->memory.empty());
}

TEST(CooperativeProbe, FindsKernelsThatAreNotBuilt) {
  auto tape = tape_with_matrices();
  tape->build_fails_at = 0;
  EXPECT_NE(declines_cooperative_matrices(*test::make_fake_driver(tape)), "");
  EXPECT_TRUE(tape->memory.empty());
}

TEST(CooperativeProbe, AsksNothingOfDevicesWithoutThem) {
  auto tape = tape_with_matrices();
  tape->traits.cooperative.clear();
  EXPECT_EQ(declines_cooperative_matrices(*test::make_fake_driver(tape)), "");
  EXPECT_TRUE(tape->built.empty());
}

}  // namespace
}  // namespace tutti::vulkan
