// Where a run stops between two launches, so that the host reads or writes memory of the device: states that it reports
// (tutti.ready), and values that it exchanges with other processes (tutti.exchange).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sdk/memory.h"
#include "sdk/plugin.h"
#include "sdk/rendered/plan.h"

namespace tutti::sdk {

/// The stops of one executable. Positions are numbers of launches that run before.
class Stops {
 public:
  /// `plan` and `driver` must outlive it.
  Stops(Driver& driver, const RenderedPlan& plan) : driver_(driver), plan_(plan) {}

  /// Allocates what values are exchanged in; `range` gives their places on the device.
  void prepare(Meter& meter, const std::function<Range(uint32_t memory)>& range);
  void drop() { buffer_ = {}; }

  /// A state that is reported.
  struct Final {
    uint32_t state;  ///< for Ready
    size_t after;    ///< its last launch
    Range range;     ///< without padding
  };
  /// Of states that become final one after the other, several are reported at one stop: a stop costs a submission.
  void watch(std::vector<Final> finals, Ready ready);
  void connect(const Exchange& exchange) { exchange_ = exchange; }

  /// Throws Error(invalid) if values are to be exchanged and nobody is connected.
  void expect_connected() const;
  /// Whether a run waits at this position.
  bool at(size_t position) const { return exchanges_.contains(position) || finals_.contains(position); }
  std::vector<size_t> positions() const;
  /// What the host does at a position, whose launches must be done. `go_on` enqueues the launches behind it: as soon as
  /// the values have been read, so that the device computes while the host sends them.
  void stop(size_t position, const std::function<void()>& go_on);

 private:
  void report(const std::vector<Final>& finals, const std::function<void()>& go_on);
  void exchange(const HostExchange& e);

  Driver& driver_;
  const RenderedPlan& plan_;
  std::map<size_t, std::vector<Final>> finals_;
  std::map<size_t, std::vector<const HostExchange*>> exchanges_;
  std::map<const HostExchange*, std::pair<Range, Range>> ranges_;  // from, to
  Ready ready_;
  Exchange exchange_;
  Buffer buffer_;                  // of the values that are exchanged
  std::vector<std::byte> report_;  // of the states of one stop
};

/// The last launch that uses a state, as a position.
size_t position_of_last_use(const RenderedPlan& plan, const std::string& state);

}  // namespace tutti::sdk
