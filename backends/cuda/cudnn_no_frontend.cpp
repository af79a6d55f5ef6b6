// The graphs of a plugin that was built without cudnn-frontend: all are declined.
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/cudnn_convolution.h"

namespace tutti::cuda {
namespace {

[[noreturn]] void missing() {
  throw Error(Code::declined, "Tutti was built without cudnn-frontend",
              "run scripts/deps.sh --cuda before building, which fetches it");
}

}  // namespace

struct BuiltGraph {};

CudnnGraphs::CudnnGraphs(std::shared_ptr<const CudnnApi> api, GraphTarget target)
    : api_(std::move(api)), target_(std::move(target)) {}
std::shared_ptr<Tunable> CudnnGraphs::call(const GraphWork&) const { missing(); }

GraphWork attention_graph(const codegen::Attention&, bool) { missing(); }
GraphWork attention_grad_graph(const codegen::Attention&) { missing(); }
GraphWork convolution_graph(const codegen::Conv&, ConvKind) { missing(); }

}  // namespace tutti::cuda
