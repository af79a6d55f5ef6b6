// A model on a device: the task, its signature, its named states and the compiled programs. Training, evaluation,
// prediction, generation and sampling run its programs; a checkpoint holds its states.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/batch_loader.h"
#include "data/files/checkpoint.h"
#include "graph/passes/exchange.h"
#include "train/run/trainer.h"

namespace tutti {

/// A state that only one rank has.
struct OwnedState {
  TensorType type;
  int owner;
};

class DeviceModel {
 public:
  enum class Kind { training, evaluation, prediction, explanation };

  /// One compiled graph and the data tables on the device that it reads.
  struct Program {
    std::unique_ptr<CompiledGraph> step;
    bool training = false;
    int64_t batch = 0;
    InputLayout form;
    std::vector<std::string> columns = {};  ///< columns fed with every batch
    std::vector<std::string> own = {};      ///< states that hold nothing when no program has them: tables, outputs
    uint64_t used = 0;                      ///< number of the last call of program() that returned it
  };
  /// How many programs stay compiled; of more, the least recently used ones are dropped, and their own states freed.
  static constexpr size_t most_programs = 24;

  /// `options` must outlive the model; their seed is read when the first program is prepared.
  DeviceModel(const Device& device, Task task, const TrainerOptions& options);

  const TrainerOptions& options() const { return options_; }
  const Programs& programs() const { return programs_; }
  const Device& device() const { return runner.device(); }
  /// The task's signature; none before the first data set.
  const std::optional<ModelSignature>& declared() const { return declared_; }
  /// The parameters that one rank keeps for all; none before the first data set.
  const Division& division() const { return division_; }
  bool counts = true;  ///< whether the samples of this rank's next run count; else it adds nothing to sums

  // ---- initial values: from a checkpoint, from other weights, or random

  /// Initializes the states from the checkpoint instead of randomly. Call it before initialize().
  void load(Checkpoint checkpoint);
  /// Initializes parameters from these tensors; see Trainer::start_from.
  void start_from(HostTensors weights, const std::string& from);
  /// Whether states are initialized.
  bool initialized() const { return initialized_; }
  /// Initializes parameters and buffers, unless a checkpoint was loaded.
  void initialize();

  // ---- programs

  /// Derives the parameters from the first data set and checks a loaded checkpoint against them; checks that later sets
  /// need the same parameters.
  void bind(const data::Source& set);
  /// Compiles the graph, allocates memory and initializes new states from the checkpoint or the options.
  std::unique_ptr<CompiledGraph> prepare(const Graph& g, Profiler* profiler = nullptr);
  /// The program for this batch size, compiled if it is not among the last most_programs; uploads the set's tables if
  /// they are not on the device yet. It stays as long as it is held.
  std::shared_ptr<Program> program(Kind kind, const data::Source& set, int64_t batch);
  /// The update program that runs after the parts of an accumulated step; null without accumulation.
  CompiledGraph* update();
  /// Drops all compiled programs and compiles this one in their place, reusing their memory.
  std::unique_ptr<CompiledGraph> replace_programs(const Graph& g, const InputLayout& form, const data::Source& set);
  /// The layout in which a program reads the set on this device.
  InputLayout form_for(const data::Source& set, bool training);
  data::LoadOptions load_options(const Program& p, bool padding) const;

  // ---- states

  bool has_state(const std::string& name) const { return states_.contains(name); }
  const TensorType& state_type(const std::string& name) const { return states_.at(name).type; }
  HostTensor read(const std::string& name);
  /// The first element of a state.
  double element(const std::string& name);
  /// A state; a quantised matrix is dequantized.
  HostTensor state(const std::string& name);

  /// Names of the states that a checkpoint contains. `stepped`: whether a training step ran.
  std::set<std::string> kept_names(bool stepped) const;
  /// Calls `see` with the name and tensor of everything that a checkpoint contains, ordered by name, with one tensor in
  /// host memory at a time. `stepped`: whether a training step ran; before that, parts of a loaded checkpoint may not
  /// be on the device.
  template <class See>
  void each_kept(bool stepped, See see) {
    for (const std::string& name : kept_names(stepped)) {
      auto it = states_.find(name);
      if (auto owned = owned_.find(name); owned != owned_.end())
        see(name, from_owner(name, owned->second));
      else
        see(name, it != states_.end() && kept(it->second.role) ? read(name) : loaded_->tensors.at(name));
    }
  }
  /// Whether ranks share the optimizer state or parameters; all of them must then call each_kept().
  bool sharded() const { return !owned_.empty() || !division_.owner.empty(); }
  /// Throws Error(invalid) if some parameters are on other ranks: `what` runs on one alone.
  void expect_whole(const std::string& what) const;
  /// Rank 0's values of all other states that a checkpoint contains, on all ranks.
  void share();

  /// Nodes that run on other devices; see Trainer::fallback.
  FallbackReport fallback() const;
  const CostEstimate& step_cost() const { return step_cost_; }  ///< of the training program compiled last
  double compile_ms() const { return compile_ms_; }  ///< graph passes, compilation and allocation of the training step

  Runner runner;  ///< the device, and the CPU devices of a fallback

 private:
  struct State {
    TensorType type;
    StateRole role;
  };
  /// A data set, identified with its tables, that was checked against the model.
  struct Bound {
    uint64_t set;  ///< Source::identity
    InputLayout form;
    bool operator==(const Bound&) const = default;
  };
  static bool kept(StateRole role) {
    return role != StateRole::data && role != StateRole::metric && role != StateRole::gradient;
  }
  /// The layout by memory limits alone, without asking the device; its name is part of the program's cache key.
  InputLayout intended_form(const data::Source& set, bool training) const;
  void declare(const ModelSignature& found);
  void upload(Program& p, const data::Source& set);
  /// Makes room for one more program.
  void drop_oldest();
  HostTensor from_owner(const std::string& name, const OwnedState& state);

  const TrainerOptions& options_;
  Programs programs_;
  std::map<std::string, std::shared_ptr<Program>> compiled_;  // by kind, data set and batch
  uint64_t uses_ = 0;                                         // calls of program()
  std::unique_ptr<CompiledGraph> update_;
  std::map<std::string, State> states_;      // every state declared so far
  std::map<std::string, OwnedState> owned_;  // of all ranks, once the update is compiled
  std::optional<ModelSignature> declared_;
  Division division_;
  std::optional<Checkpoint> loaded_;
  HostTensors weights_;  // initial parameters, until they are written to the device
  std::string weights_from_;
  bool initialized_ = false;
  /// Throws Error(invalid) if a column is standardised by other numbers than that of an earlier set.
  void expect_same_scales(const data::Source& set);
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> scales_;  // Column::mean and deviation
  std::map<std::string, uint64_t> uploaded_;  // per state of a table: the Source::identity of the set that it holds
  std::vector<Bound> bound_;                  // the last two, for runs that alternate between training and evaluation
  std::vector<std::string> elsewhere_;        // nodes that run on fallback devices, and on which one
  std::set<std::string> fallback_devices_;
  double compile_ms_ = 0;
  CostEstimate step_cost_;
};

/// The two u32 words of the state "seed".
std::array<uint32_t, 2> seed_words(uint64_t seed);

}  // namespace tutti
