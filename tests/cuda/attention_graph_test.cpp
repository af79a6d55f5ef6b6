// Attention by cuDNN's graph API over a cuDNN in host memory, whose nodes cudnn-frontend defines.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "tests/cuda/graph_fixture.h"
#include "tests/support/error_of.h"

namespace tutti::cuda {
namespace {

using codegen::cases::Case;
using AttentionGraphs = Graphs;

codegen::Attention some(DType t = DType::bf16) {
  codegen::Attention a{t, 1, 2, 2, 8, 8, 16, 16};
  for (auto& at : a.at) at = {t, {256, 128, 16, 1}};
  for (auto& to : a.to) to = {t, {256, 128, 16, 1}};
  a.y = codegen::Operand{t, {256, 128, 16, 1}};
  return a;
}

TEST_F(AttentionGraphs, AgreeWithFloat64) {
  auto l = library();
  for (DType t : {DType::bf16, DType::f16})
    for (const Case& c : codegen::cases::library_attention_cases(t)) {
      SCOPED_TRACE(c.name);
      EXPECT_EQ(codegen::cases::compare(c, run(c, c.by_library(*l))), "");
    }
  EXPECT_EQ(graphs.executed, 16u);
}

TEST_F(AttentionGraphs, OfOneDescriptionAreBuiltOnce) {
  auto l = library();
  codegen::LaunchList one = l->attention(some(), true);
  size_t before = graphs.descriptors;
  codegen::LaunchList two = l->attention(some(), true);
  EXPECT_EQ(graphs.descriptors, before);
  l->attention(some(), false);
  EXPECT_GT(graphs.descriptors, before);
}

TEST_F(AttentionGraphs, LeaveNoDescriptor) {
  { library()->attention_grad(some()); }
  EXPECT_EQ(graphs.descriptors, 0u);
}

TEST_F(AttentionGraphs, TakeTheNextPlanIfOneCannotBeBuilt) {
  graphs.refused = 1;
  graphs.workspace = 0;
  EXPECT_TRUE(library()->attention(some(), true).scratch_bytes.empty());
  graphs.refused = graphs.configurations;
  EXPECT_EQ(test::error_from([&] { library()->attention(some(), true); }).code, Code::declined);
}

TEST_F(AttentionGraphs, AreDeclinedIfTheyNeedMuchMemory) {
  graphs.workspace = (int64_t{1} << 30) + 1;
  EXPECT_EQ(test::error_from([&] { library()->attention_grad(some()); }).code, Code::declined);
}

TEST_F(AttentionGraphs, AreDeclinedIfATrialFails) {
  graphs.fails = true;
  sdk::LibraryRequest trial{.trial = true};
  auto l = library(fakes.tuner());
  EXPECT_EQ(test::error_from([&] { l->attention(some(), true, trial); }).code, Code::declined);
  graphs.fails = false;
  EXPECT_EQ(test::error_from([&] { l->attention(some(), true, trial); }).code, Code::declined) << "decided once";
}

TEST_F(AttentionGraphs, AreDeclinedForWhatCudnnComputesInAnotherWay) {
  auto l = library();
  auto why = [&](const auto& change) {
    codegen::Attention a = some();
    change(a);
    return std::string(test::error_from([&] { l->attention_grad(a); }).what());
  };
  EXPECT_THAT(why([](auto& a) { a = some(DType::f32); }), testing::HasSubstr("not f32"));
  EXPECT_THAT(why([](auto& a) { a.mask = a.at[0]; }), testing::HasSubstr("masks"));
  EXPECT_THAT(why([](auto& a) { a.dropout = 0.1; }), testing::HasSubstr("random numbers"));
  EXPECT_THAT(why([](auto& a) { a.y.reset(); }), testing::HasSubstr("from y"));
  EXPECT_THAT(why([](auto& a) { a.at[1].offset = 4; }), testing::HasSubstr("16 bytes"));
}

TEST_F(AttentionGraphs, NeedACapability) {
  CudnnApi api = fake::cudnn();
  api.library = dlopen(nullptr, RTLD_NOW);
  auto l = join(nullptr, std::make_shared<Cudnn>(api));
  EXPECT_EQ(test::error_from([&] { l->attention(some(), true); }).code, Code::declined);
}

}  // namespace
}  // namespace tutti::cuda
