// Messages between a run and its child processes: lines of JSON.
#pragma once
#include "verify/parity/suite.h"

namespace tutti::parity {

/// The work of one process.
struct Job {
  std::string device;  ///< device id
  uint64_t seed = 1;
  bool results = false;  ///< whether to send the device's results too
  bool exact = false;    ///< of SuiteOptions
  std::vector<CaseId> cases;
};
std::string to_text(const Job& job);
Job parse_job(const std::string& text);

/// The answers, one per line: `ready`, then one per case, in order; or the problem that ended the process.
struct Message {
  bool ready = false;
  std::string problem = {};
  std::string id = {};  ///< the case's text when read; `result.id` is used when written
  CaseResult result = {};
  std::vector<Tensor> seen = {};  ///< results for SuiteOptions::see, thinned; empty if the case had none
};
std::string to_line(const Message& message);
/// Throws Error(internal) for a malformed line.
Message parse_message(const std::string& line);

}  // namespace tutti::parity
