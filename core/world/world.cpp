#include "core/world/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <thread>

#include "core/base/option_text.h"
#include "core/world/comm_thread.h"
#include "core/world/launch.h"
#include "core/world/library.h"
#include "core/world/ordered.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using Clock = CommThread::Clock;
using Seconds = std::chrono::duration<double>;

constexpr double after_signal = 0.6;  // seconds of silence: a launcher that ends the ranks gives them about one
constexpr double own_pause = 0.5;     // seconds between two polls that mean this process was stopped
constexpr const char* closing = "the end";
constexpr double elsewhere = 10;  // times the limit for a rank that compiles, evaluates or saves

template <class T>
constexpr uint32_t dtype_of = std::is_same_v<T, double> ? TUTTI_F64 : TUTTI_F32;

constexpr const char* name_of(uint32_t kind) {
  switch (kind) {
    case TUTTI_ALL_REDUCE: return "all_reduce";
    case TUTTI_ALL_GATHER: return "all_gather";
    case TUTTI_ALL_TO_ALL: return "all_to_all";
    case TUTTI_REDUCE: return "reduce";
    case TUTTI_GATHER: return "gather";
    default: return "broadcast";
  }
}

}  // namespace

struct World::Impl {
  explicit Impl(const WorldOptions& o) : options(o), launch(this_launch()), thread(matching(launch)) {
    place = thread.place();
    library = place.library;
    if (size() != launch.ranks) throw separate(launch, library, size());
  }

  static Error separate(const Launch& launch, const std::string& library, int ranks) {
    return invalid(fmt::format("{} started {} processes, but {}, which this build uses, makes worlds of {}: they would "
                               "be {} separate runs",
                               launch.by, launch.ranks, library, ranks, launch.ranks),
                   fmt::format("start it with the mpiexec of {}", library));
  }

  /// A launcher of another MPI is found out before MPI starts, which might wait for it.
  static const TuttiWorld& matching(const Launch& launch) {
    expect_connected(launch);
    const TuttiWorld& table = load_world(launch.mpi);
    if (!launch.mpi.empty() && *table.mpi && launch.mpi != table.mpi) throw separate(launch, table.mpi, 1);
    return table;
  }

  /// How many times this rank hands over its bytes of a transfer; `root`: it is the transfer's peer.
  uint64_t copies_sent(uint32_t kind, bool root) const {
    switch (kind) {
      case TUTTI_ALL_TO_ALL:
      case TUTTI_ALL_GATHER: return place.ranks - 1;
      case TUTTI_BROADCAST: return root;
      case TUTTI_REDUCE:
      case TUTTI_GATHER: return !root;
      default: return 1;
    }
  }

  int size() const { return static_cast<int>(place.ranks); }
  int rank() const { return static_cast<int>(place.rank); }

  uint64_t begin(uint32_t kind, uint32_t dtype, const void* from, void* to, size_t bytes, int peer = 0) {
    kinds.emplace_back(kind);
    sent += bytes * copies_sent(kind, peer == rank());
    return thread.begin({kind, dtype, from, to, bytes, static_cast<uint32_t>(peer), 0});
  }

  void wait(uint64_t number) {
    const auto called = Clock::now();
    auto begun = called, asked = called, last = called;
    while (!thread.wait_for(number, 50ms)) {
      auto now = Clock::now();
      if (double gap = Seconds(now - last).count(); gap > own_pause) {  // the time stopped is not the others' silence
        stopped = std::max(stopped, gap);
        begun = now;
      }
      last = now;
      bool ending = options.interrupted && options.interrupted();
      if (Seconds(now - asked).count() > (ending ? 0.1 : 1.0)) {
        thread.ask();
        asked = now;
      }
      expect_company(number, begun, ending, what_of(number));
    }
    stopped = 0;
    waited += Seconds(Clock::now() - called).count();
  }

  std::string what_of(uint64_t number) const {
    return number == 0 ? "close" : fmt::format("{} {} (step {})", name_of(kinds.at(number - 1)), number, step);
  }

  double limit_of(const std::string& doing) const {
    return (options.timeout + longest_step) * (doing == "step" ? 1 : elsewhere);
  }

