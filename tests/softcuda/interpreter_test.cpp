// The interpreter and the driver by themselves: PTX written by hand, whose results PTX's manual gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "core/base/dtype.h"
#include "tests/softcuda/block.h"
#include "tests/softcuda/driver.h"

namespace tutti::softcuda {
namespace {

using testing::HasSubstr;

/// A kernel `test(out)`; each thread has its number in %r1 and the address of its word of `out` in %rd2.
std::string kernel(const std::string& body, const std::string& declarations = "") {
  return ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry test(\n.param .u64 out\n)\n{\n"
         ".reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<20>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n" +
         declarations +
         "mov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [out];\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd2, %rd1, %rd3;\n" +
         body + "ret;\n}\n";
}

/// Runs it on one block; the words that it leaves.
std::vector<uint32_t> results(const std::string& text, uint32_t threads = 32, const Checks& checks = {true, true},
                              uint64_t most_instructions = 10000) {
  std::unique_ptr<Module> module = parse(text);
  std::vector<uint32_t> out(threads, 0xffffffff);
  auto address = reinterpret_cast<uint64_t>(out.data());
  Memory memory(checks);
  memory.add(address, 4 * out.size());
  Grid grid;
  grid.function = &module->functions.at("test");
  grid.threads.x = threads;
  grid.parameters.resize(8);
  grid.launch = 1;
  grid.most_instructions = most_instructions;
  std::memcpy(grid.parameters.data(), &address, 8);
  run(grid, memory);
  return out;
}
/// What a fault says; "" without one.
std::string fault(const std::string& text, uint32_t threads = 32) {
  try {
    results(text, threads);
    return "";
  } catch (const Fault& e) {
    return e.what();
  }
}
/// The word that one thread computes into %r2.
uint32_t word(const std::string& body) { return results(kernel(body + "st.global.u32 [%rd2], %r2;\n"), 1).at(0); }

TEST(Interpreter, IntegerCornersAreAsInTheManual) {
  EXPECT_EQ(word("shl.b32 %r2, 1, 40;\n"), 0u) << "shifts by more than 31 give 0";
  EXPECT_EQ(word("shr.s32 %r2, -8, 99;\n"), 0xffffffffu) << "… or the sign";
  EXPECT_EQ(word("mul.hi.s32 %r2, -2, 3;\n"), 0xffffffffu);
  EXPECT_EQ(word("mul.hi.u32 %r2, -2, 3;\n"), 2u);
  EXPECT_EQ(word("rem.u32 %r2, 17, 5;\n"), 2u);
  EXPECT_EQ(word("bfi.b32 %r2, 5, 0, 4, 3;\n"), 5u << 4);
  EXPECT_EQ(word("prmt.b32 %r2, 287454020, 0, 291;\n"), 0x44332211u) << "bytes in reverse";
  EXPECT_EQ(word("mov.b32 {%rs1, %rs2}, 287454020;\nmov.b32 %r2, {%rs2, %rs1};\n"), 0x33441122u);
  EXPECT_EQ(word("cvt.s64.s32 %rd4, -5;\nshr.u64 %rd4, %rd4, 32;\ncvt.u32.u64 %r2, %rd4;\n"), 0xffffffffu);
}

TEST(Interpreter, FloatCornersAreAsInTheManual) {
  auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  auto of = [&](const std::string& body) { return word(body + "mov.b32 %r2, %f1;\n"); };
  EXPECT_EQ(word("cvt.rzi.s32.f32 %r2, 0f7FC00000;\n"), 0u) << "NaN";
  EXPECT_EQ(word("cvt.rzi.s32.f32 %r2, 0f4F800000;\n"), 0x7fffffffu) << "2^32 saturates";
  EXPECT_EQ(word("cvt.rni.s32.f32 %r2, 0f40200000;\n"), 2u) << "2.5 to even";
  EXPECT_EQ(of("cvt.rmi.f32.f32 %f1, 0fBFC00000;\n"), bits(-2));
  EXPECT_EQ(of("cvt.sat.f32.f32 %f1, 0f7FC00000;\n"), 0u) << "a NaN saturates to +0";
  EXPECT_EQ(of("fma.rn.f32 %f1, 0f3F800001, 0f3F800001, 0fBF800002;\n"), bits(std::ldexp(1.0f, -46)));
  EXPECT_EQ(of("fma.rm.f32 %f1, 0f3F800000, 0f3F800000, 0f33000000;\n"), bits(1)) << "1 + 2^-25 down";
  EXPECT_EQ(of("add.rz.f32 %f1, 0f3F800000, 0f33C00000;\n"), bits(1)) << "1 + 0.75 ulp to zero";
  EXPECT_EQ(of("add.f32 %f1, 0f3F800000, 0f33C00000;\n"), bits(std::nextafter(1.0f, 2.0f))) << "… to nearest";
  EXPECT_EQ(of("ex2.approx.ftz.f32 %f1, 0fC3020000;\n"), 0u) << "2^-130 is flushed";
  EXPECT_EQ(of("copysign.f32 %f1, 0fBF800000, 0f40000000;\n"), bits(-2)) << "the sign comes first";
  EXPECT_EQ(of("neg.f32 %f1, 0f00000000;\n"), bits(-0.0f));
  for (const char* relation : {"neu", "ltu", "geu", "nan"})
    EXPECT_EQ(word(std::string("setp.") + relation + ".f32 %p1, 0f7FC00000, 0f3F800000;\nselp.u32 %r2, 1, 0, %p1;\n"),
              1u)
        << relation;
  for (const char* relation : {"eq", "ne", "lt", "ge", "num"})
    EXPECT_EQ(word(std::string("setp.") + relation + ".f32 %p1, 0f7FC00000, 0f3F800000;\nselp.u32 %r2, 1, 0, %p1;\n"),
              0u)
        << relation;
}

TEST(Interpreter, LanesPartAndMeet) {
  // Odd lanes take a loop of as many rounds as their number; then all shuffle.
  std::string text = kernel(
      "mov.u32 %r2, 0;\nand.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra $L_meet;\n"
      "$L_loop:\nadd.s32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, %r1;\n@%p2 bra $L_loop;\n"
      "$L_meet:\nmov.u32 %r5, 31;\nmov.u32 %r6, -1;\nshfl.sync.down.b32 %r4|%p3, %r2, 1, %r5, %r6;\n"
      "@!%p3 mov.u32 %r4, 100;\nst.global.u32 [%rd2], %r4;\n");
  std::vector<uint32_t> got = results(text);
  for (uint32_t l = 0; l < 31; ++l) EXPECT_EQ(got[l], (l + 1) % 2 ? l + 1 : 0) << l;
  EXPECT_EQ(got[31], 100u) << "no lane behind the last";
}

TEST(Interpreter, AWarpMultipliesMatrices) {
  // a: row r has the value r + 1 at column r only; b: 10 k + n at row k and column n. So c is a row of b times r + 1.
  auto bits = [](float x) { return static_cast<uint32_t>(f32_to_bf16(x)); };
  std::string text = "mov.b32 %r10, 0;\nmov.b32 %r11, 0;\nmov.b32 %r12, 0;\nmov.b32 %r13, 0;\n";
  std::vector<std::vector<uint32_t>> words(6, std::vector<uint32_t>(32));
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t g = l / 4, t = l % 4;
    auto a = [&](uint32_t r, uint32_t k) { return r == k ? bits(static_cast<float>(r + 1)) : 0; };
    auto b = [&](uint32_t k) { return bits(static_cast<float>(10 * k + g)); };
    for (uint32_t n = 0; n < 4; ++n) {
      uint32_t r = g + n % 2 * 8, k = 2 * t + n / 2 * 8;
      words[n][l] = a(r, k) | a(r, k + 1) << 16;
    }
    for (uint32_t n = 0; n < 2; ++n) words[4 + n][l] = b(2 * t + 8 * n) | b(2 * t + 8 * n + 1) << 16;
  }
  for (size_t n = 0; n < 6; ++n)
    for (uint32_t l = 0; l < 32; ++l)
      text += "setp.eq.u32 %p1, %r1, " + std::to_string(l) + ";\n@%p1 mov.b32 %r" + std::to_string(4 + n) + ", " +
              std::to_string(words[n][l]) + ";\n";
  std::string product =
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r10, %r11, %r12, %r13}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, "
      "{%r10, %r11, %r12, %r13};\n";
  for (uint32_t n = 0; n < 4; ++n) {
    auto got = results(kernel(text + product + "st.global.u32 [%rd2], %r" + std::to_string(10 + n) + ";\n"));
    for (uint32_t l = 0; l < 32; ++l) {
      uint32_t r = l / 4 + n / 2 * 8, c = l % 4 * 2 + n % 2;
      float b = bf16_to_f32(f32_to_bf16(static_cast<float>(10 * r + c)));
      EXPECT_EQ(std::bit_cast<float>(got[l]), static_cast<float>(r + 1) * b) << r << ' ' << c;
    }
  }
  EXPECT_THAT(fault(kernel(text + "setp.lt.u32 %p1, %r1, 7;\n@%p1 " + product)),
              HasSubstr("a product of a warp that only some of its lanes reach"));
  EXPECT_EQ(word("cvt.rn.bf16x2.f32 %r2, 0f40000000, 0f3F800000;\n"), 0x40003f80u) << "the first one is the upper half";
  EXPECT_EQ(word("cvt.rn.f16x2.f32 %r2, 0f7FC00000, 0f3F800000;\n"), 0x7fff3c00u);
}

TEST(Interpreter, NamesWhatItLacks) {
  auto message = [](const std::string& text) {
    try {
      parse(text);
      return std::string();
    } catch (const InvalidPtx& e) {
      return std::string(e.what());
    }
  };
  EXPECT_THAT(message(kernel("lg2.approx.f32 %f1, %f2;\n")), HasSubstr("in test: the instruction lg2.approx.f32"));
  EXPECT_THAT(message(kernel("add.ftz.f32 %f1, %f2, %f3;\n")), HasSubstr("add.ftz.f32 is not implemented"));
  EXPECT_THAT(message(kernel("ld.param.volatile.u64 %rd4, [out];\n")), HasSubstr("is not implemented"));
  EXPECT_THAT(message(kernel("ld.global.relaxed.gpu.u32 %r2, [%rd2];\n")), HasSubstr("is not implemented"));
  EXPECT_THAT(message(kernel("add.s32 %rd1, %r1, 1;\n")), HasSubstr("another width"));
  EXPECT_THAT(message(kernel("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r2}, {%r3}, {%r4}, {%r5};\n")),
              HasSubstr("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 is not implemented"));
  EXPECT_THAT(message(kernel("bra $L_none;\n")), HasSubstr("an unknown label $L_none"));
  EXPECT_THAT(message(kernel("mov.u32 %r2, %clock;\n")), HasSubstr("%clock"));
  EXPECT_THAT(message(".version 8.0\n.extern .func f\n"), HasSubstr("the directive .extern is not implemented"));
}

const std::string shared_words = ".shared .align 4 .b8 tile[128];\n";
/// A thread's word of `tile` in %r3, its neighbour's in %r4.
const std::string own_and_next =
    "mov.u32 %r2, tile;\nshl.b32 %r3, %r1, 2;\nadd.s32 %r3, %r3, %r2;\nxor.b32 %r4, %r3, 64;\n";

/// 16 bytes of `tile` for each lane, at %r3.
const std::string shared_rows = ".shared .align 16 .b8 tile[512];\n";
const std::string own_row = "mov.u32 %r2, tile;\nshl.b32 %r3, %r1, 4;\nadd.s32 %r3, %r3, %r2;\n";

TEST(Interpreter, AWarpLoadsMatrices) {
  // Element c of row r of matrix m is 64 m + 8 r + c; lane 8 m + r has stored that row.
  std::string text = own_row + "mul.lo.s32 %r4, %r1, 524296;\n";
  for (int word = 0; word < 4; ++word)
    text += "add.s32 %r5, %r4, " + std::to_string(65536 + word * 2 * 65537) + ";\nst.shared.u32 [%r3+" +
            std::to_string(4 * word) + "], %r5;\n";
  text += "bar.sync 0;\n";
  std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r3];\n",
              turned = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r6, %r7, %r8, %r9}, [%r3];\n";
  for (uint32_t m = 0; m < 4; ++m) {
    std::string store = "st.global.u32 [%rd2], %r" + std::to_string(6 + m) + ";\n";
    auto plain = results(kernel(text + load + store, shared_rows)),
         other = results(kernel(text + turned + store, shared_rows));
    for (uint32_t l = 0; l < 32; ++l) {
      uint32_t row = 64 * m + 8 * (l / 4) + 2 * (l % 4), column = 64 * m + 8 * (2 * (l % 4)) + l / 4;
      EXPECT_EQ(plain[l], row | (row + 1) << 16) << m << ' ' << l;
      EXPECT_EQ(other[l], column | (column + 8) << 16) << m << ' ' << l;
    }
  }
  EXPECT_THAT(fault(kernel(text + "setp.lt.u32 %p1, %r1, 7;\n@%p1 " + load, shared_rows)),
              HasSubstr("a load of matrices that only some of the warp's lanes reach"));
  EXPECT_THAT(fault(kernel(text + "add.s32 %r3, %r3, 8;\n" + load, shared_rows)), HasSubstr("is misaligned"));
  EXPECT_THAT(fault(kernel(own_row + load, shared_rows)), HasSubstr("uninitialised shared memory is read"));
}

