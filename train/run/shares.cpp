#include "train/run/shares.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/world/world.h"
#include "train/run/plan.h"
#include "train/run/rank_step.h"

namespace tutti {
namespace {

constexpr const char* equally = "equal";
constexpr const char* by_speed = "speed";

std::optional<std::vector<int64_t>> parse_shares(const std::string& text) {
  std::vector<int64_t> shares;
  for (const std::string& part : split(text, ',')) {
    auto count = parse_number<int64_t>(part);
    if (!count || *count < 1) return {};
    shares.push_back(*count);
  }
  return shares;
}

bool fits(const std::vector<int64_t>& shares, const TrainerOptions& o) {
  return std::ssize(shares) == ranks_of(o) && std::accumulate(shares.begin(), shares.end(), int64_t{0}) == o.batch &&
         std::ranges::all_of(shares, [&](int64_t s) { return s % o.accumulate == 0; });
}

/// What has the bits of one process, or orders parts by their number.
void expect_no_order(const TrainerOptions& o) {
  const std::string why = "the ranks' parts of a batch have unequal sizes";
  if (o.reduce == "ordered")
    throw invalid_option("shares", o.shares, why + ", and would not give the bits of one process",
                         option_text("reduce", "fast") + ", or " + option_text("shares", equally));
  if (o.shard == "all")
    throw invalid_option("shard", o.shard, why + ", which it sums one by one",
                         option_text("shard", "optimizer") + ", or " + option_text("shares", equally));
  if (o.local_batches)
    throw invalid_option("shares", o.shares, "each rank hands in batches of its own, all of the same size",
                         "leave it out, or " + option_text("shares", equally));
  if (o.exact && o.shares == by_speed)
    throw invalid_option("numerics", "exact", "bits would depend on measured times",
                         "name the shares, such as " + option_text("shares", "48,16"));
}

}  // namespace

Share share_of(const TrainerOptions& o) {
  const int64_t rank = rank_of(o);
  if (o.divided.empty()) {
    const int64_t count = o.batch / ranks_of(o);
    return {rank * count, count};
  }
  const auto mine = o.divided.begin() + rank;
  return {std::accumulate(o.divided.begin(), mine, int64_t{0}), *mine};
}

BatchParts own_parts(const TrainerOptions& o, int64_t samples, int64_t batch) {
  BatchParts parts(samples, batch, o.local_batches ? o.accumulate : parts_of(o), o.keep_last);
  if (o.divided.empty() || batch != o.batch) return parts;
  const Share mine = share_of(o);
  const int64_t size = mine.count / o.accumulate;
  const int64_t rest = std::clamp<int64_t>(o.keep_last ? samples % batch - mine.first : 0, 0, mine.count);
  parts.whole = samples >= batch || rest >= size ? size : 0;
  parts.last = rest % size;
  return parts;
}

std::string to_text(const std::vector<int64_t>& shares) { return fmt::format("{}", fmt::join(shares, ",")); }

void check_shares(const TrainerOptions& o) {
  if (o.shares.empty() || o.shares == equally) return;
  if (ranks_of(o) == 1)
    throw invalid_option("shares", o.shares, "there is only one rank", "start several: mpiexec -n 2 tutti train …");
  if (o.shares != by_speed) {
    const auto listed = parse_shares(o.shares);
    if (!listed)
      throw invalid_option("shares", o.shares, "expected equal, speed, or a number of samples for each rank",
                           "for example " + option_text("shares", "48,16"));
    if (!fits(*listed, o))
      throw invalid_option("shares", o.shares,
                           fmt::format("this run has {} ranks, and batches of {} samples in {} part{} per rank",
                                       ranks_of(o), o.batch, o.accumulate, o.accumulate == 1 ? "" : "s"),
                           "name a multiple of the parts for each rank, which add up to the batch, or " +
                               option_text("shares", by_speed));
  }
  expect_no_order(o);
}

std::vector<int64_t> shares_by_speed(int64_t batch, int64_t unit, const std::vector<double>& seconds) {
  const auto ranks = static_cast<int64_t>(seconds.size());
  const int64_t units = batch / unit, free = units - ranks;  // every rank has one
  double speed = 0;
  for (double s : seconds) speed += 1 / s;
  std::vector<int64_t> shares;
  std::vector<std::pair<double, size_t>> rests;
  int64_t given = 0;
  for (size_t r = 0; r < seconds.size(); ++r) {
    const double wanted = std::max(0.0, static_cast<double>(units) / seconds[r] / speed - 1);
    shares.push_back(std::min(static_cast<int64_t>(wanted), free - given));
    given += shares.back();
    rests.emplace_back(static_cast<double>(shares.back()) - wanted, r);
  }
  std::ranges::stable_sort(rests, {}, &std::pair<double, size_t>::first);  // the largest rest first
  for (size_t k = 0; given < free; ++given, ++k) ++shares[rests[k % rests.size()].second];
  for (int64_t& s : shares) s = (s + 1) * unit;
  return shares;
}

std::vector<int64_t> agreed_shares(const DeviceModel& model, const TrainerOptions& options, const data::Source& set,
                                   const std::map<std::string, std::string>& loaded) {
  if (!options.world || options.shares == equally) return {};
  if (!options.shares.empty() && options.shares != by_speed) return *parse_shares(options.shares);
  if (options.reduce == "ordered" || options.shard == "all" || options.local_batches) return {};
  if (auto it = loaded.find("shares"); it != loaded.end())
    if (auto before = parse_shares(it->second); before && fits(*before, options)) return *before;
  if (options.shares.empty() || set.size() < options.batch / options.world->size()) return {};
  constexpr int64_t steps = 5;
  TrainerOptions alone = options;
  alone.world = nullptr;
  alone.planned_ranks = options.world->size();
  alone.shard = "none";
  alone.shares = equally;
  alone.mixed = alone.nan_check = false;
  alone.profiler = nullptr;
  const RankStep step = measure_rank_step(model.device(), model.programs().task(), alone, set, steps);
  std::vector<double> seconds;
  for (const std::string& text : options.world->gather(fmt::format("{}", step.parts)))
    seconds.push_back(std::max(parse_number<double>(text).value_or(1), 1e-9));
  return shares_by_speed(options.batch, options.accumulate, seconds);
}

}  // namespace tutti