  /// See World::expect_others.
  void expect_others(Clock::time_point begun) {
    const auto now = Clock::now();
    const bool ending = options.interrupted && options.interrupted();
    thread.check();
    if (Seconds(now - asked).count() > (ending ? 0.1 : 1.0)) {
      thread.ask();
      asked = now;
    }
    if (looked > begun && Seconds(now - looked).count() > own_pause) resumed = now;  // this process was stopped
    looked = now;
    begun = std::max(begun, resumed);
    const std::string waits = fmt::format("the sums of the devices (step {})", step);
    expect_company(kinds.size(), begun, ending, waits);
    if (double passed = Seconds(now - begun).count(); passed > limit_of(what))
      throw Error(Code::timeout,
                  fmt::format("all ranks answer, but rank {} has waited {:.0f} s in {}", rank(), passed, waits),
                  "if the device is only slow, set a larger " + option_text("world-timeout") + "; " +
                      option_text("collectives", "host") + " adds up on the host");
  }

  /// Throws where a rank has been silent for too long, or stays behind. `waits`: what this rank waits in.
  void expect_company(uint64_t number, Clock::time_point begun, bool ending, const std::string& waits) {
    auto now = Clock::now();
    std::vector<CommThread::Peer> peers = thread.peers();
    double waited_now = Seconds(now - begun).count();
    for (uint32_t r = 0; r < place.ranks; ++r) {
      if (r == place.rank) continue;
      double silent = Seconds(now - std::max(begun, peers[r].heard)).count();
      if (silent > (ending ? after_signal : options.timeout)) mute.insert(static_cast<int>(r));
    }
    if (!mute.empty() && stopped > options.timeout)
      throw Error(Code::timeout,
                  fmt::format("rank {} was stopped for {:.1f} s (the limit is {:.1f} s), and rank {}{} does not answer",
                              rank(), stopped, options.timeout, *mute.begin(), host(*mute.begin())),
                  "go on from the last checkpoint: " + option_text("resume", "FILE"));
    if (!mute.empty())
      throw Error(
          Code::timeout,
          fmt::format("rank {}{} has not answered for {:.1f} s: it has ended, or it hangs; rank {} waits in {}",
                      *mute.begin(), host(*mute.begin()), ending ? after_signal : options.timeout, rank(), waits),
          "see the launcher's messages; go on from the last checkpoint: " + option_text("resume", "FILE"));
    for (uint32_t r = 0; r < place.ranks; ++r) {
      const Doing& d = peers[r].doing;
      bool behind = r != place.rank && d.transfers < number;
      if (behind && d.what == closing && what != closing)
        throw Error(Code::internal,
                    fmt::format("rank {}{} has ended its program after step {}; rank {} waits in {}", r,
                                host(static_cast<int>(r)), d.step, rank(), waits),
                    "every rank must take the same steps, with as many batches");
      if (behind && waited_now > limit_of(d.what))
        throw Error(Code::timeout,
                    fmt::format("rank {}{} is {:.0f} s behind: it is at {} of step {}; rank {} waits in {}", r,
                                host(static_cast<int>(r)), waited_now, d.what.empty() ? "the start" : d.what, d.step,
                                rank(), waits),
                    "if that rank is only slow, set a larger " + option_text("world-timeout"));
    }
  }

