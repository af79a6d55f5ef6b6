#include "backends/cuda/branches.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "core/base/rounding.h"

namespace tutti::cuda {
namespace {

constexpr uint32_t none = ~0u;

/// A set of launches.
class Set {
 public:
  explicit Set(size_t size) : words_(ceil_div(size, 64)) {}
  bool has(uint32_t k) const { return words_[k / 64] >> (k % 64) & 1; }
  void add(uint32_t k) { words_[k / 64] |= uint64_t{1} << (k % 64); }
  void add(const Set& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }

 private:
  std::vector<uint64_t> words_;
};

/// Tracks the last accesses of each piece of memory. Pieces are delimited by the bounds of all accesses.
class Memory {
 public:
  explicit Memory(std::span<const std::vector<Access>> launches) {
    for (const auto& launch : launches)
      for (const Access& a : launch) ends_.insert(ends_.end(), {a.begin, a.end});
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    pieces_.resize(ends_.size());
  }

  /// Earlier launches that a launch with these accesses depends on, newest first; without launches that are implied by
  /// others.
  std::vector<uint32_t> before(std::span<const Access> accesses) const {
    std::vector<uint32_t> found;
    for (const Access& a : accesses)
      for (size_t i = first(a); ends_[i] < a.end; ++i) {
        if (pieces_[i].writer != none) found.push_back(pieces_[i].writer);
        if (a.written) found.insert(found.end(), pieces_[i].readers.begin(), pieces_[i].readers.end());
      }
    std::sort(found.begin(), found.end(), std::greater<>());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void touch(uint32_t launch, std::span<const Access> accesses) {
    for (const Access& a : accesses)
      for (size_t i = first(a); ends_[i] < a.end; ++i)
        if (a.written)
          pieces_[i] = {launch, {}};
        else if (pieces_[i].writer != launch)  // a launch that also writes is not recorded as a reader
          pieces_[i].readers.push_back(launch);
  }

 private:
  struct Piece {
    uint32_t writer = none;
    std::vector<uint32_t> readers;  // since that write
  };

  size_t first(const Access& a) const {
    return static_cast<size_t>(std::lower_bound(ends_.begin(), ends_.end(), a.begin) - ends_.begin());
  }

  std::vector<uint64_t> ends_;
  std::vector<Piece> pieces_;  // pieces_[i] begins at ends_[i]
};

/// The stream whose last launch is the newest one in `earlier`; else an empty stream; else the one that has been idle
/// longest.
uint32_t choose(std::span<const uint32_t> tails, const Set& earlier) {
  uint32_t best = none, empty = none, oldest = 0;
  for (uint32_t s = 0; s < tails.size(); ++s) {
    if (tails[s] == none) {
      empty = std::min(empty, s);
      continue;
    }
    if (earlier.has(tails[s]) && (best == none || tails[s] > tails[best])) best = s;
    if (tails[oldest] != none && tails[s] < tails[oldest]) oldest = s;
  }
  return best != none ? best : empty != none ? empty : oldest;
}

}  // namespace

std::vector<Placed> place(std::span<const std::vector<Access>> launches, uint32_t streams,
                          const std::vector<bool>& apart) {
  std::vector<Placed> placed(launches.size());
  const bool any_apart = std::ranges::find(apart, true) != apart.end();
  streams = std::max(streams, 1u);
  if (streams == 1 && !any_apart) return placed;
  Memory memory(launches);
  std::vector<uint32_t> tails(streams + 1, none);
  std::vector<Set> earlier;  // per launch: all launches before it
  for (uint32_t k = 0; k < launches.size(); ++k) {
    std::vector<uint32_t> needs = memory.before(launches[k]);
    Set all(launches.size());
    for (uint32_t n : needs) {
      all.add(n);
      all.add(earlier[n]);
    }
    Placed& p = placed[k];
    p.stream = any_apart && apart[k] ? streams : choose(std::span(tails).first(streams), all);
    Set known(launches.size());
    if (uint32_t tail = tails[p.stream]; tail != none) {
      known.add(tail);
      known.add(earlier[tail]);
    }
    for (uint32_t n : needs) {
      if (known.has(n)) continue;
      p.waits.push_back(n);
      known.add(n);
      known.add(earlier[n]);
    }
    earlier.push_back(std::move(known));
    tails[p.stream] = k;
    memory.touch(k, launches[k]);
  }
  return placed;
}

}  // namespace tutti::cuda
