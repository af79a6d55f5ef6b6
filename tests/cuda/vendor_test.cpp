// What cuBLASLt and cuDNN are told: the fakes obey their descriptors, and their results are compared with float64 sums.
#include "backends/cuda/vendor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cuda/call.h"
#include "backends/cuda/driver.h"
#include "sdk/rendered.h"
#include "tests/cuda/fake_cublas.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_cudnn.h"
#include "tests/dialect/cases.h"
#include "tests/sdk/raw_program.h"
#include "tests/support/error_of.h"

namespace tutti::cuda {
namespace {

using dialect::cases::Array;
using dialect::cases::Case;
using test::error_from;
using testing::HasSubstr;

class Vendors : public testing::Test {
 protected:
  fake::State& device = fake::reset();
  fake::CublasState& products = fake::reset_cublas();
  fake::CudnnState& convolutions = fake::reset_cudnn();

  static std::unique_ptr<const sdk::Library> library() {
    return join(std::make_shared<Cublas>(fake::cublas()), std::make_shared<Cudnn>(fake::cudnn()));
  }
};

/// Runs the call of a case on host memory; "" or how its result differs.
std::string run(const Case& c, const sdk::Library& library) {
  dialect::Work work = c.by_library(library);
  if (work.dispatches.size() != 1 || !work.dispatches[0].library) return "not one call of the library";
  std::vector<std::vector<std::byte>> memory;
  for (const Array& a : c.inputs) memory.push_back(a.bytes());
  memory.emplace_back(c.expected[0].bytes().size(), std::byte{0x5A});
  for (uint64_t bytes : work.scratch_bytes) memory.emplace_back(bytes);
  std::vector<CUdeviceptr> buffers;
  for (int b : work.dispatches[0].buffers)
    buffers.push_back(reinterpret_cast<CUdeviceptr>(memory.at(static_cast<size_t>(b)).data()));
  static_cast<const Call*>(work.dispatches[0].library.get())->run(nullptr, buffers);
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
    EXPECT_GE(all_right(dialect::cases::matmul_cases(), *l), 50u);
    EXPECT_EQ(products.compute, CUBLAS_COMPUTE_32F) << "f32 is f32, not TF32";
    EXPECT_EQ(products.schemes, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  EXPECT_EQ(products.descriptors, 0) << "nothing is left behind";
}

TEST_F(Vendors, BatchesOfOneStepAreTakenOthersDeclined) {
  auto l = library();
  dialect::Matmul p{DType::f32, 3, 4, 5, false, false, {2, 3}, {45, 15}, {0, 0}};
  EXPECT_EQ(error_from([&] { l->matmul(p); }).code, Code::ok);
  p.a_batch = {15, 0};  // each of two matrices three times
  Error e = error_from([&] { l->matmul(p); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_THAT(e.what(), HasSubstr("uneven strides"));
}

TEST_F(Vendors, ConvolutionsAndTheirGradientsFollowTheDescriptors) {
  for (size_t workspace : {size_t{0}, size_t{4096}}) {
    convolutions.workspace = workspace;
    auto l = library();
    EXPECT_GE(all_right(dialect::cases::conv_cases(), *l), 40u);
  }
  EXPECT_EQ(convolutions.descriptors, 0) << "nothing is left behind";
}

TEST_F(Vendors, SinglePrecisionUsesNoTensorCores) {
  auto l = library();
  dialect::Conv c{DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}};
  l->conv(c);
  EXPECT_EQ(convolutions.math, CUDNN_FMA_MATH);
  c.dtype = DType::f16;
  l->conv(c);
  EXPECT_EQ(convolutions.math, CUDNN_TENSOR_OP_MATH);
}

TEST_F(Vendors, Tf32IsUsedWhereItWasAskedFor) {
  auto l = join(std::make_shared<Cublas>(fake::cublas(), true), std::make_shared<Cudnn>(fake::cudnn(), true));
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

TEST_F(Vendors, OtherDtypesAndAMissingLibraryDecline) {
  EXPECT_EQ(error_from([&] { library()->matmul({DType::f64, 3, 4, 5}); }).code, Code::declined);
  EXPECT_EQ(error_from([&] { join(nullptr, nullptr)->matmul({DType::f32, 3, 4, 5}); }).code, Code::declined);
}

TEST_F(Vendors, AFailingCallIsATypedError) {
  auto l = library();
  Case c = dialect::cases::matmul_cases().front();
  products.failing["cublasLtMatmul"] = CUBLAS_STATUS_EXECUTION_FAILED;
  Error e = error_from([&] { run(c, *l); });
  EXPECT_EQ(e.code, Code::internal);
  EXPECT_THAT(e.what(), HasSubstr("cublasLtMatmul"));
  products.failing["cublasLtMatmul"] = CUBLAS_STATUS_ALLOC_FAILED;
  EXPECT_EQ(error_from([&] { run(c, *l); }).code, Code::no_memory);
  c = dialect::cases::conv_cases().front();
  convolutions.failing["cudnnConvolutionForward"] = CUDNN_STATUS_EXECUTION_FAILED;
  EXPECT_EQ(error_from([&] { run(c, *l); }).code, Code::internal);
}

/// A session on the fake device with the fake libraries, and one step of Layer.
struct Step {
  std::unique_ptr<sdk::Session> session;
  std::unique_ptr<sdk::Executable> executable;

  explicit Step(bool with_library = true) {
    auto libraries = start(fake::cuda(), fake::nvrtc());
    Driver::MakeLibrary make;
    if (with_library)
      make = [] { return join(std::make_shared<Cublas>(fake::cublas()), std::make_shared<Cudnn>(fake::cudnn())); };
    session = sdk::make_rendered_session(std::make_unique<Driver>(libraries, find_devices(*libraries).at(0), make),
                                         sdk::Host());
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
  device.memory = 64 << 20;
  products.workspace = 1 << 16;
  Step step;
  step.run();
  EXPECT_EQ(device.compiled, 0u) << "the library's epilogue does all of it";
  EXPECT_EQ(step.y(), (std::vector<float>{0, 0, 0, 0, 0, 10, 14, 18}));
  EXPECT_EQ(products.products, 2) << "one per slot, recorded; replays call nothing";
  EXPECT_EQ(device.count("cuGraphLaunch"), 2u);
  EXPECT_EQ(device.count("cuLaunchKernel"), 0u);
}

TEST_F(Vendors, TheWorkspaceIsPartOfThePlan) {
  device.memory = 64 << 20;
  auto arena = [&](size_t bytes) {
    products.workspace = bytes;
    Step step;
    return step.executable->memory().arena;
  };
  EXPECT_EQ(arena(1 << 16) - arena(0), size_t{1} << 16);
}

TEST_F(Vendors, WhereTheLibraryDeclinesThePortableKernelTakesTheNode) {
  device.memory = 64 << 20;
  products.found = 0;
  Step step;
  step.run();
  EXPECT_GE(device.compiled, 1u);
  EXPECT_EQ(products.products, 0);
  EXPECT_GE(device.count("cuLaunchKernel"), 1u);
}

}  // namespace
}  // namespace tutti::cuda