  /// Each rank sums one block of a piece of the values in the tree, and hands the sum to all, or to rank `root` alone;
  /// the next piece travels meanwhile.
  template <class T>
  void sum_in_order(std::span<T> values, std::optional<int> root = {}) {
    const size_t ranks = place.ranks;
    if (root && ranks == 2) return sum_of_two(values, *root);
    const size_t block = std::min((values.size() + ranks - 1) / ranks, piece_bytes / sizeof(T)), piece = block * ranks;
    if (piece == 0) return;
    const size_t pieces = (values.size() + piece - 1) / piece;
    struct Travelling {
      std::vector<T> out, in, sums;
      uint64_t to_all = 0, gathered = 0;
    };
    std::array<Travelling, 2> slots;
    auto send = [&](size_t k) {
      Travelling& t = slots[k % 2];
      t.out.assign(piece, T(0));
      std::span<T> part = values.subspan(k * piece, std::min(piece, values.size() - k * piece));
      std::ranges::copy(part, t.out.begin());
      t.in.resize(piece);
      t.to_all = begin(TUTTI_ALL_TO_ALL, dtype_of<T>, t.out.data(), t.in.data(), block * sizeof(T));
    };
    auto receive = [&](size_t k) {
      Travelling& t = slots[k % 2];
      wait(t.gathered);
      if (root.value_or(rank()) != rank()) return;
      std::span<T> part = values.subspan(k * piece, std::min(piece, values.size() - k * piece));
      std::copy_n(t.sums.begin(), part.size(), part.begin());
    };
    send(0);
    for (size_t k = 0; k < pieces; ++k) {
      Travelling& t = slots[k % 2];
      wait(t.to_all);
      if (k > 0) receive(k - 1);
      if (k + 1 < pieces) send(k + 1);
      sum_blocks(t.in.data(), ranks, block);
      t.sums.resize(root.value_or(rank()) == rank() ? piece : 0);
      t.gathered = begin(root ? TUTTI_GATHER : TUTTI_ALL_GATHER, dtype_of<T>, t.in.data(), t.sums.data(),
                         block * sizeof(T), root.value_or(0));
    }
    receive(pieces - 1);
  }

  /// The same sum, on one of two ranks alone.
  template <class T>
  void sum_of_two(std::span<T> values, int root) {
    std::vector<T> both;
    for (size_t at = 0; at < values.size(); at += piece_bytes / sizeof(T)) {
      const std::span<T> part = values.subspan(at, std::min(piece_bytes / sizeof(T), values.size() - at));
      if (root == rank()) both.resize(2 * part.size());
      wait(begin(TUTTI_GATHER, dtype_of<T>, part.data(), both.data(), part.size_bytes(), root));
      if (root != rank()) continue;
      sum_blocks(both.data(), 2, part.size());
      std::copy_n(both.begin(), part.size(), part.begin());
    }
  }

  /// In the library's order; Open MPI's own sum of two cuts it into pieces of 16 KiB, each with a wait.
  template <class T>
  void sum_at(std::span<T> values, int root) {
    if (place.ranks == 2) return sum_of_two(values, root);
    wait(begin(TUTTI_REDUCE, dtype_of<T>, values.data(), values.data(), values.size_bytes(), root));
  }

  std::string host(int r) const {
    auto at = static_cast<size_t>(r);
    return at < hosts.size() ? fmt::format(" ({})", hosts[at]) : "";
  }

  WorldOptions options;
  Launch launch;
  CommThread thread;
  TuttiPlace place = {};
  std::string library;
  std::vector<std::string> hosts;
  std::vector<uint32_t> kinds;  // of all transfers
  std::set<int> mute;           // ranks that do not answer
  int64_t step = 0;
  std::string what;
  Clock::time_point step_began = Clock::now();
  double longest_step = 0, waited = 0, stopped = 0;
  uint64_t sent = 0, early = 0;
  Clock::time_point asked, looked, resumed;  // in expect_others()
};

World::World(const WorldOptions& options) : impl_(std::make_unique<Impl>(options)) {
  impl_->hosts = gather(impl_->place.host);
}
World::~World() = default;

int World::rank() const { return impl_->rank(); }
int World::size() const { return impl_->size(); }
const std::string& World::library() const { return impl_->library; }
const std::vector<std::string>& World::hosts() const { return impl_->hosts; }
uint64_t World::bytes_sent() const { return impl_->sent; }
uint64_t World::bytes_early() const { return impl_->early; }
double World::seconds_waited() const { return impl_->waited; }

void World::at(int64_t step, const std::string& what) {
  auto now = Clock::now();
  if (step == impl_->step + 1 && impl_->what == "step")
    impl_->longest_step = std::max(impl_->longest_step, Seconds(now - impl_->step_began).count());
  impl_->step = step;
  impl_->step_began = now;
  impl_->what = what;
  impl_->thread.doing(step, what);
}

