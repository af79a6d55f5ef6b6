// The processes of one run, which train one model together: ranks 0 to size() - 1, one message at a time, in order.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/base/status.h"

namespace tutti {

struct TUTTI_API WorldOptions {
  double timeout = 60;              ///< seconds that a rank may stay behind, beyond the longest step so far
  bool (*interrupted)() = nullptr;  ///< whether a signal has asked this process to end
};

/// Every rank makes the same calls in the same order. They throw Error(timeout) naming a rank that does not answer or
/// stays behind, and the Error that another rank has failed with.
class TUTTI_API World {
 public:
  /// Starts MPI; returns when every process that was started has called it. Throws Error(invalid) where there is no MPI
  /// here, or where the launcher is that of another MPI.
  explicit World(const WorldOptions& options);
  ~World();
  World(const World&) = delete;

  int rank() const;
  int size() const;
  const std::string& library() const;              ///< "Open MPI v4.1.4"
  const std::vector<std::string>& hosts() const;   ///< of the ranks
  void at(int64_t step, const std::string& what);  ///< what messages say that this rank is doing: "step", "saving"

  /// Sums of all ranks, in place, in the library's own order.
  void all_reduce(std::span<float> values);
  void all_reduce(std::span<double> values);
  /// Starts the same sum. The values belong to it until wait() has returned for the number that this returns. `early`:
  /// this rank computes meanwhile.
  uint64_t begin_all_reduce(std::span<float> values, bool early = false);
  uint64_t begin_all_reduce(std::span<double> values, bool early = false);
  void wait(uint64_t transfer);
  /// The same in one binary tree over the ranks, a power of two: the same bits whatever the library and the network.
  void all_reduce_ordered(std::span<float> values);
  void all_reduce_ordered(std::span<double> values);
  /// Both sums on rank `root` alone; what the others' values are then is undefined.
  void reduce(std::span<float> values, int root);
  void reduce(std::span<double> values, int root);
  void reduce_ordered(std::span<float> values, int root);
  void reduce_ordered(std::span<double> values, int root);
  /// The bytes of rank `root`, on all ranks; begin_broadcast() is as begin_all_reduce().
  void broadcast(std::span<std::byte> bytes, int root = 0);
  uint64_t begin_broadcast(std::span<std::byte> bytes, int root);
  /// The texts of all ranks.
  std::vector<std::string> gather(const std::string& text);
  /// Whether it is true on any rank.
  bool any(bool x);

  /// For a rank that waits for something else than a transfer since `begun`, such as its device, which waits for other
  /// ranks' devices: throws as wait() does, also if all ranks answer and wait beyond the limit.
  void expect_others(std::chrono::steady_clock::time_point begun);

  /// The rank that speaks for all: 0 unless that one does not answer.
  int speaker() const;
  /// Of a rank that failed and does not speak: tells the speaker why, and waits for the end.
  [[noreturn]] void hand_over(const Error& error, int exit_code);
  /// Ends all ranks at once.
  [[noreturn]] void abort(int exit_code);
  /// Behind the last call, on all ranks. Waits for them as long as they answer; the ranks that wait for a transfer of a
  /// rank that has called it throw Error(internal).
  void close();

  uint64_t bytes_sent() const;    ///< handed to the library for other ranks; an all_reduce counts once
  uint64_t bytes_early() const;   ///< of them, handed over by begin_all_reduce() with `early`
  double seconds_waited() const;  ///< for transfers

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
