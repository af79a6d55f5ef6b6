#include "sdk/rendered/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/log.h"
#include "sdk/rendered/group.h"
#include "sdk/rendered/stops.h"
#include "sdk/rendered/texts.h"
#include "sdk/shortage.h"
#include "sdk/trace.h"

namespace tutti::sdk {
namespace {

constexpr uint64_t forever = ~0ull;
constexpr uint32_t slots = 2;  // staging slots: one is filled while the other is in flight

class RenderedExecutable : public Executable {
 public:
  RenderedExecutable(RenderedShared& shared, Program program, RenderedPlan plan, bool asked)
      : shared_(shared),
        program_(std::move(program)),
        plan_(std::move(plan)),
        traced_(logging::traced("kernels")),
        asked_(asked),
        one_by_one_(traced_ || (asked && !plan_.exchanges.empty())),
        stops_(*shared.driver, plan_) {
    for (const State& s : program_.states) state_bytes_ += shared_.states.declare(s.name, program_.type(s.after));
    seconds_.resize(plan_.launches.size());
  }

  ~RenderedExecutable() override {
    try {
      if (last_) shared_.driver->wait(last_, forever);
      forget_sequences();
      forget_summing();
      shared_.leave(kernels_);
    } catch (const std::exception&) {  // lost device, reported by wait
    }
    if (traced_) log_times(shared_.host, runs_, seconds_, [&](size_t k) { return plan_.launches[k].name; });
  }

  TuttiMemory memory() const override {
    TuttiMemory m = {};
    m.size = sizeof m;
    m.state = state_bytes_;
    m.constants = plan_.constant_bytes();
    m.arena = plan_.arena_bytes();
    m.staging = plan_.staging * (1 + slots * (shared_.driver->traits().double_buffered_uploads ? 2 : 1));
    m.staging += plan_.exchanged_bytes;
    return m;
  }

  void prepare() override {
    std::vector<std::string> fresh;
    for (const State& s : program_.states)
      if (!shared_.states.allocated(s.name)) fresh.push_back(s.name);
    check_room(fresh);
    build();  // not in compile(), so that planning memory does not wait for the device's compiler
    try {
      allocate(fresh);
    } catch (const Error& e) {
      drop();
      if (e.code != Code::no_memory) throw;
      throw Error(e.code, fmt::format("{}; {}", e.what(), shortage(fresh)), e.remedy);
    } catch (...) {
      drop();
      throw;
    }
    record();
  }

  void stage(std::span<void*> feeds) override {
    if (uint64_t ticket = tickets_[slot_]) shared_.driver->wait(ticket, forever);
    tickets_[slot_] = 0;
    size_t i = 0;
    for (const PlannedMemory& m : plan_.memories)
      if (m.place == Place::feed) feeds[i++] = uploads_[slot_].data() + m.offset;
  }

  void watch(const std::vector<std::string>& states, Ready ready) override {
    std::vector<Stops::Final> finals;
    for (uint32_t k = 0; k < states.size(); ++k) {
      // a sequence that the driver times stays whole
      const bool whole = asked_ && !one_by_one_;
      const size_t after = whole ? plan_.launches.size() : position_of_last_use(plan_, states[k]);
      auto is_it = [&](const State& s) { return s.name == states[k]; };
      const State& s = *std::ranges::find_if(program_.states, is_it);
      finals.push_back({k, after, {shared_.states.id(s.name), 0, num_bytes(program_.type(s.after))}});
    }
    if (last_) shared_.driver->wait(last_, forever);
    stops_.watch(std::move(finals), std::move(ready));
    forget_sequences();
    record();
  }

  void connect(const Exchange& exchange) override { stops_.connect(exchange); }

  uint64_t run() override {
    stops_.expect_connected();
    last_slot_ = slot_;
    if (one_by_one_)
      run_one_by_one(sequences_[slot_]);
    else
      run_sequences(sequences_[slot_]);
    return ran();
  }