TEST(Checks, CopiesArriveWhenTheyAreWaitedFor) {
  // Four of the words that all lanes wrote, to the own row; to the second half of the lanes zeros.
  std::string write =
                  "st.global.u32 [%rd2], %r1;\nbar.sync 0;\nand.b32 %r4, %r1, 7;\nmul.wide.u32 %rd4, %r4, 16;\n"
                  "add.s64 %rd5, %rd1, %rd4;\nsetp.lt.u32 %p1, %r1, 16;\n" +
                  own_row,
              copy = "selp.b32 %r5, 16, 0, %p1;\ncp.async.cg.shared.global [%r3], [%rd5], 16, %r5;\n",
              wait = "cp.async.wait_all;\n", barrier = "bar.sync 0;\n", read = "ld.shared.u32 %r6, [%r3+4];\n",
              neighbours = "xor.b32 %r3, %r3, 16;\n", store = "st.global.u32 [%rd2], %r6;\n";
  std::vector<uint32_t> got = results(kernel(write + copy + wait + neighbours + barrier + read + store, shared_rows));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l < 16 ? 4 * ((l ^ 1) % 8) + 1 : 0) << l;
  EXPECT_THAT(fault(kernel(write + copy + neighbours + barrier + read, shared_rows)),
              HasSubstr("uninitialised shared memory is read"))
      << "not waited for";
  EXPECT_THAT(fault(kernel(write + copy + wait + neighbours + read, shared_rows)),
              HasSubstr("a race in shared memory"));
  EXPECT_THAT(fault(kernel(write + copy + wait + neighbours + barrier + read + neighbours + copy, shared_rows)),
              HasSubstr("a race in shared memory"))
      << "a copy to what another thread reads";
  EXPECT_THAT(fault(kernel(write + "add.s64 %rd5, %rd5, 128;\n" + copy, shared_rows)),
              HasSubstr("is outside global memory"));
  std::string part = "mov.u32 %r5, 8;\ncp.async.cg.shared.global [%r3], [%rd5], 16, %r5;\n";
  EXPECT_THAT(fault(kernel(write + part, shared_rows)), HasSubstr("a copy of a part is not implemented"));
}

