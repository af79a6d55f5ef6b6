#include "data/merges.h"

#include <queue>

namespace tutti::data {

// A heap of pairs over a linked list, because a piece may be as long as the text.
std::vector<int32_t> merged(const Merges& merges, std::vector<int32_t> tokens) {
  struct Candidate {
    Merge merge;
    size_t left;
    int32_t a, b;
    bool operator<(const Candidate& o) const {
      return merge.rank != o.merge.rank ? merge.rank > o.merge.rank : left > o.left;
    }
  };
  constexpr int32_t gone = -1;
  const size_t n = tokens.size();
  std::vector<size_t> next(n), before(n);
  for (size_t i = 0; i < n; ++i) {
    next[i] = i + 1;
    before[i] = i - 1;
  }
  std::priority_queue<Candidate> queue;
  auto consider = [&](size_t left) {
    if (left >= n || next[left] >= n) return;
    int32_t a = tokens[left], b = tokens[next[left]];
    if (auto it = merges.find(merge_key(a, b)); it != merges.end()) queue.push({it->second, left, a, b});
  };
  for (size_t i = 0; i < n; ++i) consider(i);
  while (!queue.empty()) {
    Candidate c = queue.top();
    queue.pop();
    size_t right = next[c.left];
    if (tokens[c.left] != c.a || right >= n || tokens[right] != c.b) continue;  // stale: one of the two has been merged
    tokens[c.left] = c.merge.token;
    tokens[right] = gone;
    next[c.left] = next[right];
    if (next[right] < n) before[next[right]] = c.left;
    consider(c.left);
    consider(before[c.left]);
  }
  std::erase(tokens, gone);
  return tokens;
}

}  // namespace tutti::data
