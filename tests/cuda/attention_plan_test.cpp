// Attention of a training step in a device's library: its operands are read and its results written where they lie, and
// its gradient gets y.
#include <gtest/gtest.h>

#include "nn/gpt2.h"
#include "tests/cuda/graph_plan.h"
#include "train/step/programs.h"
#include "train/task/tasks.h"

namespace tutti::cuda {
namespace {

constexpr int64_t layers = 2, tokens = 32;

struct Attentions : sdk::Library {
  struct Call {
    codegen::Attention a;
    bool backward;
  };
  bool forward_only = false, declines_when_run = false;

  codegen::LaunchList attention(const codegen::Attention& a, bool lse, const sdk::LibraryRequest& r) const override {
    if (a.dropout > 0) throw Error(Code::declined, "no dropout");
    if (declines_when_run && r.trial && !r.portable) throw Error(Code::declined, "not like this");
    return sdk::launch_of(std::make_shared<Call>(Call{a, false}), "attention", lse ? 5 : 4);
  }
  codegen::LaunchList attention_grad(const codegen::Attention& a, const sdk::LibraryRequest& r) const override {
    if (forward_only) throw Error(Code::declined, "no gradients");
    if (declines_when_run && r.trial && !r.portable) throw Error(Code::declined, "not like this");
    return sdk::launch_of(std::make_shared<Call>(Call{a, true}), "gradient", 10, 256);
  }
};

sdk::RenderedPlan gpt(const sdk::Library& library, double dropout = 0) {
  nn::Gpt2Options o{.vocabulary = 64, .positions = tokens, .layers = layers, .heads = 2, .width = 128};
  o.attention_dropout = dropout;
  nn::Gpt2 model(o);
  InputLayout rows{.name = "set"};
  for (const char* name : {"tokens", "next"}) {
    data::Column column;
    column.name = column.table = name;
    column.type = {DType::i32, {tokens}};
    rows.columns.push_back(column);
    rows.tables[name] = {DType::i32, {64, tokens}};
  }
  Graph g = Programs(language_model(nn::Layer(model)), {.precision = Precision::bf16}).training(rows, 4);
  return plan(g, &library);
}

struct Found {
  std::vector<Attentions::Call> forward, backward;
  int rendered = 0;  ///< launches
};
Found found(const sdk::RenderedPlan& p) {
  Found all;
  for (const sdk::PlannedLaunch& l : p.launches) {
    all.rendered += l.name.find("attention") != std::string::npos && !l.library;
    if (!l.library || l.name.find("attention") == std::string::npos) continue;
    const auto& call = *static_cast<const Attentions::Call*>(l.library.get());
    (call.backward ? all.backward : all.forward).push_back(call);
    if (!call.backward) continue;
    // Memory that the call reads is not written by it: y lives until its gradient has run.
    for (size_t in = 0; in < 7; ++in)
      for (size_t out = 7; out < l.buffers.size(); ++out) {
        const sdk::PlannedMemory &a = p.memories[l.buffers[in]], &b = p.memories[l.buffers[out]];
        EXPECT_NE(l.buffers[in], l.buffers[out]);
        bool both = a.place == sdk::Place::arena && b.place == sdk::Place::arena && a.block == b.block;
        EXPECT_FALSE(both && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes) << in << " and " << out;
      }
  }
  return all;
}

TEST(CudaPlans, AttentionRunsInTheLibrary) {
  Found all = found(gpt(Attentions()));
  ASSERT_EQ(all.forward.size(), size_t{layers});
  ASSERT_EQ(all.backward.size(), size_t{layers});
  EXPECT_EQ(all.rendered, 0);
  const Shape packed = {tokens * 384, 64, 384, 1}, turned = {tokens * 128, 64, 128, 1};
  for (const auto& list : {all.forward, all.backward})
    for (const Attentions::Call& c : list)
      for (size_t n = 0; n < 3; ++n) {
        EXPECT_EQ(c.a.at[n].strides, packed);
        EXPECT_EQ(c.a.at[n].offset, static_cast<int64_t>(n) * 128);
      }
  for (const Attentions::Call& c : all.forward) EXPECT_EQ(c.a.to[0].strides, turned);
  for (const Attentions::Call& c : all.backward) {
    ASSERT_TRUE(c.a.y.has_value());
    EXPECT_EQ(c.a.y->strides, turned) << "where forward has written it";
    for (size_t n = 0; n < 3; ++n) EXPECT_EQ(c.a.to[n].strides, packed);
  }
}

TEST(CudaPlans, AttentionsGradientIsRenderedIfTheLibraryDeclinesIt) {
  Attentions library;
  library.forward_only = true;
  Found all = found(gpt(library));
  EXPECT_EQ(all.forward.size(), size_t{layers});
  EXPECT_EQ(all.backward.size(), 0u);
  EXPECT_EQ(all.rendered, 2 * layers) << "dq, and dk with dv";
}

TEST(CudaPlans, AttentionIsRenderedWhereItLiesIfTheLibraryDeclinesItAtTheEnd) {
  Attentions library;
  sdk::RenderedPlan plain = gpt(sdk::Library());
  library.declines_when_run = true;
  sdk::RenderedPlan p = gpt(library);
  EXPECT_EQ(found(p).rendered, 3 * layers);
  EXPECT_EQ(p.launches.size(), plain.launches.size());
}

TEST(CudaPlans, AttentionWithDropoutIsRendered) {
  Found all = found(gpt(Attentions(), 0.1));
  EXPECT_EQ(all.forward.size() + all.backward.size(), 0u);
  EXPECT_EQ(all.rendered, 3 * layers);
}

}  // namespace
}  // namespace tutti::cuda