uint64_t World::begin_all_reduce(std::span<float> values, bool early) {
  impl_->early += early ? values.size_bytes() : 0;
  return impl_->begin(TUTTI_ALL_REDUCE, TUTTI_F32, values.data(), values.data(), values.size_bytes());
}
uint64_t World::begin_all_reduce(std::span<double> values, bool early) {
  impl_->early += early ? values.size_bytes() : 0;
  return impl_->begin(TUTTI_ALL_REDUCE, TUTTI_F64, values.data(), values.data(), values.size_bytes());
}
void World::wait(uint64_t transfer) { impl_->wait(transfer); }
void World::all_reduce(std::span<float> values) { wait(begin_all_reduce(values)); }
void World::all_reduce(std::span<double> values) { wait(begin_all_reduce(values)); }

void World::all_reduce_ordered(std::span<float> values) { impl_->sum_in_order(values); }
void World::all_reduce_ordered(std::span<double> values) { impl_->sum_in_order(values); }

void World::reduce(std::span<float> values, int root) { impl_->sum_at(values, root); }
void World::reduce(std::span<double> values, int root) { impl_->sum_at(values, root); }
void World::reduce_ordered(std::span<float> values, int root) { impl_->sum_in_order(values, root); }
void World::reduce_ordered(std::span<double> values, int root) { impl_->sum_in_order(values, root); }

void World::broadcast(std::span<std::byte> bytes, int root) { wait(begin_broadcast(bytes, root)); }
uint64_t World::begin_broadcast(std::span<std::byte> bytes, int root) {
  return impl_->begin(TUTTI_BROADCAST, TUTTI_U8, bytes.data(), bytes.data(), bytes.size(), root);
}

std::vector<std::string> World::gather(const std::string& text) {
  auto all = [&](const void* from, void* to, size_t bytes) {
    impl_->wait(impl_->begin(TUTTI_ALL_GATHER, TUTTI_U8, from, to, bytes));
  };
  const auto ranks = static_cast<size_t>(size());
  uint64_t mine = text.size();
  std::vector<uint64_t> sizes(ranks);
  all(&mine, sizes.data(), sizeof mine);
  const size_t room = *std::ranges::max_element(sizes);
  std::string from = text, to(ranks * room, '\0');
  from.resize(room);
  if (room > 0) all(from.data(), to.data(), room);
  std::vector<std::string> texts;
  for (size_t r = 0; r < ranks; ++r) texts.push_back(to.substr(r * room, sizes[r]));
  return texts;
}

bool World::any(bool x) {
  float count = x ? 1 : 0;
  all_reduce(std::span(&count, 1));
  return count > 0;
}

void World::expect_others(std::chrono::steady_clock::time_point begun) { impl_->expect_others(begun); }

int World::speaker() const {
  int first = 0;
  while (impl_->mute.contains(first) && first < rank()) ++first;
  return first;
}

void World::hand_over(const Error& error, int exit_code) {
  impl_->thread.tell(static_cast<uint32_t>(speaker()), error);
  auto end = Clock::now() + Seconds(elsewhere * (impl_->options.timeout + impl_->longest_step));
  while (Clock::now() < end && !(impl_->options.interrupted && impl_->options.interrupted()))
    std::this_thread::sleep_for(50ms);
  std::this_thread::sleep_for(2s);  // the speaker may still have to find it out
  abort(exit_code);
}

void World::abort(int exit_code) {
  for (int r = 0; r < size(); ++r)  // so that none of them takes this rank for one that hangs
    if (r != rank()) impl_->thread.tell(static_cast<uint32_t>(r), Error(Code::internal, "has ended"));
  std::this_thread::sleep_for(100ms);
  impl_->thread.abort(exit_code);
}

void World::close() {
  at(impl_->step, closing);
  auto others_are_there = [&] {
    std::vector<CommThread::Peer> peers = impl_->thread.peers();
    peers.erase(peers.begin() + rank());
    return std::ranges::all_of(peers, [](const CommThread::Peer& p) { return p.doing.what == closing; });
  };
  for (const auto begun = Clock::now(); !others_are_there(); std::this_thread::sleep_for(20ms)) {
    impl_->thread.ask();
    impl_->thread.check();
    impl_->expect_company(0, begun, impl_->options.interrupted && impl_->options.interrupted(), impl_->what_of(0));
  }
  any(false);  // so that no rank ends while another still waits for it
  impl_->thread.close();
}

}  // namespace tutti