  void prepare_sums(const std::vector<std::vector<std::string>>& groups) override {
    if (one_by_one_ || asked_) throw Error(Code::declined, "its launches are timed one by one");
    if (!plan_.exchanges.empty()) throw Error(Code::declined, "the program exchanges values with other ranks");
    if (last_) shared_.driver->wait(last_, forever);
    forget_summing();
    summing_ = record_summing(groups);
    for (uint32_t s = 0; s < uploads_.size(); ++s) {
      const Upload upload = upload_of(s);
      upload_sequences_.push_back(shared_.driver->record({}, &upload));
    }
  }

  /// The launches and the sums are one sequence, whatever slot is uploaded before: all ranks submit the one that they
  /// recorded together, even if their numbers of other runs differ.
  uint64_t run_and_sum() override {
    if (plan_.staging) shared_.driver->submit(upload_sequences_[slot_]);
    last_ = shared_.driver->submit(*summing_);
    return ran();
  }

  std::vector<KernelTime> times() override {
    if (runs_ == 0) return launches();
    shared_.driver->wait(last_, forever);
    std::vector<Interval> all = one_by_one_ ? last_times_ : shared_.driver->times(sequences_[last_slot_][0]);
    std::vector<KernelTime> out;
    size_t uploads = all.size() - plan_.launches.size();
    for (size_t k = 0; k < all.size(); ++k) {
      KernelTime t{TUTTI_NONE, all[k].begin, all[k].end - all[k].begin, "upload of the feeds"};
      if (k >= uploads) {
        const PlannedLaunch& l = plan_.launches[k - uploads];
        t = {l.node, t.start, t.nanoseconds, l.name, l.reason, l.others};
      }
      out.push_back(std::move(t));
    }
    std::ranges::stable_sort(out, {}, &KernelTime::start);
    return out;
  }

 private:
  std::vector<KernelTime> launches() const {
    std::vector<KernelTime> all;
    for (const PlannedLaunch& l : plan_.launches) all.push_back({l.node, 0, 0, l.name, l.reason, l.others});
    return all;
  }
  void build() try {
    if (!plan_.kernels.empty()) kernels_ = shared_.build(plan_.kernels);
    plan_.kernels = {};
  } catch (const BuildError& e) {
    for (const PlannedLaunch& l : plan_.launches)  // finds the node of the kernel
      if (!l.copy && !l.library && l.kernel == e.source && l.node != TUTTI_NONE)
        throw NodeError(l.node, e.code, fmt::format("{}: {}", l.name, e.what()), e.remedy);
    throw;
  }

  // ---- memory

  uint64_t bytes_of(const std::vector<std::string>& states) const {
    TuttiMemory m = memory();
    uint64_t bytes = m.constants + m.arena + m.staging;
    for (const std::string& s : states) bytes += shared_.states.bytes(s);
    return bytes;
  }

  /// Memory to allocate; `states` are the states that are not allocated yet.
  TuttiMemory need_of(const std::vector<std::string>& states) const {
    TuttiMemory need = memory();
    need.state = 0;
    for (const std::string& s : states) need.state += shared_.states.bytes(s);
    return need;
  }

  /// Throws before anything is allocated if the program exceeds the device's memory, as far as its size is known.
  void check_room(const std::vector<std::string>& states) const {
    uint64_t all = shared_.driver->traits().memory_bytes, used = shared_.memory.meter.now(), want = bytes_of(states);
    if (shared_.driver->traits().cpu_like) check_host_room(need_of(states), [&] { return large_tensors(plan_); });
    if (all == forever || want <= all - std::min(used, all)) return;
    throw Error(Code::no_memory,
                fmt::format("the device has {} bytes, of which this session uses {}; {}", all, used, shortage(states)));
  }

  /// Describes the memory needed, the largest tensors, and the fraction that would fit.
  std::string shortage(const std::vector<std::string>& states) const {
    uint64_t all = shared_.driver->traits().memory_bytes, used = shared_.memory.meter.now();
    return sdk::shortage(need_of(states), large_tensors(plan_),
                         all == forever ? unknown_memory : all - std::min(used, all));
  }

