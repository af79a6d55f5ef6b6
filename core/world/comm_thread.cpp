#include "core/world/comm_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/runtime/boundary.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t note_tag = 1;
constexpr auto idle = 20ms;
constexpr auto nap = 100us, spin = 50us;

void copy_text(char* to, size_t room, const std::string& text) {
  size_t count = std::min(room - 1, text.size());
  std::memcpy(to, text.data(), count);
  to[count] = 0;
}

Error error_of(int32_t code, TuttiError& e) { return {code_of(code), message_of(code, e)}; }

}  // namespace

/// Small enough to travel without a handshake.
struct CommThread::Note {
  enum Kind : uint32_t { question, answer, failure };
  uint32_t kind, from;
  uint64_t transfers;
  int64_t step;
  int32_t code, unused;
  char what[32];
  char message[2400], remedy[1000];
};

struct CommThread::Sent {
  Note note;
  TuttiRequest* request;
};

CommThread::CommThread(const TuttiWorld& table) : table_(table), thread_([this] { work(); }) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return opened_ || error_; });
  if (!error_) return;
  lock.unlock();
  thread_.join();
  throw *error_;
}

CommThread::~CommThread() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t CommThread::begin(const TuttiTransfer& transfer) {
  std::lock_guard lock(mutex_);
  queue_.push_back(transfer);
  doing_.transfers = ++begun_;
  work_.notify_all();
  return begun_;
}

bool CommThread::wait_for(uint64_t number, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, time, [&] { return finished_ >= number || error_ || failure_; });
  if (finished_ >= number) return true;
  rethrow();
  return false;
}

void CommThread::check() {
  std::lock_guard lock(mutex_);
  rethrow();
}

void CommThread::rethrow() const {
  if (failure_) {
    std::string host = failure_->rank < peers_.size() ? fmt::format("rank {}: ", failure_->rank) : "";
    throw Error(failure_->error.code, host + failure_->error.what(), failure_->error.remedy);
  }
  if (error_) throw *error_;
}

void CommThread::ask() {
  std::lock_guard lock(mutex_);
  ask_ = true;
  work_.notify_all();
}

std::vector<CommThread::Peer> CommThread::peers() const {
  std::lock_guard lock(mutex_);
  return peers_;
}

void CommThread::doing(int64_t step, const std::string& what) {
  std::lock_guard lock(mutex_);
  doing_.step = step;
  doing_.what = what;
}

void CommThread::tell(uint32_t rank, const Error& error) {
  std::lock_guard lock(mutex_);
  to_tell_.emplace_back(rank, error);
  work_.notify_all();
}

void CommThread::abort(int code) {
  {
    std::lock_guard lock(mutex_);
    abort_ = code;
  }
  work_.notify_all();
  std::this_thread::sleep_for(3s);
  std::_Exit(code ? code : 1);  // the thread is stuck in the library
}

void CommThread::close() {
  std::unique_lock lock(mutex_);
  close_ = true;
  work_.notify_all();
  done_.wait(lock, [this] { return closed_ || error_; });
  if (error_) throw *error_;
}

void CommThread::open() {
  TuttiError e = empty_error();
  TuttiPlace place = {};
  place.size = sizeof place;
  if (int32_t code = guarded(e, [&](TuttiError* to) { return table_.open(&place, to); })) throw error_of(code, e);
  heard_ = std::make_unique<Note>();
  std::lock_guard lock(mutex_);
  place_ = place;
  peers_.resize(place.ranks);
}

void CommThread::work() try {
  open();
  if (place_.ranks > 1) listen();
  std::unique_lock lock(mutex_);
  opened_ = true;
  done_.notify_all();
  while (!quit_) {
    work_.wait_for(lock, idle,
                   [this] { return !queue_.empty() || ask_ || close_ || quit_ || abort_ || !to_tell_.empty(); });
    if (quit_) return;
    std::optional<TuttiTransfer> next;
    if (!queue_.empty()) {
      next = queue_.front();
      queue_.pop_front();
    }
    bool closing = close_ && !next;
    lock.unlock();
    exchange_notes();
    if (next) run(*next);
    TuttiError e = empty_error();
    int32_t code = closing ? guarded(e, [&](TuttiError* to) { return table_.close(to); }) : TUTTI_OK;
    lock.lock();
    if (code) throw error_of(code, e);
    if (next) ++finished_;
    closed_ = closing;
    done_.notify_all();
    if (closing) return;
  }
} catch (const Error& e) {
  std::unique_lock lock(mutex_);
  error_ = e;
  done_.notify_all();
  if (!opened_) return;
  work_.wait(lock, [this] { return quit_ || abort_; });  // the end of all ranks is still to be carried out
  lock.unlock();
  if (abort_) table_.abort(*abort_);
}

