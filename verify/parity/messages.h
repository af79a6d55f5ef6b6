// What a run and the processes that it starts tell each other: lines of JSON.
#pragma once
#include "verify/parity/suite.h"

namespace tutti::parity {

/// What a process is asked to do.
struct Job {
  std::string device;  ///< its id
  uint64_t seed = 1;
  bool results = false;  ///< send what the device gave, too
  std::vector<CaseId> cases;
};
std::string to_text(const Job& job);
Job parse_job(const std::string& text);

/// What it answers, line by line: `ready`, then one per case, in order; or the problem that ends it.
struct Message {
  bool ready = false;
  std::string problem = {};
  std::string id = {};  ///< the case's text, as read; `result.id` is what is written
  CaseResult result = {};
  std::vector<Tensor> seen = {};  ///< of SuiteOptions::see, thinned; empty where the case gave none
};
std::string to_line(const Message& message);
/// Throws Error(internal) where it is no such line.
Message parse_message(const std::string& line);

}  // namespace tutti::parity
