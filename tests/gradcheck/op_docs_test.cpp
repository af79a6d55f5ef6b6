// docs/OPS.md is what the records and the newest full parity result say. TUTTI_UPDATE=1 rewrites it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "graph/op.h"
#include "graph/op_docs.h"

namespace tutti {
namespace {

const std::filesystem::path docs = TUTTI_DOCS;

/// docs/results/DATE-parity-full.json with the latest date; no matrix where there is none.
ParityMatrix newest_parity() {
  ParityMatrix matrix;
  for (const auto& entry : std::filesystem::directory_iterator(docs / "results")) {
    std::string name = entry.path().filename().string();
    if (name.ends_with("-parity-full.json")) matrix.source = std::max(matrix.source, name);
  }
  if (matrix.source.empty()) return matrix;
  std::ifstream file(docs / "results" / matrix.source);
  nlohmann::json found = nlohmann::json::parse(file);
  for (const auto& d : found.at("devices")) matrix.devices.push_back({d.at("id"), d.at("name")});
  for (const auto& [op, row] : found.at("ops").items())
    for (const auto& [device, cell] : row.items()) {
      double worst = cell.at(5).is_null() ? 0 : cell.at(5).get<double>();
      size_t failed = cell.at(1).get<size_t>() + cell.at(2).get<size_t>();
      size_t not_judged = cell.at(3).get<size_t>() + cell.at(4).get<size_t>();
      matrix.ops[op][device] = {cell.at(0), failed, not_judged, worst};
    }
  return matrix;
}

TEST(OpDocs, FileIsCurrent) {
  std::string now = ops_markdown(newest_parity());
  if (std::getenv("TUTTI_UPDATE")) std::ofstream(docs / "OPS.md") << now;
  std::ifstream file(docs / "OPS.md");
  ASSERT_TRUE(file) << "docs/OPS.md is missing: run this test with TUTTI_UPDATE=1";
  std::string kept((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(kept == now) << "docs/OPS.md is stale: run this test with TUTTI_UPDATE=1 and commit the file";
}

/// The committed result is one of everything: no op is missing on any device, and nothing failed.
TEST(OpDocs, ParityResultIsComplete) {
  ParityMatrix matrix = newest_parity();
  if (matrix.source.empty()) GTEST_SKIP() << "no docs/results/DATE-parity-full.json";
  EXPECT_FALSE(matrix.devices.empty());
  for (const OpDef* op : all_ops())
    for (const ParityMatrix::Device& d : matrix.devices) {
      const ParityMatrix::Cell& cell = matrix.ops[op->name][d.id];
      EXPECT_GT(cell.pass, 0u) << op->name << " on " << d.id << ": run scripts/parity-full.py";
      EXPECT_EQ(cell.failed, 0u) << op->name << " on " << d.id;
      EXPECT_LE(cell.worst, 1) << op->name << " on " << d.id;
    }
}

TEST(OpDocs, MatrixShowsWhatFailed) {
  ParityMatrix matrix{.source = "synthetic.json", .devices = {{"a:0", "one"}, {"b:0", "two"}}, .ops = {}};
  matrix.ops["abs"] = {{"a:0", {7, 0, 0, 0.25}}, {"b:0", {5, 2, 1, 0.5}}};
  std::string text = ops_markdown(matrix);
  EXPECT_NE(text.find("| [abs](#abs) | 7 · 0.25 | **2 failed**, 5 (+1) · 0.5 |"), std::string::npos);
  EXPECT_NE(text.find("| [add](#add) | not run | not run |"), std::string::npos);
  EXPECT_EQ(ops_markdown().find("not run"), std::string::npos);
}

}  // namespace
}  // namespace tutti
