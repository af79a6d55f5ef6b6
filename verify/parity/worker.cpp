// A child process of run_in_processes: one device, the cases of one op.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/status.h"
#include "core/runtime/selector.h"
#include "verify/parity/messages.h"
#include "verify/parity/processes.h"
#include "verify/parity/record.h"

namespace tutti::parity {
namespace {

/// Reserves stdout for messages and redirects output of drivers to stderr. The stream is never closed, so that only the
/// end of the process is seen as the end.
class Answers {
 public:
  Answers() : to_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (to_ < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      throw Error(Code::internal, fmt::format("stdout and stderr must be open: {}", std::strerror(errno)));
  }
  void send(const Message& message) const {
    std::string line = to_line(message);
    for (size_t done = 0; done < line.size();) {
      ssize_t n = ::write(to_, line.data() + done, line.size() - done);
      if (n < 0 && errno != EINTR) throw Error(Code::internal, "the parent process has closed the connection");
      done += n > 0 ? static_cast<size_t>(n) : 0;
    }
  }

 private:
  int to_;
};

}  // namespace

void work(const std::string& text) {
  Job job = parse_job(text);
  Answers answers;
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
