#include "core/runtime/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/abi/tutti_exchange.h"
#include "core/abi/tutti_forget.h"
#include "core/abi/tutti_ready.h"
#include "core/base/option_text.h"
#include "core/base/shape.h"
#include "core/runtime/boundary.h"
#include "core/runtime/loader.h"
#include "core/runtime/session_call.h"

namespace tutti {
namespace {

std::string node_text(const TuttiProgram& program, uint32_t node) {
  auto n = element_of<TuttiNode>(program.nodes, node);
  std::string label = clean_text(n.label);
  return fmt::format("node {} ({}{}{})", node, clean_text(n.op), label.empty() ? "" : " ", label);
}

std::string remedy_for(Code code) {
  switch (code) {
    case Code::no_memory: return "use a smaller batch or model, or another device";
    case Code::device_lost: return "open a new session; the device's driver may say more";
    default: return "";
  }
}

// Bytes of each feed, in program order.
std::vector<size_t> feed_bytes(const TuttiProgram& program) {
  std::vector<size_t> bytes;
  for (uint32_t i = 0; i < program.values.count; ++i) {
    auto v = element_of<TuttiValue>(program.values, i);
    if (v.role != TUTTI_FEED) continue;
    bytes.push_back(num_bytes({static_cast<DType>(v.dtype), Shape(v.dims, v.dims + v.rank)}));
  }
  return bytes;
}

}  // namespace

void Session::fail(int32_t code, TuttiError& error, const std::string& doing, const TuttiProgram* program) const {
  std::string at;
  if (program && error.node < program->nodes.count) at = node_text(*program, error.node) + ": ";
  throw Error(code_of(code), fmt::format("{}: {}: {}{}", device_.id, doing, at, message_of(code, error)),
              remedy_for(code_of(code)));
}

uint32_t parse_numerics(const std::string& text) {
  if (text == "fast") return TUTTI_FAST;
  if (text == "exact") return TUTTI_EXACT;
  throw invalid_option("numerics", text, "unknown", "use fast or exact");
}

Session::Session(const Device& device, const std::map<std::string, std::string>& options)
    : Session(Registry::instance(), device, options) {}

Session::Session(Registry& registry, const Device& device, const std::map<std::string, std::string>& all)
    : device_(device), table_(&registry.load(device)) {
  std::map<std::string, std::string> options = all;
  if (auto numerics = options.extract("numerics"); !numerics.empty()) numerics_ = parse_numerics(numerics.mapped());
  if (!device.unusable.empty()) throw invalid(fmt::format("{}: cannot be used: {}", device.id, device.unusable));
  std::vector<TuttiPair> pairs;
  for (const auto& [key, value] : options) pairs.push_back({key.c_str(), value.c_str()});
  TuttiArray array = {pairs.data(), static_cast<uint32_t>(pairs.size()), sizeof(TuttiPair)};
  try {
    call("open", [&](TuttiError* e) { return table_->open(device_.index, array, &handle_, e); });
  } catch (const Error& e) {
    if (options.empty() || e.code != Code::invalid || !e.remedy.empty()) throw;
    std::vector<std::string> names;
    for (const auto& [key, value] : options) names.push_back(key);
    throw invalid(e.what(), fmt::format("the session was opened with the option {}: leave out options that this device "
                                        "does not have (docs/SETTINGS.md lists the options of each plugin)",
                                        fmt::join(names, ", ")));
  }
  if (!handle_) throw Error(Code::internal, fmt::format("{}: open: the plugin succeeded without a session", device.id));
  ++open_sessions();
}

Session::~Session() {
  if (given_up_) return;  // another thread is in the plugin
  TuttiError error = empty_error();
  guarded(error, [&](TuttiError*) { return table_->close(handle_), TUTTI_OK; });
  --open_sessions();
}

std::vector<Verdict> Session::check(const TuttiProgram& program) {
  std::vector<uint8_t> accepted(program.nodes.count, 0);
  std::vector<Verdict> verdicts(program.nodes.count);
  TuttiSink sink = {&verdicts, [](void* to, uint32_t node, const char* text) noexcept {
                      auto& all = *static_cast<std::vector<Verdict>*>(to);
                      if (node >= all.size()) return;
                      std::string& reason = all[node].reason;
                      try {
                        reason += (reason.empty() ? "" : "; ") + clean_text(text);
                      } catch (...) {  // out of memory: keeps the verdict without its reason
                      }
                    }};
  call(
      "check", [&](TuttiError* e) { return table_->check(handle_, &program, accepted.data(), sink, e); }, &program);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    verdicts[i].accepted = accepted[i] == 1;
    if (verdicts[i].accepted) {
      verdicts[i].reason.clear();
    } else if (verdicts[i].reason.empty()) {
      verdicts[i].reason = "no reason given";
    }
  }
  return verdicts;
}

