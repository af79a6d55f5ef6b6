// One case of ONNX's backend tests: a folder with a model, inputs and the outputs that they must give.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/device.h"

namespace tutti::test {

enum class Verdict { pass, fail, not_applicable };

struct CaseResult {
  std::string name, op;  ///< op: of the only node; "several nodes" where there are more
  int64_t opset = 0;
  Verdict verdict = Verdict::fail;
  std::string reason;  ///< of a failure, or why the case does not apply
};

/// The folders of cases below `root` (those that hold a model.onnx), in order.
std::vector<std::string> cases_below(const std::string& root);
/// Reads the model, lowers it for the shapes of its data, runs it and compares.
CaseResult run_case(const std::string& folder, const Device& device);

}  // namespace tutti::test