TEST(Checks, FindFaultsOfAddresses) {
  EXPECT_THAT(fault(kernel("st.global.u32 [%rd2+4], %r1;\n")),
              testing::AllOf(HasSubstr("test: the address 0x"), HasSubstr("is outside global memory"),
                             HasSubstr("thread (31,0,0) at 'st.global.u32 [%rd2+4], %r1'")));
  EXPECT_THAT(fault(kernel("st.global.u32 [%rd2+2], %r1;\n")), HasSubstr("is misaligned"));
  EXPECT_THAT(fault(kernel("ld.shared.u32 %r2, [tile+128];\n", shared_words)), HasSubstr("is outside shared memory"));
  EXPECT_THAT(fault(kernel("ld.global.u32 %r2, [%rd2];\n")), HasSubstr("uninitialised global memory is read"));
  EXPECT_THAT(fault(kernel("ld.shared.u32 %r2, [tile];\n", shared_words)),
              HasSubstr("uninitialised shared memory is read"));
}

TEST(Checks, FindRacesAndMissingBarriers) {
  std::string store = own_and_next + "st.shared.u32 [%r3], %r1;\n", read = "ld.shared.u32 %r5, [%r4];\n";
  EXPECT_EQ(fault(kernel(store + "bar.sync 0;\n" + read, shared_words)), "");
  EXPECT_THAT(fault(kernel(store + read, shared_words)), HasSubstr("a race in shared memory"));
  EXPECT_THAT(fault(kernel(store + "bar.sync 0;\n" + read + "st.shared.u32 [%r3], %r5;\n", shared_words)),
              HasSubstr("a race in shared memory"))
      << "a write after another thread's read";
  EXPECT_THAT(fault(kernel("st.global.u32 [%rd1], %r1;\n")), HasSubstr("a race in global memory"));
}