bool Session::profiles() const {
  return find_extension<TuttiProfile>(table_->extensions, TUTTI_EXT_PROFILE).times != nullptr;
}

Executable Session::compile(const TuttiProgram& program, uint64_t tuning_bytes, bool profiled) {
  if (profiled && !profiles())
    throw Error(Code::declined, fmt::format("{}: its plugin does not measure kernel times", device_.id),
                "run without profiling, or use another device");
  TuttiOptions options = {};
  options.size = sizeof options;
  options.flags = (tuning_bytes ? uint32_t{TUTTI_OPT_TUNE} : 0) | (profiled ? uint32_t{TUTTI_OPT_PROFILE} : 0);
  options.tuning_bytes = tuning_bytes;
  TuttiMemory memory = {};
  memory.size = sizeof memory;
  TuttiExecutable* handle = nullptr;
  auto bytes = feed_bytes(program);
  try {
    call(
        "compile", [&](TuttiError* e) { return table_->compile(handle_, &program, &options, &handle, &memory, e); },
        &program);
  } catch (const Error& error) {
    if (error.code != Code::declined) throw;
    std::string text = error.what();
    auto verdicts = check(program);
    for (uint32_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].accepted) continue;
      text += fmt::format("\n  {}: {}", node_text(program, i), verdicts[i].reason);
    }
    throw Error(Code::declined, text, error.remedy);
  }
  if (!handle)
    throw Error(Code::internal, fmt::format("{}: compile: the plugin succeeded without an executable", device_.id));
  return {this, handle, memory, std::move(bytes)};
}

void Session::wait(uint64_t ticket) {
  if (company_) return wait_in_company(ticket);
  call("wait", [&](TuttiError* e) { return table_->wait(handle_, ticket, UINT64_MAX, e); });
}

uint64_t Session::used_bytes() {
  uint64_t now = 0, peak = 0;
  call("usage", [&](TuttiError* e) { return table_->usage(handle_, &now, &peak, e); });
  return now;
}

uint64_t Session::peak_bytes() {
  uint64_t now = 0, peak = 0;
  call("usage", [&](TuttiError* e) { return table_->usage(handle_, &now, &peak, e); });
  return peak;
}

void Session::read(const std::string& state, void* to, size_t bytes) {
  settle();
  call(fmt::format("read state '{}'", state),
       [&](TuttiError* e) { return table_->read(handle_, state.c_str(), to, bytes, e); });
}

void Session::write(const std::string& state, const void* from, size_t bytes) {
  settle();
  call(fmt::format("write state '{}'", state),
       [&](TuttiError* e) { return table_->write(handle_, state.c_str(), from, bytes, e); });
}

TuttiNativeState Session::native(const std::string& state) {
  auto extension = find_extension<TuttiNative>(table_->extensions, TUTTI_EXT_NATIVE);
  if (!extension.state)
    throw Error(Code::declined,
                fmt::format("{}: its plugin does not support native access to device memory", device_.id),
                "copy the state to the host instead");
  TuttiNativeState out = {.size = sizeof(TuttiNativeState)};
  call(fmt::format("native state '{}'", state),
       [&](TuttiError* e) { return extension.state(handle_, state.c_str(), &out, e); });
  return out;
}

bool Session::forget(const std::string& state) {
  auto extension = find_extension<TuttiForget>(table_->extensions, TUTTI_EXT_FORGET);
  if (!extension.forget) return false;
  settle();
  try {
    call(fmt::format("forget state '{}'", state),
         [&](TuttiError* e) { return extension.forget(handle_, state.c_str(), e); });
  } catch (const Error& e) {
    if (e.code == Code::declined) return false;
    throw;
  }
  return true;
}

Executable::Executable(Session* session, TuttiExecutable* handle, TuttiMemory memory, std::vector<size_t> feed_bytes)
    : session_(session), handle_(handle), memory_(memory), feed_bytes_(std::move(feed_bytes)) {}

Executable::Executable(Executable&& other) noexcept
    : session_(other.session_),
      handle_(std::exchange(other.handle_, nullptr)),
      memory_(other.memory_),
      feed_bytes_(std::move(other.feed_bytes_)),
      last_run_(other.last_run_),
      run_before_(other.run_before_),
      watch_(std::move(other.watch_)),
      connection_(std::move(other.connection_)) {}

