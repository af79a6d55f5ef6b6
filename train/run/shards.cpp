#include "train/run/shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "core/base/option_text.h"
#include "core/base/shape.h"
#include "core/base/status.h"
#include "core/world/world.h"
#include "train/run/device_group.h"
#include "train/run/plan.h"

namespace tutti {
namespace {

bool shards(const TrainerOptions& options) { return options.shard != "none"; }

std::vector<std::set<std::string>> owned(const ModelSignature& declared, const TrainerOptions& options) {
  return owned_by_rank(declared.parameters, ranks_of(options));
}

/// The sum of all ranks' values, of T, in place, on rank `owner` or on all.
template <class T>
void add_up(World& world, std::span<std::byte> value, int owner, bool ordered) {
  const std::span<T> all(reinterpret_cast<T*>(value.data()), value.size() / sizeof(T));
  if (owner == Exchange::all_ranks) return ordered ? world.all_reduce_ordered(all) : world.all_reduce(all);
  ordered ? world.reduce_ordered(all, owner) : world.reduce(all, owner);
}

/// What the nodes of one program exchange.
class Meeting {
 public:
  Meeting(DeviceModel& model, const std::vector<Exchange>& all)
      : model_(model), world_(model.options().world), ordered_(model.options().reduce == "ordered") {
    for (const Exchange& e : all) by_number_.emplace(e.number, e);
  }
  Meeting(const Meeting&) = delete;
  /// Where an error has interrupted a run, memory of the device still waits for values.
  ~Meeting() {
    for (const auto& [number, t] : travelling_) try {
        world_->wait(t.transfer);
      } catch (const Error&) {  // it has been told
      }
  }

  void meet(int64_t number, std::span<std::byte> value) {
    const Exchange& e = by_number_.at(number);
    if (e.kind == Exchange::Kind::begin)
      travelling_[number] = {world_->begin_broadcast(value, e.owner), value.data()};
    else if (e.kind == Exchange::Kind::await)
      await(e, value);
    else
      sum(e, value);
  }

 private:
  struct Travelling {
    uint64_t transfer;
    std::byte* to;
  };

  void await(const Exchange& e, std::span<std::byte> value) {
    const Travelling t = travelling_.at(e.begun);
    world_->wait(t.transfer);
    travelling_.erase(e.begun);
    if (t.to != value.data()) std::memcpy(value.data(), t.to, value.size());
  }

  void sum(const Exchange& e, std::span<std::byte> value) {
    if (!model_.counts) std::memset(value.data(), 0, value.size());
    if (e.type.dtype == DType::f64)
      add_up<double>(*world_, value, e.owner, ordered_);
    else
      add_up<float>(*world_, value, e.owner, ordered_);
  }

