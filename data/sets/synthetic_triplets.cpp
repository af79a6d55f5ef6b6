// Learnable synthetic triplets: a user, an item of the user's cluster, and an item of another cluster.
#include <algorithm>

#include "data/form.h"
#include "data/synthetic.h"

namespace tutti::data {
namespace {

enum Stream : uint32_t { anchors = 0x64617430, positives, others, negatives, clusters };

struct Spec {
  int64_t users, items, train, test;
};

Spec parse(const std::string& spec) {
  std::vector<int64_t> n =
      spec_numbers(spec, {{.name = "USERS"}, {.name = "ITEMS", .least = 2}, {.name = "SAMPLES", .otherwise = 8192}});
  return {n[0], n[1], n[2], std::max<int64_t>(n[2] / 4, 1)};
}

uint64_t bytes_of(const Spec& s) { return static_cast<uint64_t>(s.train + s.test) * 3 * 4; }

std::shared_ptr<TensorSet> make(const std::string& name, const Spec& s, int64_t samples, uint32_t half) {
  int64_t count = std::min<int64_t>(8, s.items);
  // Item i belongs to cluster i % count, a user to a random cluster.
  auto item = [&](int64_t cluster, uint32_t word) {
    return static_cast<int32_t>(cluster + count * below(word, (s.items - cluster + count - 1) / count));
  };
  std::vector<int32_t> anchor, positive, negative;
  for (int64_t i = 0; i < samples; ++i) {
    anchor.push_back(below(drawn(half, anchors, i), s.users));
    int64_t cluster = below(drawn(0, clusters, anchor.back()), count);
    int64_t other = (cluster + 1 + below(drawn(half, others, i), count - 1)) % count;
    positive.push_back(item(cluster, drawn(half, positives, i)));
    negative.push_back(item(other, drawn(half, negatives, i)));
  }
  return std::make_shared<TensorSet>(
      name,
      std::vector<std::pair<std::string, HostTensor>>{{"anchor", host_tensor(DType::i32, {samples}, anchor)},
                                                      {"positive", host_tensor(DType::i32, {samples}, positive)},
                                                      {"negative", host_tensor(DType::i32, {samples}, negative)}},
      std::map<std::string, int64_t>{{"anchor", s.users}, {"positive", s.items}, {"negative", s.items}});
}

}  // namespace

extern const DataForm synthetic_triplets_form{
    .name = "synthetic-triplets",
    .form = "synthetic-triplets:USERS:ITEMS[:SAMPLES] (a user, an item of the user's cluster and one of another)",
    .open =
        [](const std::string& spec, const OpenOptions&) {
          Spec s = parse(spec);
          fitting(spec, bytes_of(s));
          return Sources{make("synthetic-triplets/train", s, s.train, 0),
                         make("synthetic-triplets/test", s, s.test, 1)};
        },
    .takes_arguments = true,
    .generated_bytes = [](const std::string& spec) { return bytes_of(parse(spec)); }};

}  // namespace tutti::data
