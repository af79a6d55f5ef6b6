#include "sdk/rendered/stops.h"

#include <algorithm>
#include <set>

namespace tutti::sdk {
namespace {

constexpr uint64_t worth_a_stop = 256 << 10;  // bytes of states; the host sends about 1 MiB at a time

}  // namespace

void Stops::prepare(Meter& meter, const std::function<Range(uint32_t)>& range) {
  if (plan_.exchanges.empty()) return;
  exchanges_.clear();  // of a preparation that failed: it may be tried again
  buffer_ = Buffer(meter, plan_.exchanged_bytes, "values that processes exchange");
  for (const HostExchange& e : plan_.exchanges) {
    auto place = [&](uint32_t memory) {
      if (memory == TUTTI_NONE) return Range{};
      Range r = range(memory);
      r.bytes = e.bytes;
      return r;
    };
    exchanges_[e.position].push_back(&e);
    ranges_[&e] = {place(e.from), place(e.to)};
  }
}

void Stops::watch(std::vector<Final> finals, Ready ready) {
  finals_.clear();
  ready_ = std::move(ready);
  std::ranges::stable_sort(finals, {}, &Final::after);
  std::vector<Final> waiting;
  uint64_t bytes = 0;
  for (size_t k = 0; k < finals.size(); ++k) {
    const size_t position = finals[k].after;
    bytes += finals[k].range.bytes;
    waiting.push_back(finals[k]);
    if (k + 1 < finals.size() && (finals[k + 1].after == position || bytes < worth_a_stop)) continue;
    finals_[position] = std::exchange(waiting, {});
    bytes = 0;
  }
}

void Stops::expect_connected() const {
  if (!exchanges_.empty() && !exchange_)
    throw invalid("the program exchanges values with other processes, but is not connected to any",
                  "call connect of the extension tutti.exchange first");
}

std::vector<size_t> Stops::positions() const {
  std::set<size_t> all;
  for (const auto& [position, list] : exchanges_) all.insert(position);
  for (const auto& [position, list] : finals_) all.insert(position);
  return {all.begin(), all.end()};
}

void Stops::stop(size_t position, const std::function<void()>& go_on) {
  if (auto at = exchanges_.find(position); at != exchanges_.end())
    for (const HostExchange* e : at->second) exchange(*e);
  if (auto at = finals_.find(position); at != finals_.end()) return report(at->second, go_on);
  go_on();
}

void Stops::report(const std::vector<Final>& finals, const std::function<void()>& go_on) {
  size_t bytes = 0;
  for (const Final& f : finals) bytes += f.range.bytes;
  report_.resize(std::max(report_.size(), bytes));
  size_t at = 0;
  for (const Final& f : finals) {
    driver_.read(f.range, report_.data() + at);
    at += f.range.bytes;
  }
  go_on();
  at = 0;
  for (const Final& f : finals) {
    ready_(f.state, report_.data() + at);
    at += f.range.bytes;
  }
}

void Stops::exchange(const HostExchange& e) {
  const auto& [from, to] = ranges_.at(&e);
  std::byte* data = buffer_.data() + e.at;
  if (from.bytes > 0) driver_.read(from, data);
  exchange_(e.number, data, e.bytes);
  if (to.bytes > 0) driver_.write(to, data);
}

size_t position_of_last_use(const RenderedPlan& plan, const std::string& state) {
  auto uses = [&](uint32_t m) { return m != TUTTI_NONE && plan.memories[m].state == state; };
  size_t position = 0;
  for (size_t k = 0; k < plan.launches.size(); ++k)
    if (std::ranges::any_of(plan.launches[k].buffers, uses)) position = k + 1;
  for (const HostExchange& e : plan.exchanges)
    if (uses(e.from) || uses(e.to)) position = std::max(position, e.position);
  return position;
}

}  // namespace tutti::sdk