  void allocate(const std::vector<std::string>& fresh) {
    DeviceMemory& memory = shared_.memory;
    std::vector<DeviceBuffer> states;
    for (const std::string& s : fresh) states.push_back(shared_.states.make(s));
    for (uint64_t bytes : plan_.constants) constants_.emplace_back(memory, bytes, "constants");
    for (uint64_t bytes : plan_.arena) arena_.emplace_back(memory, bytes, "the arena");
    if (plan_.staging) {
      feeds_ = DeviceBuffer(memory, plan_.staging, "the feeds");
      for (uint32_t s = 0; s < slots; ++s) {
        uploads_.emplace_back(memory, plan_.staging, "staging");
        if (memory.driver.traits().double_buffered_uploads)
          upload_buffers_.emplace_back(memory, plan_.staging, "uploads");
      }
    }
    for (const PlannedMemory& m : plan_.memories) {
      if (m.place != Place::constant) continue;
      std::span<const std::byte> data = m.value == TUTTI_NONE
                                            ? std::as_bytes(std::span(m.words))
                                            : std::span<const std::byte>(program_.values[m.value].data);
      if (!data.empty()) shared_.driver->write({constants_[m.block].id(), m.offset, data.size()}, data.data());
    }
    stops_.prepare(memory.meter, [&](uint32_t m) {
      const PlannedMemory& region = plan_.memories[m];
      if (region.place != Place::state) return range(region);
      auto made = std::ranges::find(fresh, region.state);
      if (made == fresh.end()) return range(region);
      return Range{states[static_cast<size_t>(made - fresh.begin())].id(), 0, region.bytes};
    });
    for (size_t k = 0; k < fresh.size(); ++k) shared_.states.take(fresh[k], std::move(states[k]));
    for (Value& v : program_.values) v.data = {};
  }
  void drop() {
    constants_.clear();
    arena_.clear();
    feeds_ = {};
    uploads_.clear();
    upload_buffers_.clear();
    stops_.drop();
  }

  Range range(const PlannedMemory& m) const {
    switch (m.place) {
      case Place::arena: return {arena_[m.block].id(), m.offset, m.bytes};
      case Place::feed: return {feeds_.id(), m.offset, m.bytes};
      case Place::constant: return {constants_[m.block].id(), m.offset, m.bytes};
      case Place::state: break;
    }
    return {shared_.states.id(m.state), 0, m.bytes};
  }

  // ---- launches

  void forget_sequences() {
    for (auto& slot : sequences_)
      for (SequenceId s : std::exchange(slot, {})) shared_.driver->forget(s);
  }
  void forget_summing() {
    for (SequenceId s : std::exchange(upload_sequences_, {})) shared_.driver->forget(s);
    if (summing_) shared_.driver->forget(*std::exchange(summing_, std::nullopt));
  }

  /// After the submission of a run.
  uint64_t ran() {
    if (plan_.staging) {
      tickets_[slot_] = last_;
      slot_ = (slot_ + 1) % slots;
    }
    ++runs_;
    return last_;
  }

  std::vector<Launch> resolved() const {
    std::vector<Launch> launches;
    for (const PlannedLaunch& p : plan_.launches) {
      auto resolve = [&](uint32_t m) { return range(plan_.memories[m]); };
      launches.push_back(p.with(p.copy || p.library ? 0 : kernels_[p.kernel], resolve));
    }
    return launches;
  }

  Upload upload_of(uint32_t slot) const {
    Upload upload{uploads_[slot].data(), {feeds_.id(), 0, plan_.staging}};
    if (!upload_buffers_.empty()) upload.buffer = {upload_buffers_[slot].id(), 0, plan_.staging};
    return upload;
  }

  /// Each group's sum stands behind the last launch that uses one of its states, and behind the group before.
  SequenceId record_summing(const std::vector<std::vector<std::string>>& groups) const {
    std::vector<Launch> launches = resolved(), all;
    size_t done = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      size_t after = done;
      for (const std::string& s : groups[g]) after = std::max(after, position_of_last_use(plan_, s));
      all.insert(all.end(), launches.begin() + static_cast<int64_t>(done),
                 launches.begin() + static_cast<int64_t>(after));
      done = after;
      if (auto sum = collective(*shared_.driver, shared_.states, groups[g], {}, fmt::format("sum {}", g + 1)))
        all.push_back(std::move(*sum));
    }
    all.insert(all.end(), launches.begin() + static_cast<int64_t>(done), launches.end());
    return shared_.driver->record(all, nullptr);
  }

