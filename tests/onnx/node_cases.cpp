// Runs ONNX's backend cases on devices and says of each: pass, fail or not applicable and why. Exits 1 where one fails.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>

#include "core/base/status.h"
#include "core/runtime/selector.h"
#include "tests/onnx/node_case.h"

namespace {

using namespace tutti;
using test::CaseResult;
using test::Verdict;

const char* const usage =
    "usage: onnx_node_cases [--device NAME]… [--only TEXT] [--share K/N] [--list] FOLDER…\n"
    "  --device NAME  a device as `tutti --device` takes it; the reference unless given\n"
    "  --only TEXT    cases whose name holds that text\n"
    "  --share K/N    every Nth case, from the Kth (from 0) on\n"
    "  --strict       a case that does not apply counts as failed\n"
    "  --list         one line per case; else only those that fail\n"
    "  --table FILE   writes a line per case: device, name and opset, op, verdict, reason, separated by tabs\n"
    "A FOLDER holds folders with model.onnx and test_data_set_*.\n";

struct Options {
  std::vector<std::string> devices, folders;
  std::string only, table;
  size_t share = 0, shares = 1;
  bool list = false, strict = false;
};

Options parse(const std::vector<std::string>& args) {
  Options o;
  for (size_t k = 0; k < args.size(); ++k) {
    auto value = [&]() -> const std::string& {
      if (k + 1 == args.size()) throw invalid(args[k] + " needs a value");
      return args[++k];
    };
    if (args[k] == "--device")
      o.devices.push_back(value());
    else if (args[k] == "--only")
      o.only = value();
    else if (args[k] == "--table")
      o.table = value();
    else if (args[k] == "--strict")
      o.strict = true;
    else if (args[k] == "--list")
      o.list = true;
    else if (args[k] == "--share") {
      std::string text = value();
      if (std::sscanf(text.c_str(), "%zu/%zu", &o.share, &o.shares) != 2 || o.share >= o.shares)
        throw invalid("--share: expected K/N with K < N");
    } else if (args[k].starts_with("-"))
      throw invalid("unknown option " + args[k]);
    else
      o.folders.push_back(args[k]);
  }
  if (o.folders.empty()) throw invalid("no folder");
  if (o.devices.empty()) o.devices.push_back("reference:0");
  return o;
}

const char* text_of(Verdict v) { return v == Verdict::pass ? "pass" : v == Verdict::fail ? "fail" : "not applicable"; }

/// Returns how many failed.
size_t judge(const Options& o, const std::string& name, const std::vector<std::string>& cases, std::FILE* table) {
  Device device = select_device(name);
  std::map<Verdict, size_t> counts;
  auto start = std::chrono::steady_clock::now();
  for (const std::string& folder : cases) {
    CaseResult r = test::run_case(folder, device);
    if (r.verdict == Verdict::not_applicable && r.reason.empty()) {
      r.verdict = Verdict::fail;
      r.reason = "refused without a reason";
    }
    ++counts[r.verdict];
    if (o.list || r.verdict == Verdict::fail)
      fmt::print("{} {}: {}{}{}\n", device.id, r.name, text_of(r.verdict), r.reason.empty() ? "" : ": ",
                 r.reason.substr(0, 300));
    if (table)
      fmt::print(table, "{}\t{} {}\t{}\t{}\t{}\n", device.plugin, r.name, r.opset, r.op, text_of(r.verdict),
                 r.reason.substr(0, 300));
    std::fflush(stdout);
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{}: {} cases, {} passed, {} failed, {} not applicable, {:.0f} s\n", device.id, cases.size(),
             counts[Verdict::pass], counts[Verdict::fail], counts[Verdict::not_applicable], seconds.count());
  std::fflush(stdout);
  return counts[Verdict::fail] + (o.strict ? counts[Verdict::not_applicable] : 0);
}

int run(const std::vector<std::string>& args) {
  Options o = parse(args);
  std::vector<std::string> cases;
  for (const std::string& folder : o.folders)
    for (const std::string& path : test::cases_below(folder))
      if (path.substr(path.find_last_of('/') + 1).find(o.only) != std::string::npos) cases.push_back(path);
  if (cases.empty()) throw invalid("no case in these folders");
  std::vector<std::string> share;
  for (size_t k = o.share; k < cases.size(); k += o.shares) share.push_back(cases[k]);
  std::FILE* table = o.table.empty() ? nullptr : std::fopen(o.table.c_str(), "w");
  size_t failed = 0;
  for (const std::string& device : o.devices) failed += judge(o, device, share, table);
  if (table) std::fclose(table);
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const Error& e) {
    fmt::print(stderr, "onnx_node_cases: {}\n{}", e.what(), usage);
    return 2;
  }
}
