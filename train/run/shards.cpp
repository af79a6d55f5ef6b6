#include "train/run/shards.h"

#include <algorithm>

#include "core/base/shape.h"
#include "core/world/world.h"
#include "train/run/plan.h"

namespace tutti {
namespace {

bool shards(const TrainerOptions& options) { return options.shard == "optimizer"; }

std::vector<std::set<std::string>> owned(const ModelSignature& declared, const TrainerOptions& options) {
  return owned_by_rank(declared.parameters, ranks_of(options));
}

}  // namespace

std::vector<std::set<std::string>> owned_by_rank(const std::vector<nn::Parameter>& parameters, int64_t ranks) {
  std::vector<const nn::Parameter*> all;
  for (const nn::Parameter& p : parameters) all.push_back(&p);
  std::ranges::stable_sort(all, std::greater(), [](const nn::Parameter* p) { return num_bytes(p->type); });
  std::vector<std::set<std::string>> owned(static_cast<size_t>(ranks));
  std::vector<uint64_t> bytes(owned.size());
  for (const nn::Parameter* p : all) {
    if (p->properties.frozen) continue;
    auto rank = static_cast<size_t>(std::ranges::min_element(bytes) - bytes.begin());
    owned[rank].insert(p->name);
    bytes[rank] += num_bytes(p->type);
  }
  for (const nn::Parameter* p : all)
    if (p->properties.frozen) owned[0].insert(p->name);  // whose averages alone are updated
  return owned;
}

Graph update_program(const Programs& programs, const ModelSignature& declared, const TrainerOptions& options) {
  if (!shards(options)) return programs.update(declared);
  return programs.update(declared, owned(declared, options)[static_cast<size_t>(rank_of(options))]);
}

std::map<std::string, OwnedState> owned_states(const Programs& programs, const ModelSignature& declared,
                                               const TrainerOptions& options) {
  std::map<std::string, OwnedState> all;
  if (!shards(options)) return all;
  std::set<std::string> everywhere;  // averages, which every rank evaluates with
  for (const nn::Parameter& p : declared.parameters) everywhere.insert(average_state(p.name));
  int rank = 0;
  for (const std::set<std::string>& mine : owned(declared, options)) {
    Graph g = programs.update(declared, mine);
    for (const State& s : g.states())
      if (s.role == StateRole::optimizer && !everywhere.contains(s.name))
        all.emplace(s.name, OwnedState{g.info(s.after).type, rank});
    ++rank;
  }
  return all;
}

ShardExchange::ShardExchange(DeviceModel& model) : model_(model) {
  const TrainerOptions& options = model.options();
  for (const std::set<std::string>& mine : owned(*model.declared(), options)) {
    Part& part = parts_.emplace_back();
    for (const nn::Parameter& p : model.declared()->parameters) {
      if (!mine.contains(p.name)) continue;
      if (!p.properties.frozen) part.states.emplace_back(p.name, num_bytes(p.type));
      if (options.ema > 0) part.states.emplace_back(average_state(p.name), num_bytes(p.type));
    }
    for (const auto& [name, bytes] : part.states) part.bytes += bytes;
  }
}

void ShardExchange::run() {
  World& world = *model_.options().world;
  for (int rank = 0; rank < world.size(); ++rank) {
    const Part& part = parts_[static_cast<size_t>(rank)];
    if (part.bytes == 0) continue;
    const bool mine = rank == world.rank();
    buffer_.resize(part.bytes);
    auto each = [&](auto f) {
      size_t at = 0;
      for (const auto& [name, bytes] : part.states) {
        f(name, buffer_.data() + at, bytes);
        at += bytes;
      }
    };
    if (mine) each([&](const std::string& name, void* to, size_t bytes) { model_.runner.read(name, to, bytes); });
    world.broadcast(buffer_, rank);
    if (!mine)
      each([&](const std::string& name, const void* from, size_t bytes) { model_.runner.write(name, from, bytes); });
  }
}

}  // namespace tutti
