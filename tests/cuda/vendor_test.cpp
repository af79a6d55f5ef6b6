// What cuBLASLt and cuDNN are told: the fakes obey their descriptors, and their results are compared with float64 sums.
#include "backends/cuda/vendor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/cuda/call.h"
#include "backends/cuda/driver.h"
#include "sdk/rendered/rendered.h"
#include "tests/codegen/cases.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/fake_host.h"
#include "tests/sdk/raw_program.h"
#include "tests/support/error_of.h"

namespace tutti::cuda {
namespace {

using codegen::cases::Array;
using codegen::cases::Case;
using test::error_from;
using testing::HasSubstr;

class Vendors : public testing::Test {
 protected:
  fake::FakeDevice fakes;
  fake::State& device = fakes.seen;
  fake::CublasState& products = fakes.products;
  fake::CudnnState& convolutions = fakes.convolutions;
  Current in{*fakes.context};

  Vendors() { device.memory = 64 << 20; }
  std::unique_ptr<const sdk::Library> library(bool tf32 = false) const { return fakes.library(tf32); }
};

[[maybe_unused]] const int traced = setenv("TUTTI_TRACE", "dispatch", 1);  // which is read once

/// Runs the call of a case on host memory; "" or how its result differs.
std::string run(const Case& c, const sdk::Library& library) {
  codegen::LaunchList work = c.by_library(library);
  if (work.launches.size() != 1 || !work.launches[0].library) return "not one call of the library";
  std::vector<std::vector<std::byte>> memory;
  for (const Array& a : c.inputs) memory.push_back(a.bytes());
  memory.emplace_back(c.expected[0].bytes().size(), std::byte{0x5A});
  for (uint64_t bytes : work.scratch_bytes) memory.emplace_back(bytes);
  std::vector<CUdeviceptr> buffers;
  for (int b : work.launches[0].buffers)
    buffers.push_back(reinterpret_cast<CUdeviceptr>(memory.at(static_cast<size_t>(b)).data()));
  static_cast<const Call*>(work.launches[0].library.get())->run(nullptr, buffers);
  const std::vector<std::byte>& y = memory[c.inputs.size()];
  Array got{c.expected[0].dtype, std::vector<double>(c.expected[0].at.size())};
  for (size_t i = 0; i < got.at.size(); ++i) got.at[i] = load_element(got.dtype, y.data(), i);
  return compare(c, {got});
}

bool empty(const Case& c) {
  return c.expected[0].at.empty() ||
         std::any_of(c.inputs.begin(), c.inputs.end(), [](auto& a) { return a.at.empty(); });
}

/// Every case by the library. Those that it declines by its nature are counted.
size_t all_right(const std::vector<Case>& cases, const sdk::Library& library) {
  size_t right = 0;
  for (const Case& c : cases) {
    if (empty(c)) continue;
    std::string wrong;
    Error e = error_from([&] { wrong = run(c, library); });
    if (e.code == Code::declined) continue;
    EXPECT_EQ(e.code, Code::ok) << c.name << ": " << e.what();
    EXPECT_EQ(wrong, "") << c.name;
    ++right;
  }
  return right;
}

TEST_F(Vendors, ProductsAreThoseOfTheRowMajorOperands) {
  for (size_t workspace : {size_t{0}, size_t{4096}}) {
    products.workspace = workspace;
    auto l = library();
    EXPECT_GE(all_right(codegen::cases::matmul_cases(), *l), 50u);
    EXPECT_EQ(products.compute, CUBLAS_COMPUTE_32F) << "f32 is f32, not TF32";
    EXPECT_EQ(products.schemes, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  EXPECT_EQ(products.descriptors, 0) << "nothing is left behind";
}

TEST_F(Vendors, BatchesOfOneStepAreTakenOthersDeclined) {
  auto l = library();
  codegen::Matmul p{DType::f32, 3, 4, 5, false, false, {2, 3}, {45, 15}, {0, 0}};
  EXPECT_EQ(error_from([&] { l->matmul(p); }).code, Code::ok);
  p.a_batch = {15, 0};  // each of two matrices three times
  Error e = error_from([&] { l->matmul(p); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_THAT(e.what(), HasSubstr("non-uniform strides"));
}

TEST_F(Vendors, ConvolutionsAndTheirGradientsFollowTheDescriptors) {
  convolutions.relu_takes_nan = true;
  for (size_t workspace : {size_t{0}, size_t{4096}}) {
    convolutions.workspace = workspace;
    auto l = library();
    EXPECT_GE(all_right(codegen::cases::conv_cases(), *l), 40u);
  }
  EXPECT_EQ(convolutions.descriptors, 0) << "nothing is left behind";
}

TEST_F(Vendors, SinglePrecisionUsesNoTensorCores) {
  auto l = library();
  codegen::Conv c{DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}};
  l->conv(c);
  EXPECT_EQ(convolutions.math, CUDNN_FMA_MATH);
  c.dtype = DType::f16;
  l->conv(c);
  EXPECT_EQ(convolutions.math, CUDNN_TENSOR_OP_MATH);
}

TEST_F(Vendors, Tf32IsUsedWhereItWasAskedFor) {
  auto l = library(true);
  l->matmul({DType::f32, 3, 4, 5});
  EXPECT_EQ(products.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  l->matmul({DType::bf16, 3, 4, 5});
  EXPECT_EQ(products.compute, CUBLAS_COMPUTE_32F);
  l->conv({DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}});
  EXPECT_EQ(convolutions.math, CUDNN_DEFAULT_MATH);
}

TEST(VendorOptions, AreF32OrTf32) {
  EXPECT_FALSE(wants_tf32({}));
  EXPECT_FALSE(wants_tf32({{"precision", "f32"}}));
  EXPECT_TRUE(wants_tf32({{"precision", "tf32"}}));
  EXPECT_THAT(error_from([] { wants_tf32({{"precision", "f64"}}); }).what(), HasSubstr("'f64'"));
  EXPECT_THAT(error_from([] { wants_tf32({{"threads", "2"}}); }).what(), HasSubstr("unknown option 'threads'"));
}

TEST_F(Vendors, WithoutAnAlgorithmItDeclines) {
  auto l = library();
  products.found = 0;
  Error e = error_from([&] { l->matmul({DType::f32, 3, 4, 5}); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_THAT(e.what(), HasSubstr("no algorithm"));
  convolutions.deterministic = false;
  e = error_from([&] { l->conv_dw({DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}}); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_THAT(e.what(), HasSubstr("no deterministic algorithm"));
}

TEST_F(Vendors, AWorkspaceBeyondTheLimitIsDeclined) {
  convolutions.workspace = size_t{1} << 30;
  EXPECT_EQ(error_from([&] {
              library()->conv({DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}});
            }).code,
            Code::declined);
}

TEST_F(Vendors, DescriptorsThatFailDeclineAndLeaveNothing) {
  auto l = library();
  int before = products.descriptors;
  products.failing["cublasLtMatrixLayoutCreate"] = CUBLAS_STATUS_ALLOC_FAILED;
  EXPECT_EQ(error_from([&] { l->matmul({DType::f32, 3, 4, 5}); }).code, Code::declined);
  EXPECT_EQ(products.descriptors, before);
  before = convolutions.descriptors;
  convolutions.failing["cudnnCreateConvolutionDescriptor"] = CUDNN_STATUS_ALLOC_FAILED;
  EXPECT_EQ(error_from([&] {
              l->conv({DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}});
            }).code,
            Code::declined);
  EXPECT_EQ(convolutions.descriptors, before);
}

TEST_F(Vendors, ACudnnForANewerCudaThanTheDriverIsDeclined) {
  auto start = [](int driver_version) { return Cudnn::start(fake::cudnn(), driver_version); };
  EXPECT_EQ(start(13000)->version(), "9.19");
  Error e = error_from([&] { start(12080); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_STREQ(e.what(), "the driver supports CUDA 12, but this cuDNN needs CUDA 13");
  EXPECT_EQ(e.remedy, "install cuDNN 9 for CUDA 12");
  convolutions.built_for = 12090;
  EXPECT_NO_THROW(start(12000)) << "a driver of the same major version";
  EXPECT_NO_THROW(start(13000));
  convolutions.failing["cudnnCreate"] = CUDNN_STATUS_NOT_INITIALIZED;
  EXPECT_THAT(error_from([&] { start(13000); }).what(), HasSubstr("cudnnCreate"));
}

TEST_F(Vendors, AnInstalledCudnnSaysForWhichCudaItIs) {
  Error e = error_from([] { Cudnn::open(11000); });  // older than the CUDA of any cuDNN that the headers allow
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_THAT(e.what(), testing::AnyOf(HasSubstr("the driver supports CUDA 11, but this cuDNN needs CUDA 1"),
                                       HasSubstr("cuDNN cannot be opened")));
}

TEST_F(Vendors, OtherDtypesAndAMissingLibraryDecline) {
  EXPECT_EQ(error_from([&] { library()->matmul({DType::f64, 3, 4, 5}); }).code, Code::declined);
  EXPECT_EQ(error_from([&] { join(nullptr, nullptr)->matmul({DType::f32, 3, 4, 5}); }).code, Code::declined);
}

TEST_F(Vendors, AFailingCallIsATypedError) {
  auto l = library();
  Case c = codegen::cases::matmul_cases().front();
  products.failing["cublasLtMatmul"] = CUBLAS_STATUS_EXECUTION_FAILED;
  Error e = error_from([&] { run(c, *l); });
  EXPECT_EQ(e.code, Code::internal);
  EXPECT_THAT(e.what(), HasSubstr("cublasLtMatmul"));
  products.failing["cublasLtMatmul"] = CUBLAS_STATUS_ALLOC_FAILED;
  EXPECT_EQ(error_from([&] { run(c, *l); }).code, Code::no_memory);
  c = codegen::cases::conv_cases().front();
  convolutions.failing["cudnnConvolutionForward"] = CUDNN_STATUS_EXECUTION_FAILED;
  EXPECT_EQ(error_from([&] { run(c, *l); }).code, Code::internal);
}

/// A session on the fake device with the fake libraries, and one step of Layer.
struct Step {
  std::unique_ptr<sdk::Session> session;
  std::unique_ptr<sdk::Executable> executable;

  explicit Step(const fake::FakeDevice& fakes, const sdk::Host& host = sdk::Host()) {
    auto log = [host](const std::string& line) { host.log(2, "cuda", line); };
    auto driver = std::make_unique<Driver>(
        fakes.libraries, find_devices(*fakes.libraries).at(0), [&] { return fakes.library(false, host); }, log);
    session = sdk::make_rendered_session(std::move(driver), host);
    executable = session->compile(sdk::Program::parse(test::MatmulBiasRelu(2, 3, 4).raw()), {});
  }
  void run() {
    executable->prepare();
    const float w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, b[4] = {-100, 0, 1, 2}, x[6] = {1, 0, -1, 2, 1, 0};
    session->write("w", w, sizeof w);
    session->write("b", b, sizeof b);
    for (int k = 0; k < 2; ++k) {  // both staging slots
      void* feed = nullptr;
      executable->stage({&feed, 1});
      std::memcpy(feed, x, sizeof x);
      session->wait(executable->run(), ~0ull);
    }
  }
  std::vector<float> y() {
    std::vector<float> all(8);
    session->read("y", all.data(), all.size() * sizeof all[0]);
    return all;
  }
};

TEST_F(Vendors, AStepRunsItsProductInTheGraph) {
  products.workspace = 1 << 16;
  products.relu_keeps_nan = true;
  Step step(fakes);
  int tried = products.products;
  step.run();
  EXPECT_EQ(device.compiled, 0u) << "the library's epilogue does all of it";
  EXPECT_EQ(step.y(), (std::vector<float>{0, 0, 0, 0, 0, 10, 14, 18}));
  EXPECT_EQ(products.products, tried + 2) << "one per slot, recorded; replays call nothing";
  EXPECT_EQ(device.count("cuGraphLaunch"), 2u);
  EXPECT_EQ(device.count("cuLaunchKernel"), 0u);
}

TEST_F(Vendors, AReluThatMakesANumberOfNanStaysApartFromItsProduct) {
  Step step(fakes);
  step.run();
  EXPECT_EQ(device.compiled, 2u) << "a pass for the bias and one for the ReLU, which this program does not group";
  EXPECT_EQ(products.epilogue, CUBLASLT_EPILOGUE_DEFAULT) << "the product is the library's still";
  EXPECT_GE(device.count("cuLaunchKernel"), 1u);
}

TEST_F(Vendors, ActivationsNobodyTriedAreDeclined) {
  Cublas untried(fake::cublas());
  codegen::Matmul p{DType::f32, 3, 4, 5};
  EXPECT_EQ(error_from([&] { untried.matmul(p); }).code, Code::ok);
  p.bias = p.relu = true;
  EXPECT_EQ(error_from([&] { untried.matmul(p); }).code, Code::declined);
}

TEST_F(Vendors, ACudnnThatTakesNoNanForItsReluLeavesItToAKernel) {
  codegen::Conv c{DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}};
  c.bias = c.relu = true;
  sdk::LibraryRequest request{.trial = true};
  Error e = error_from([&] { library()->conv(c, request); });
  EXPECT_EQ(e.code, Code::declined);
  convolutions.relu_takes_nan = true;
  EXPECT_EQ(error_from([&] { library()->conv(c, request); }).code, Code::ok);
  convolutions.relu_takes_nan = c.relu = false;
  EXPECT_EQ(error_from([&] { library()->conv(c, request); }).code, Code::ok) << "a bias alone is no activation";
}

TEST_F(Vendors, WorkspacesAreThoseThatTheLibraryAsksFor) {
  convolutions.workspace = 4096;  // its ranking says half
  codegen::Conv c{DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}};
  auto l = library();
  for (codegen::LaunchList work : {l->conv(c), l->conv_dx(c), l->conv_dw(c)})
    EXPECT_EQ(work.scratch_bytes, std::vector<uint64_t>{4096});
}

TEST_F(Vendors, AlgorithmsThatTransformAreForTf32Alone) {
  codegen::Conv c{DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}};
  sdk::LibraryRequest request{.trial = true};
  for (DType t : {DType::f32, DType::f16, DType::bf16}) {
    c.dtype = t;
    library()->conv(c, request);
    EXPECT_EQ(convolutions.used, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
    library()->conv_dx(c, request);
    EXPECT_EQ(convolutions.used, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
    library()->conv_dw(c, request);
    EXPECT_EQ(convolutions.used, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
  }
  c.dtype = DType::f32;
  library(true)->conv(c, request);
  EXPECT_EQ(convolutions.used, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
}

TEST_F(Vendors, TheWorkspaceIsPartOfThePlan) {
  auto arena = [&](size_t bytes) {
    products.workspace = bytes;
    products.relu_keeps_nan = true;
    Step step(fakes);
    return step.executable->memory().arena;
  };
  EXPECT_EQ(arena(1 << 16) - arena(0), size_t{1} << 16);
}

TEST_F(Vendors, WhereTheLibraryDeclinesThePortableKernelTakesTheNode) {
  products.found = 0;
  Step step(fakes);
  step.run();
  EXPECT_GE(device.compiled, 1u);
  EXPECT_EQ(products.products, 0);
  EXPECT_GE(device.count("cuLaunchKernel"), 1u);
}

TEST_F(Vendors, ACallThatFailsIsDeclinedWhilePlanningInTheLibrarysOwnWords) {
  fake::CacheHost host;
  products.failing["cublasLtMatmul"] = CUBLAS_STATUS_NOT_SUPPORTED;
  Step step(fakes, host.host());
  EXPECT_NO_THROW(step.run());
  EXPECT_GE(device.count("cuLaunchKernel"), 1u) << "a rendered kernel computes it";
  EXPECT_THAT(host.lines, testing::Contains(HasSubstr("cublasLtMatmul: as the test wanted")));
}

TEST_F(Vendors, TheFirstUseOfACallIsNotInACapture) {
  Step step(fakes);  // whose libraries allocate when an algorithm is used for the first time
  step.run();
  EXPECT_EQ(device.count("cuGraphLaunch"), 2u);
}

TEST_F(Vendors, ACallThatThereWasNoRoomToTryIsCapturedAllTheSame) {
  device.failing["cuMemAlloc"] = CUDA_ERROR_OUT_OF_MEMORY;
  Step step(fakes);
  EXPECT_EQ(products.products, 0) << "nothing could be tried";
  device.failing.clear();
  step.run();
  EXPECT_EQ(device.count("cuGraphLaunch"), 2u) << "what its first use allocates does not end a capture";
}

TEST_F(Vendors, AStepThatCannotBeCapturedIsLaunchedOneByOne) {
  fake::CacheHost host;
  products.relu_keeps_nan = true;
  device.failing["cuGraphInstantiate"] = CUDA_ERROR_NOT_SUPPORTED;
  Step step(fakes, host.host());
  step.run();
  EXPECT_EQ(step.y(), (std::vector<float>{0, 0, 0, 0, 0, 10, 14, 18}));
  EXPECT_EQ(device.count("cuGraphLaunch"), 0u);
  EXPECT_EQ(std::count_if(host.lines.begin(), host.lines.end(),
                          [](auto& l) { return l.find("one by one") != std::string::npos; }),
            1)
      << "said once, though two slots were recorded";
}

}  // namespace
}  // namespace tutti::cuda
