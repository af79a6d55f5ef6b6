// Loads batches of a source in background threads. The contents do not depend on the number of threads.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "data/loader.h"
#include "data/source.h"

namespace tutti::data {

/// Changes loaded samples of a column in place; they lie contiguously at `at`. Called from several threads at once.
using Change = std::function<void(const std::string& column, std::span<const int32_t> samples, std::byte* at)>;

struct LoadOptions {
  std::vector<std::string> columns;  ///< columns that read() may be called for
  int workers = -1;                  ///< threads; 0: the calling thread; -1: usual_workers
  int64_t prefetch = 0;              ///< number of batches loaded ahead; 0: two per thread
  bool padding = true;               ///< whether samples that only pad the last batch are included
  Change change = {};
};

/// 0 for a source that lies in memory or must be read by one thread, else half of the machine's CPUs, 1 to 8.
int usual_workers(const Source& set, bool changed);

/// Iterates over batches [first, last) of an order. Source and batches must outlive it.
class BatchLoader {
 public:
  BatchLoader(const Source& set, const Batches& batches, int64_t first, int64_t last, LoadOptions options);
  /// Waits until the threads have finished their current samples.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;

  /// Waits for the next batch, which is valid until the next call. Rethrows the source's exception for it.
  const Batch& next();
  /// Copies samples [first, first + count) of a column of the current batch.
  void read(const std::string& column, size_t first, size_t count, void* to);
  /// All samples of the batch.
  void read(const std::string& column, void* to) { read(column, 0, slot().batch.indices.size(), to); }
  /// Seconds spent in next() and read() so far, during which the caller submits no work to the device.
  double waited() const { return waited_; }

 private:
  /// A batch in progress; threads work on parts of its samples.
  struct Slot {
    Batch batch;
    std::map<std::string, std::vector<std::byte>> columns;
    int64_t parts_left = 0, failed_part = 0;
    std::exception_ptr error;
  };
  const Slot& slot() const { return slots_[static_cast<size_t>(current_) % slots_.size()]; }
  void work();
  void begin(Slot& slot, int64_t number);
  void make(Slot& slot, int64_t part);
  void stop();

  const Source& set_;
  const Batches& batches_;
  int64_t first_, count_, parts_ = 1, current_ = -1;
  LoadOptions options_;
  std::map<std::string, size_t> sample_bytes_;  // by column
  std::vector<Slot> slots_;                     // batch n is in slot n % size
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  int64_t taken_ = 0;  // parts taken by threads, in the order of the batches
  bool stopped_ = false;
  double waited_ = 0;
};

}  // namespace tutti::data
