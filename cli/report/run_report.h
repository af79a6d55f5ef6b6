// The option --report: collects the page's content during a run and writes the page at its end.
#pragma once
#include <map>
#include <string>

#include "cli/report/page.h"

namespace tutti::cli {

class RunReport {
 public:
  void add_to(CLI::App& sub);
  bool asked() const { return !target_.empty(); }
  const std::string& target() const { return target_; }
  void drop() { target_.clear(); }
  /// Throws Error(invalid) for an invalid output file.
  void check() const;

  void step(int64_t step, const Scalars& scalars) { add(page_.steps, step, scalars); }
  void evaluation(int64_t step, const Scalars& scalars) { add(page_.evaluations, step, scalars); }
  /// Evaluates the current model for the page; the trainer may compile and allocate for that.
  void look(Trainer& trainer, const RunOptions& run, const data::Sources& data);
  void profile(std::vector<ProfileRow> rows) { page_.profile = std::move(rows); }
  void memory(MemoryPlan plan) { page_.memory = std::move(plan); }
  /// Writes the page; `result`: the run's result. Reports a failure on stderr. Returns whether it succeeded.
  bool write(const nlohmann::ordered_json& result, const std::string& verdict, const Trainer& trainer,
             const RunOptions& run);

 private:
  static void add(std::map<std::string, Curve>& curves, int64_t step, const Scalars& scalars) {
    for (const auto& [name, value] : scalars) curves[name].add(step, value);
  }
  std::string target_;
  RunPage page_;
};

}  // namespace tutti::cli
