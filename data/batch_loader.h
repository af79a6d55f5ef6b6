// Batches of a source, read by threads ahead of where they are needed. What they hold does not depend on the threads.
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

/// Changes the samples of a column that were read, one after the other at `at`. Many threads call it at once.
using Change = std::function<void(const std::string& column, std::span<const int32_t> samples, std::byte* at)>;

struct LoadOptions {
  std::vector<std::string> columns;  ///< that read() will be asked for
  int workers = -1;                  ///< threads; 0: the caller's own; -1: usual_workers
  int64_t prefetch = 0;              ///< batches that are read ahead; 0: two per thread
  bool padding = true;               ///< samples that only fill up a batch are part of it
  Change change = {};
};

/// None for a source that lies in memory or that one thread alone may read, else half of the machine's, 1 to 8.
int usual_workers(const Source& set, bool changed);

/// Goes through batches [first, last) of an order. Source and batches must outlive it.
class BatchLoader {
 public:
  BatchLoader(const Source& set, const Batches& batches, int64_t first, int64_t last, LoadOptions options);
  /// Lets the threads finish the samples they are at.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;

  /// Waits for the next batch, which stays until the one after it is asked for. Throws what the source threw for it.
  const Batch& next();
  /// Writes a column of that batch: samples [first, first + count).
  void read(const std::string& column, size_t first, size_t count, void* to);
  /// All of them.
  void read(const std::string& column, void* to) { read(column, 0, slot().batch.indices.size(), to); }
  /// Seconds that next() and read() took so far: until then nothing else was given to the device.
  double waited() const { return waited_; }

 private:
  /// A batch that threads work on, each on a part of its samples.
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
  int64_t taken_ = 0;  // parts, in the order of the batches
  bool stopped_ = false;
  double waited_ = 0;
};

}  // namespace tutti::data
