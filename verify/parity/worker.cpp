// A child process of run_in_processes: one device, the cases of one op.
#include <fmt/format.h>

#include "core/base/status.h"
#include "core/os/process.h"
#include "core/runtime/selector.h"
#include "verify/parity/messages.h"
#include "verify/parity/processes.h"
#include "verify/parity/record.h"

namespace tutti::parity {
namespace {

/// Messages on stdout; output of drivers goes to stderr.
class Messages {
 public:
  void send(const Message& message) const {
    if (!to_.send(to_line(message))) throw Error(Code::internal, "the parent process has closed the connection");
  }

 private:
  os::Answers to_;
};

}  // namespace

void work(const std::string& text) {
  Job job = parse_job(text);
  const Messages answers;
  try {
    Device device = select_device(job.device);
    answers.send({.ready = true});
    Message message;
    SuiteOptions options{.seed = job.seed, .exact = job.exact};
    if (job.results)
      options.see = [&](const CaseId&, const std::vector<Tensor>& results) {
        for (const Tensor& t : results) message.seen.push_back(thinned(t));
      };
    options.watch = [&](const Progress& p) {
      message.result = p.result;
      answers.send(message);
      message.seen.clear();
    };
    run({device}, job.cases, options);
  } catch (const std::exception& e) {
    answers.send({.problem = e.what()});
    throw;
  }
}

}  // namespace tutti::parity