Executable::~Executable() {
  if (!handle_ || session_->given_up_) return;
  try {
    session_->settle();
  } catch (const Error&) {  // the group's work has been ended then
  }
  TuttiError error = empty_error();
  guarded(error, [&](TuttiError*) { return session_->table_->release(handle_), TUTTI_OK; });
}

uint64_t Executable::planned_bytes() const {
  return memory_.state + memory_.constants + memory_.arena + memory_.workspace + memory_.staging;
}

void Executable::prepare() {
  session_->settle();
  session_->call("prepare", [&](TuttiError* e) { return session_->table_->prepare(handle_, e); });
}

std::vector<void*> Executable::stage() {
  if (session_->company_) session_->wait(run_before_);  // of which the slot may be
  std::vector<void*> feeds(feed_bytes_.size(), nullptr);
  session_->call("stage", [&](TuttiError* e) { return session_->table_->stage(handle_, feeds.data(), e); });
  for (size_t i = 0; i < feeds.size(); ++i)
    if (!feeds[i] && feed_bytes_[i] > 0)
      throw Error(Code::internal,
                  fmt::format("{}: stage: the plugin gave no memory for feed {}", session_->device_.id, i));
  return feeds;
}

uint64_t Executable::run() {
  uint64_t ticket = 0;
  session_->call("run", [&](TuttiError* e) { return session_->table_->run(handle_, &ticket, e); });
  if (watch_ && watch_->thrown) std::rethrow_exception(std::exchange(watch_->thrown, nullptr));
  if (connection_ && connection_->thrown) std::rethrow_exception(std::exchange(connection_->thrown, nullptr));
  run_before_ = std::exchange(last_run_, ticket);
  return ticket;
}

bool Executable::watch(const std::vector<std::string>& states, Ready ready) {
  auto extension = find_extension<TuttiReady>(session_->table_->extensions, TUTTI_EXT_READY);
  if (!extension.watch) return false;
  watch_ = std::make_unique<Watch>(Watch{std::move(ready), nullptr});
  std::vector<const char*> names;
  for (const std::string& s : states) names.push_back(s.c_str());
  TuttiReadySink sink = [](void* self, uint32_t state, const void* data) noexcept {
    auto& watch = *static_cast<Watch*>(self);
    if (!watch.thrown) try {
        watch.ready(state, static_cast<const std::byte*>(data));
      } catch (...) {
        watch.thrown = std::current_exception();
      }
  };
  session_->call("watch", [&](TuttiError* e) {
    return extension.watch(handle_, names.data(), static_cast<uint32_t>(names.size()), watch_.get(), sink, e);
  });
  return true;
}

bool Executable::connect(ExchangeValue exchange) {
  auto extension = find_extension<TuttiExchange>(session_->table_->extensions, TUTTI_EXT_EXCHANGE);
  if (!extension.connect || extension.version < 2) return false;
  connection_ = std::make_unique<Connection>(Connection{std::move(exchange), nullptr});
  TuttiExchangeSink sink = [](void* self, uint64_t number, void* data, uint64_t bytes) noexcept {
    auto& connection = *static_cast<Connection*>(self);
    if (!connection.thrown) try {
        connection.exchange(static_cast<int64_t>(number), {static_cast<std::byte*>(data), bytes});
      } catch (...) {
        connection.thrown = std::current_exception();
      }
  };
  session_->call("connect", [&](TuttiError* e) { return extension.connect(handle_, connection_.get(), sink, e); });
  return true;
}

std::vector<KernelTime> Executable::times() {
  auto extension = find_extension<TuttiProfile>(session_->table_->extensions, TUTTI_EXT_PROFILE);
  if (!extension.times)
    throw Error(Code::declined, fmt::format("{}: its plugin does not measure kernel times", session_->device_.id));
  TuttiArray raw = {};
  session_->call("times", [&](TuttiError* e) { return extension.times(handle_, &raw, e); });
  if (raw.count && (!raw.at || raw.stride < v1_size<TuttiNodeTime>))
    throw Error(Code::internal,
                fmt::format("{}: times: the plugin returned array elements of {} bytes, but at least {} are needed",
                            session_->device_.id, raw.stride, v1_size<TuttiNodeTime>));
  std::vector<KernelTime> all;
  for (uint32_t k = 0; k < raw.count; ++k) {
    auto t = element_of<TuttiNodeTime>(raw, k);
    all.push_back({t.node, t.start, t.nanoseconds, clean_text(t.kernel), clean_text(t.reason)});
    if (t.others) all.back().others.assign(t.others, t.others + t.other_count);
  }
  return all;
}

}  // namespace tutti