TEST(Checks, FindLanesThatAreMissing) {
  std::string some = "setp.lt.u32 %p1, %r1, 7;\n";
  EXPECT_THAT(fault(kernel(some + "@%p1 bra $L_on;\nbar.sync 0;\n$L_on:\n")),
              HasSubstr("a barrier that only some lanes of the warp reach"));
  EXPECT_EQ(fault(kernel("setp.ge.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 0;\n"), 64), "") << "a warp that has left";
  EXPECT_THAT(fault(kernel(some + "@%p1 shfl.sync.down.b32 %r2, %r1, 1, 31, -1;\n")),
              HasSubstr("a shuffle that only some of its lanes reach"));
  EXPECT_THAT(fault(kernel("$L_for_ever:\nbra $L_for_ever;\n")), HasSubstr("an endless loop or a deadlock"));
}

TEST(Checks, UnknownOnesAreRefused) {
  EXPECT_TRUE(checks_named("bounds,races").races);
  EXPECT_FALSE(checks_named("bounds,races").uninitialised);
  EXPECT_THROW(checks_named("race"), std::invalid_argument);
}

/// The driver with a context.
class SoftDriver : public testing::Test {
 protected:
  explicit SoftDriver(uint64_t seed = 0) {
    Settings settings;
    settings.checks = {true, true};
    settings.seed = seed;
    api = open(settings);
    CUcontext context = nullptr;
    api.cuDevicePrimaryCtxRetain(&context, 0);
    api.cuCtxSetCurrent(context);
    for (CUstream* s : {&one, &two}) api.cuStreamCreate(s, CU_STREAM_NON_BLOCKING);
    EXPECT_EQ(api.cuMemAlloc(&memory, 128), CUDA_SUCCESS);
  }
  CUfunction load(const std::string& text) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(api.cuModuleLoadData(&module, text.c_str()), CUDA_SUCCESS) << last_fault();
    EXPECT_EQ(api.cuModuleGetFunction(&function, module, "test"), CUDA_SUCCESS);
    return function;
  }
  void launch(CUfunction f, CUstream stream, CUdeviceptr at) {
    void* parameters[] = {&at};
    EXPECT_EQ(api.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr), CUDA_SUCCESS);
  }
  cuda::CudaApi api;
  CUstream one = nullptr, two = nullptr;
  CUdeviceptr memory = 0;
  const std::string writes = kernel("st.global.u32 [%rd2], %r1;\n");
  const std::string reads = kernel("ld.global.u32 %r2, [%rd2];\n");
};