  /// Records one sequence per staging slot, or several, with a stop behind each but the last. If the host takes times,
  /// the upload and each launch are separate sequences.
  void record() {
    const std::vector<Launch> launches = resolved();
    for (uint32_t s = 0; s < (plan_.staging ? slots : 1); ++s) {
      const Upload upload = plan_.staging ? upload_of(s) : Upload{};
      const Upload* first = plan_.staging ? &upload : nullptr;
      if (asked_ && !one_by_one_) {
        if (std::optional<SequenceId> timed = shared_.driver->record_timed(launches, first)) {
          sequences_[s].push_back(*timed);
          continue;
        }
        one_by_one_ = true;
      }
      size_t begin = 0;
      for (size_t end : ends(launches.size())) {
        const std::span<const Launch> part = std::span(launches).subspan(begin, end - begin);
        sequences_[s].push_back(shared_.driver->record(part, std::exchange(first, nullptr)));
        begin = end;
      }
    }
  }

  /// The numbers of launches that are submitted with each sequence and those before it.
  std::vector<size_t> ends(size_t launches) const {
    std::vector<size_t> all;
    if (one_by_one_)
      for (size_t k = 0; k < launches; ++k) all.push_back(k);
    else
      all = stops_.positions();
    if (all.empty() || all.back() != launches) all.push_back(launches);
    return all;
  }

  void run_sequences(const std::vector<SequenceId>& sequences) {
    const std::vector<size_t> positions = ends(plan_.launches.size());
    size_t next = 0;
    auto submit = [&] {
      if (next < sequences.size()) last_ = shared_.driver->submit(sequences[next++]);
    };
    submit();
    for (size_t position : positions) {
      if (!stops_.at(position)) continue;
      shared_.driver->wait(last_, forever);
      stops_.stop(position, submit);
    }
  }

  void run_one_by_one(const std::vector<SequenceId>& sequences) {
    last_times_.clear();
    for (size_t k = 0; k < sequences.size(); ++k) {
      Interval t{host_nanoseconds(), 0};
      last_ = shared_.driver->submit(sequences[k]);
      shared_.driver->wait(last_, forever);
      t.end = host_nanoseconds();
      if (stops_.at(k)) stops_.stop(k, [] {});
      if (k > 0) seconds_[k - 1] += 1e-9 * static_cast<double>(t.end - t.begin);
      if (k > 0 || plan_.staging) last_times_.push_back(t);
    }
  }

  RenderedShared& shared_;
  Program program_;
  RenderedPlan plan_;
  bool traced_, asked_;  // timed by TUTTI_TRACE; by TUTTI_OPT_PROFILE
  bool one_by_one_;      // the host waits for and times each launch
  Stops stops_;
  uint64_t state_bytes_ = 0, runs_ = 0, last_ = 0;
  std::vector<KernelId> kernels_;
  std::vector<DeviceBuffer> constants_, arena_;
  DeviceBuffer feeds_;
  std::vector<UploadBuffer> uploads_;         // per slot
  std::vector<DeviceBuffer> upload_buffers_;  // per slot, if the driver uses them
  std::vector<SequenceId> sequences_[slots];
  std::vector<SequenceId> upload_sequences_;  // per slot, for run_and_sum()
  std::optional<SequenceId> summing_;         // what run_and_sum() submits
  uint64_t tickets_[slots] = {};              // ticket of the run that reads the slot; 0: none
  uint32_t slot_ = 0;                         // next slot to stage or run
  uint32_t last_slot_ = 0;                    // slot of the last run
  std::vector<double> seconds_;               // per launch, if one_by_one_
  std::vector<Interval> last_times_;          // of the last run: upload (if any) and each launch
};

}  // namespace

std::unique_ptr<Executable> make_rendered_executable(RenderedShared& shared, Program program, RenderedPlan plan,
                                                     bool asked) {
  return std::make_unique<RenderedExecutable>(shared, std::move(program), std::move(plan), asked);
}

}  // namespace tutti::sdk
