// The thread that owns the world library: transfers one after the other, and between them short notes to and from other
// ranks, so that a rank answers while it computes.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/abi/tutti_world.h"
#include "core/base/status.h"

namespace tutti {

/// Larger messages are sent in pieces, because they stall what else travels.
constexpr uint64_t piece_bytes = uint64_t{4} << 20;

/// What a rank is doing.
struct Doing {
  uint64_t transfers = 0;  ///< that it has begun
  int64_t step = 0;        ///< from 1; 0: before the first
  std::string what;        ///< "step", "saving", …
};

class CommThread {
 public:
  using Clock = std::chrono::steady_clock;
  /// What another rank ended with.
  struct Failure {
    uint32_t rank;
    Error error;
  };
  /// What is known of another rank.
  struct Peer {
    Clock::time_point heard = Clock::now();
    Doing doing;
  };

  /// Opens the world; waits for all ranks. Throws Error.
  explicit CommThread(const TuttiWorld& table);
  /// Ends the thread; without close() the world stays open.
  ~CommThread();
  CommThread(const CommThread&) = delete;

  const TuttiPlace& place() const { return place_; }
  /// Puts a transfer behind those before; its number, from 1. Buffers stay until it is done.
  uint64_t begin(const TuttiTransfer& transfer);
  /// Whether it is done after at most that time. Throws what the library or another rank ended with.
  bool wait_for(uint64_t number, std::chrono::milliseconds time);
  /// Throws what the library or another rank ended with.
  void check();
  /// Asks all other ranks what they are doing.
  void ask();
  std::vector<Peer> peers() const;
  void doing(int64_t step, const std::string& what);
  /// Tells a rank that this one has failed.
  void tell(uint32_t rank, const Error& error);
  /// Ends all ranks.
  [[noreturn]] void abort(int code);
  /// All ranks call it, behind their last transfer. Throws Error.
  void close();

 private:
  struct Note;
  struct Sent;
  void work();
  void open();
  void run(const TuttiTransfer& transfer);
  bool finished(TuttiRequest* request);
  void exchange_notes();
  void take(const Note& note);
  void send(uint32_t kind, uint32_t to, const Error* error = nullptr);
  void listen();
  void rethrow() const;

  const TuttiWorld& table_;
  TuttiPlace place_ = {};
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<TuttiTransfer> queue_;
  uint64_t begun_ = 0, finished_ = 0;
  Doing doing_;
  std::vector<Peer> peers_;
  std::optional<Error> error_;
  std::optional<Failure> failure_;
  std::vector<std::pair<uint32_t, Error>> to_tell_;
  bool opened_ = false, ask_ = false, close_ = false, closed_ = false, quit_ = false;
  std::optional<int> abort_;
  // of the thread alone
  std::unique_ptr<Note> heard_;
  TuttiRequest* listening_ = nullptr;
  std::list<std::unique_ptr<Sent>> sent_;
  std::thread thread_;
};

}  // namespace tutti
