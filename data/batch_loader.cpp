#include "data/batch_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/base/cpus.h"
#include "core/base/status.h"

namespace tutti::data {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds the duration of a scope to a total.
class Timed {
 public:
  explicit Timed(double& total) : total_(total) {}
  ~Timed() { total_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  double& total_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

int usual_workers(const Source& set, bool changed) {
  std::vector<Column> columns = set.columns();
  bool made = std::ranges::any_of(columns, [](const Column& c) { return c.table.empty(); });
  if (!set.parallel() || (!made && !changed)) return 0;
  return static_cast<int>(std::clamp(usable_cpus() / 2, 1, 8));
}

BatchLoader::BatchLoader(const Source& set, const Batches& batches, int64_t first, int64_t last, LoadOptions options)
    : set_(set), batches_(batches), first_(first), count_(last - first), options_(std::move(options)) {
  for (const std::string& column : options_.columns) sample_bytes_[column] = num_bytes(set.column(column).type);
  if (options_.workers < 0) options_.workers = usual_workers(set, static_cast<bool>(options_.change));
  if (!set.parallel()) options_.workers = 0;
  int64_t ahead = options_.prefetch > 0 ? options_.prefetch : int64_t{2} * options_.workers;
  // One more slot for the batch being read.
  slots_.resize(static_cast<size_t>(options_.workers == 0 ? 1 : 1 + std::min(ahead, std::max<int64_t>(count_, 1))));
  parts_ = std::max(options_.workers, 1);  // so that the first batch is ready as early as possible
  try {
    for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // no more threads can be created
    stop();
    throw;
  }
}

BatchLoader::~BatchLoader() { stop(); }

void BatchLoader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void BatchLoader::work() {
  std::unique_lock lock(mutex_);
  auto room = [&] { return taken_ / parts_ < std::max<int64_t>(current_, 0) + static_cast<int64_t>(slots_.size()); };
  while (true) {
    room_.wait(lock, [&] { return stopped_ || taken_ == count_ * parts_ || room(); });
    if (stopped_ || taken_ == count_ * parts_) return;
    int64_t number = taken_ / parts_, part = taken_ % parts_;
    ++taken_;
    Slot& slot = slots_[static_cast<size_t>(number) % slots_.size()];
    std::exception_ptr error;
    try {
      if (part == 0) begin(slot, number);  // under the lock: other threads take the batch's other parts
      if (!slot.error) {                   // else an earlier part failed, maybe to allocate the batch
        lock.unlock();
        make(slot, part);
      }
    } catch (...) {
      error = std::current_exception();
    }
    if (!lock.owns_lock()) lock.lock();
    if (error && (!slot.error || part < slot.failed_part)) {
      slot.error = error;
      slot.failed_part = part;
    }
    if (--slot.parts_left == 0) ready_.notify_one();
  }
}

void BatchLoader::begin(Slot& slot, int64_t number) {
  slot.parts_left = parts_;
  slot.error = nullptr;
  slot.batch = batches_[first_ + number];
  if (!options_.padding) slot.batch.indices.resize(static_cast<size_t>(slot.batch.valid));
  for (const auto& [column, bytes] : sample_bytes_) slot.columns[column].resize(bytes * slot.batch.indices.size());
}

/// Makes one part of the samples, for all columns.
void BatchLoader::make(Slot& slot, int64_t part) {
  auto all = static_cast<int64_t>(slot.batch.indices.size());
  auto begin = static_cast<size_t>(all * part / parts_), end = static_cast<size_t>(all * (part + 1) / parts_);
  if (begin == end) return;
  std::span<const int32_t> samples = std::span(slot.batch.indices).subspan(begin, end - begin);
  for (const auto& [column, bytes] : sample_bytes_) {
    std::byte* at = slot.columns.at(column).data() + begin * bytes;
    set_.read(column, samples, at);
    if (options_.change) options_.change(column, samples, at);
  }
}

const Batch& BatchLoader::next() {
  Timed timed(waited_);
  if (current_ + 1 == count_) throw Error(Code::internal, fmt::format("there is no batch after batch {}", current_));
  if (threads_.empty()) {
    ++current_;
    begin(slots_[0], current_);
    if (options_.change) make(slots_[0], 0);  // without a change read() reads directly into the destination
    return slots_[0].batch;
  }
  std::unique_lock lock(mutex_);
  ++current_;
  room_.notify_all();
  Slot& slot = slots_[static_cast<size_t>(current_) % slots_.size()];
  ready_.wait(lock, [&] { return taken_ > current_ * parts_ + parts_ - 1 && slot.parts_left == 0; });
  if (slot.error) std::rethrow_exception(slot.error);
  return slot.batch;
}

void BatchLoader::read(const std::string& column, size_t first, size_t count, void* to) {
  Timed timed(waited_);
  if (threads_.empty() && !options_.change)
    return set_.read(column, std::span(slot().batch.indices).subspan(first, count), to);
  size_t bytes = sample_bytes_.at(column);
  std::memcpy(to, slot().columns.at(column).data() + first * bytes, count * bytes);
}

}  // namespace tutti::data