/// In pieces, tested until each is done.
void CommThread::run(const TuttiTransfer& transfer) {
  uint64_t done = 0;
  const bool whole = transfer.kind == TUTTI_ALL_TO_ALL || transfer.kind == TUTTI_ALL_GATHER ||
                     transfer.kind == TUTTI_GATHER;  // blocks are not cut
  do {
    TuttiTransfer piece = transfer;
    if (!whole) {
      piece.bytes = std::min(piece_bytes, transfer.bytes - done);
      piece.from = piece.to = static_cast<std::byte*>(transfer.to) + done;  // the World's are in place
    }
    TuttiError e = empty_error();
    TuttiRequest* request = nullptr;
    if (int32_t code = guarded(e, [&](TuttiError* to) { return table_.begin(&piece, &request, to); }))
      throw error_of(code, e);
    auto begun = Clock::now();
    while (!finished(request)) {
      exchange_notes();
      if (Clock::now() - begun > spin) std::this_thread::sleep_for(nap);
    }
    done += piece.bytes;
  } while (!whole && done < transfer.bytes);
}

bool CommThread::finished(TuttiRequest* request) {
  TuttiError e = empty_error();
  int32_t done = 0;
  if (int32_t code = guarded(e, [&](TuttiError* to) { return table_.test(request, &done, to); }))
    throw error_of(code, e);
  return done != 0;
}

void CommThread::listen() {
  TuttiTransfer t{TUTTI_RECV, TUTTI_U8, nullptr, heard_.get(), sizeof(Note), TUTTI_NONE, note_tag};
  TuttiError e = empty_error();
  if (int32_t code = guarded(e, [&](TuttiError* to) { return table_.begin(&t, &listening_, to); }))
    throw error_of(code, e);
}

void CommThread::send(uint32_t kind, uint32_t to, const Error* error) {
  auto sent = std::make_unique<Sent>();
  Note& n = sent->note;
  n = {.kind = kind, .from = place_.rank, .code = error ? static_cast<int32_t>(error->code) : 0};
  {
    std::lock_guard lock(mutex_);
    n.transfers = doing_.transfers;
    n.step = doing_.step;
    copy_text(n.what, sizeof n.what, doing_.what);
  }
  if (error) {
    copy_text(n.message, sizeof n.message, error->what());
    copy_text(n.remedy, sizeof n.remedy, error->remedy);
  }
  TuttiTransfer t{TUTTI_SEND, TUTTI_U8, &n, nullptr, sizeof n, to, note_tag};
  TuttiError e = empty_error();
  // A rank that is gone cannot be told anything: that is no failure of this one.
  if (guarded(e, [&](TuttiError* out) { return table_.begin(&t, &sent->request, out); }) == TUTTI_OK)
    sent_.push_back(std::move(sent));
}

void CommThread::take(const Note& note) {
  if (note.from >= place_.ranks) return;
  if (note.kind == Note::question) send(Note::answer, note.from);
  std::lock_guard lock(mutex_);
  Peer& peer = peers_[note.from];
  peer.heard = Clock::now();
  peer.doing = {note.transfers, note.step, std::string(note.what, strnlen(note.what, sizeof note.what))};
  if (note.kind != Note::failure || failure_) return;
  auto text = [](const char* at, size_t room) { return std::string(at, strnlen(at, room)); };
  failure_.emplace(Failure{note.from, Error(code_of(note.code), text(note.message, sizeof note.message),
                                            text(note.remedy, sizeof note.remedy))});
  done_.notify_all();
}

/// Takes what came, answers, and sends what is to be sent; ends all ranks where that is asked for.
void CommThread::exchange_notes() {
  std::vector<std::pair<uint32_t, Error>> tell;
  std::optional<int> end;
  bool ask = false;
  {
    std::lock_guard lock(mutex_);
    end = abort_;
    tell.swap(to_tell_);
    std::swap(ask, ask_);
  }
  if (end) table_.abort(*end);
  if (place_.ranks < 2) return;
  for (auto& [rank, error] : tell) send(Note::failure, rank, &error);
  for (uint32_t r = 0; ask && r < place_.ranks; ++r)
    if (r != place_.rank) send(Note::question, r);
  while (finished(listening_)) {
    take(*heard_);
    listen();
  }
  std::erase_if(sent_, [&](const std::unique_ptr<Sent>& s) { return finished(s->request); });
}

}  // namespace tutti