  DeviceModel& model_;
  std::shared_ptr<World> world_;
  bool ordered_;
  std::map<int64_t, Exchange> by_number_;
  std::map<int64_t, Travelling> travelling_;  // by number of their begin
};

}  // namespace

TrainerOptions among_ranks(const Device& device, TrainerOptions options) {
  if (!options.world) return options;
  std::vector<std::string> devices = options.world->gather(device.plugin + "\n" + device.name);
  const bool differ = std::ranges::count(devices, devices[0]) != std::ssize(devices);
  const bool same_bits = options.exact && options.reduce == "ordered";
  options.mixed = differ && !same_bits;
  if (differ && options.shard == "all")
    throw invalid_option("shard", options.shard, "the ranks' devices differ",
                         "use equal devices, or " + option_text("shard", "optimizer"));
  if (options.mixed) options.shard = "optimizer";
  return options;
}

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

Division division_of(const ModelSignature& declared, const TrainerOptions& options) {
  Division division{.owner = {}, .rank = static_cast<int>(rank_of(options))};
  if (options.shard != "all") return division;
  const std::vector<std::set<std::string>> by_rank = owned(declared, options);
  for (const nn::Parameter& p : declared.parameters) {
    if (p.properties.frozen || p.type.shape.size() < 2 || num_elements(p.type.shape) < divided_elements) continue;
    for (size_t rank = 0; rank < by_rank.size(); ++rank)
      if (by_rank[rank].contains(p.name)) division.owner.emplace(p.name, static_cast<int>(rank));
  }
  return division;
}

ModelSignature present(ModelSignature declared, const Division& division) {
  std::erase_if(declared.parameters, [&](const nn::Parameter& p) { return division.absent(p.name); });
  return declared;
}

void expect_exchanges(const TrainerOptions& options, const Device& device,
                      const std::function<bool(const Graph&)>& accepts) {
  if (options.shard != "all") return;
  Graph g;
  g.set_state("exchanged", exchange(g, {}, {.number = 0, .type = {master_dtype(options.precision), {1}}}));
  if (!accepts(g))
    throw invalid_option(
        "shard", options.shard,
        fmt::format("the device {} cannot get parameters from other ranks while it computes", device.id),
        option_text("shard", "optimizer") + ", or another device (onednn, opencl, vulkan and cuda can)");
}

void connect(DeviceModel& model, CompiledGraph& program, const Graph& g) {
  const std::vector<Exchange> all = exchanges_of(g);
  if (all.empty()) return;
  World& world = *model.options().world;
  std::vector<std::string> orders = world.gather(fmt::format("{}", fmt::join(program.exchanges(), " ")));
  if (std::ranges::count(orders, orders[0]) != std::ssize(orders))
    throw Error(Code::internal, "the ranks' programs exchange values in different orders",
                "report it; " + option_text("shard", "optimizer") + " does not need an order");
  auto meeting = std::make_shared<Meeting>(model, all);
  if (!program.connect([meeting](int64_t number, std::span<std::byte> value) { meeting->meet(number, value); }))
    throw Error(Code::internal, model.device().id + ": its plugin accepts exchanges, but cannot be connected");
}

Graph update_program(const Programs& programs, const ModelSignature& declared, const TrainerOptions& options) {
  if (!shards(options)) return programs.update(declared);
  return programs.update(declared, owned(declared, options)[static_cast<size_t>(rank_of(options))],
                         division_of(declared, options));
}

std::map<std::string, OwnedState> owned_states(const Programs& programs, const ModelSignature& declared,
                                               const TrainerOptions& options) {
  std::map<std::string, OwnedState> all;
  if (!shards(options)) return all;
  std::set<std::string> everywhere;  // averages, which every rank evaluates with
  for (const nn::Parameter& p : declared.parameters) everywhere.insert(average_state(p.name));
  Division division = division_of(declared, options);
  for (const nn::Parameter& p : declared.parameters)
    if (division.contains(p.name)) all.emplace(p.name, OwnedState{p.type, division.owner.at(p.name)});
  int& rank = division.rank = 0;
  for (const std::set<std::string>& mine : owned(declared, options)) {
    Graph g = programs.update(declared, mine, division);
    for (const State& s : g.states())
      if (s.role == StateRole::optimizer && !everywhere.contains(s.name))
        all.emplace(s.name, OwnedState{g.info(s.after).type, rank});
    ++rank;
  }
  return all;
}

ShardExchange::ShardExchange(DeviceModel& model, DeviceGroup* group) : model_(model), group_(group) {
  const TrainerOptions& options = model.options();
  const Division division = division_of(*model.declared(), options);
  for (const std::set<std::string>& mine : owned(*model.declared(), options)) {
    Part& part = parts_.emplace_back();
    for (const nn::Parameter& p : model.declared()->parameters) {
      if (!mine.contains(p.name) || division.contains(p.name)) continue;
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
    if (group_) {
      std::vector<std::string> names;
      for (const auto& [name, bytes] : part.states) names.push_back(name);
      group_->broadcast(names, rank);
      continue;
    }
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