TEST_F(SoftDriver, AStreamThatIsNotWaitedForIsFound) {
  CUfunction write = load(writes), read = load(reads);
  CUevent written = nullptr;
  api.cuEventCreate(&written, CU_EVENT_DISABLE_TIMING);
  launch(write, one, memory);
  api.cuEventRecord(written, one);
  api.cuStreamWaitEvent(two, written, 0);
  launch(read, two, memory);
  EXPECT_EQ(api.cuStreamSynchronize(two), CUDA_SUCCESS) << last_fault();
  CUdeviceptr other = 0;
  api.cuMemAlloc(&other, 128);
  launch(write, one, other);
  launch(read, two, other);  // without the event
  EXPECT_EQ(api.cuStreamSynchronize(two), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(last_fault(), HasSubstr("test: uninitialised global memory is read"));
  EXPECT_EQ(api.cuMemAlloc(&other, 128), CUDA_ERROR_LAUNCH_FAILED) << "the error stays";
}

TEST_F(SoftDriver, PinnedMemoryIsReadWhenTheStreamComesToIt) {
  void* pinned = nullptr;
  api.cuMemHostAlloc(&pinned, 4, 0);
  uint32_t early = 1, late = 2, got = 0;
  std::memcpy(pinned, &early, 4);
  api.cuMemcpyHtoDAsync(memory, pinned, 4, one);
  std::memcpy(pinned, &late, 4);
  api.cuMemcpyDtoHAsync(&got, memory, 4, one);
  api.cuStreamSynchronize(one);
  EXPECT_EQ(got, late);
}

TEST_F(SoftDriver, CopiesStayWithinAllocations) {
  uint32_t x = 0;
  api.cuMemcpyHtoDAsync(memory + 126, &x, 4, one);
  EXPECT_EQ(api.cuStreamSynchronize(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(last_fault(), HasSubstr("a copy to the device of 4 bytes is out of bounds"));
}

TEST_F(SoftDriver, RefusesPtxThatItCannotRunByName) {
  CUmodule module = nullptr;
  EXPECT_EQ(api.cuModuleLoadData(&module, kernel("lg2.approx.f32 %f1, %f2;\n").c_str()), CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(last_fault(), HasSubstr("the instruction lg2.approx.f32 is not implemented"));
}

class SeededDriver : public SoftDriver {
 protected:
  SeededDriver() : SoftDriver(7) {}
};

TEST_F(SeededDriver, RunsBranchesOfAGraphInDifferentOrders) {
  // Two stores without an order between them: the last one wins, and both orders are seen.
  CUfunction first = load(kernel("mov.u32 %r2, 1;\nst.global.u32 [%rd2], %r2;\n"));
  CUfunction second = load(kernel("mov.u32 %r2, 2;\nst.global.u32 [%rd2], %r2;\n"));
  CUevent begin = nullptr, end = nullptr;
  for (CUevent* e : {&begin, &end}) api.cuEventCreate(e, CU_EVENT_DISABLE_TIMING);
  ASSERT_EQ(api.cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  api.cuEventRecord(begin, one);
  api.cuStreamWaitEvent(two, begin, 0);
  launch(first, one, memory);
  launch(second, two, memory);
  api.cuEventRecord(end, two);
  api.cuStreamWaitEvent(one, end, 0);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(api.cuStreamEndCapture(one, &graph), CUDA_SUCCESS);
  ASSERT_EQ(api.cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  std::set<uint32_t> seen;
  for (int k = 0; k < 40; ++k) {
    uint32_t last = 0;
    api.cuGraphLaunch(executable, one);
    api.cuMemcpyDtoHAsync(&last, memory, 4, one);
    api.cuStreamSynchronize(one);
    seen.insert(last);
  }
  EXPECT_EQ(seen, (std::set<uint32_t>{1, 2}));
}

}  // namespace
}  // namespace tutti::softcuda
