// Results kept in a file and compared on the same and on a wrong device.
#include <algorithm>

#include "core/runtime/selector.h"
#include "data/files/checkpoint.h"
#include "tests/runtime/plugin_folder.h"
#include "verify/parity/record.h"

namespace tutti::test {
namespace {

using parity::CaseId;

std::vector<CaseId> some_cases() {
  std::vector<CaseId> all;
  for (const char* name : {"add", "matmul", "adam", "max_pool2d", "cast"})
    for (const CaseId& id : parity::cases_of(*find_op(name), parity::Extent::quick)) all.push_back(id);
  return all;
}

Device reference() { return select_device("reference:0"); }

std::string file_of(const Folder& folder, const parity::Record& r) {
  std::string path = folder / "record.safetensors";
  write_record(path, r);
  return path;
}

class RecordFile : public testing::Test {
 protected:
  Folder folder;
  parity::Record recorded() {
    parity::Report report;
    parity::Record r = parity::record(reference(), some_cases(), {.seed = 9}, report);
    r.extent = "quick";
    r.version = "1.2";
    EXPECT_TRUE(report.ok());
    return r;
  }
  parity::Comparison compared(const parity::Record& r) {
    parity::Report report;
    return parity::against(r, reference(), parity::cases_of(r, {}), {}, report);
  }
};

TEST_F(RecordFile, ComesBackAndAgrees) {
  parity::Record r = recorded(), back = parity::read_record(file_of(folder, r));
  EXPECT_EQ(back.seed, 9u);
  EXPECT_EQ(back.device, "reference:0");
  EXPECT_EQ(back.cases.size(), some_cases().size());
  parity::Comparison c = compared(back);
  EXPECT_EQ(c.compared, some_cases().size());
  EXPECT_TRUE(c.parted.empty()) << c.parted[0].id.text() << ": " << c.parted[0].difference.text;
  EXPECT_TRUE(c.missing.empty());
  EXPECT_EQ(parity::cases_of(back, {find_op("cast")}).size(),
            parity::cases_of(*find_op("cast"), parity::Extent::quick).size());
}

TEST_F(RecordFile, AnotherResultParts) {
  parity::Record r = recorded();
  auto spoil = [&](const char* text, const char* result, double factor) {
    std::vector<double>& at = r.cases.at(text).results.at(result).at;
    for (double& x : at) x = round_to(DType::f32, factor * x);
  };
  spoil("matmul:0:all:f32", "d1", 1.01);
  spoil("max_pool2d:0:forward:f32", "y1", 2);
  spoil("add:0:forward:f32", "y0", 1 + 0x1p-22);  // within the bounds of both sides
  parity::Comparison c = compared(r);
  ASSERT_EQ(c.parted.size(), 2u);
  EXPECT_EQ(c.parted[0].id.text() + " " + c.parted[0].result, "matmul:0:all:f32 d1");
  EXPECT_EQ(c.parted[1].id.text() + " " + c.parted[1].result, "max_pool2d:0:forward:f32 y1");
}

TEST_F(RecordFile, OtherCasesAreRefused) {
  parity::Record r = recorded();
  r.cases.at("add:0:forward:f32").fingerprint[0] ^= 1;
  std::string error = error_of([&] { parity::cases_of(r, {}); });
  EXPECT_TRUE(has(error, "case add:0:forward:f32 of the recorded file differs"));
  EXPECT_TRUE(has(error, "tutti 1.2"));
  parity::Record other = recorded();
  other.seed = 10;
  EXPECT_TRUE(has(error_of([&] { parity::cases_of(other, {}); }), "differs from this build's"));
  r = recorded();
  r.cases["add:99:forward:f32"] = r.cases.at("add:0:forward:f32");
  EXPECT_TRUE(has(error_of([&] { parity::cases_of(r, {}); }), "not a sample of add"));
}

TEST_F(RecordFile, DamagedFilesAreRefused) {
  std::string path = file_of(folder, recorded());
  Checkpoint good = read_checkpoint(path);
  auto reading = [&](const std::function<void(Checkpoint&)>& change) {
    Checkpoint c = good;
    change(c);
    write_checkpoint(path, c);
    return error_of([&] { parity::read_record(path); });
  };
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.metadata.at("format") = "x"; }), "its format is 'x'"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.metadata.erase("seed"); }), "no 'seed'"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.metadata.at("seed") = "-1"; }), "not an integer"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.metadata.at("cases") = "[]"; }), "not a JSON object"));
  HostTensor row = host_tensor(DType::f32, {2000}, std::vector<float>(2000));
  EXPECT_TRUE(has(reading([&](Checkpoint& c) { c.tensors.begin()->second = row; }), "at most 1024"));
  EXPECT_TRUE(has(reading([&](Checkpoint& c) { c.tensors["nop/y0"] = row; }), "does not belong to a case"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.tensors.begin()->second.bytes[0] ^= std::byte{1}; }), "its checksum"));
}

}  // namespace
}  // namespace tutti::test
