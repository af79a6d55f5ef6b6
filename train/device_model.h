// A model on a device: the task, what it declares, its named states, and the programs that were compiled for them.
// Training, evaluation, prediction, generation and sampling run its programs; a checkpoint holds its states.
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
#include "train/trainer.h"

namespace tutti {

class DeviceModel {
 public:
  enum class Kind { training, evaluation, prediction };

  /// One compiled graph, and the tables that the device holds for it.
  struct Program {
    std::unique_ptr<CompiledGraph> step;
    bool training = false;
    int64_t batch = 0;
    InputLayout form;
    std::vector<std::string> columns = {};  ///< that are fed, batch by batch
    std::vector<const std::byte*> uploaded = {};
  };

  /// `options` must outlive the model; their seed is read when the first program is prepared.
  DeviceModel(const Device& device, Task task, const TrainerOptions& options);

  const TrainerOptions& options() const { return options_; }
  const Programs& programs() const { return programs_; }
  const Device& device() const { return runner.device(); }
  /// What the task declares; none before the first data set.
  const std::optional<ModelSignature>& declared() const { return declared_; }

  // ---- first values: a checkpoint, weights from elsewhere, or drawn

  /// The states come from the checkpoint instead of being drawn. Throws Error(invalid) once states have values.
  void load(Checkpoint checkpoint);
  /// Parameters start from these; see Trainer::start_from.
  void start_from(HostTensors weights, const std::string& from);
  /// Whether states have their first values.
  bool initialized() const { return initialized_; }
  /// Gives parameters and buffers their first values, unless a checkpoint did.
  void initialize();

  // ---- programs

  /// Learns the parameters from the first data set, checks every set against them, and a loaded checkpoint too.
  void bind(const data::Source& set);
  /// Compiles, allocates, and gives first values to the states that are new.
  std::unique_ptr<CompiledGraph> prepare(const Graph& g, Profiler* profiler = nullptr);
  /// The program for batches of that size, compiled when it is first asked for, with the set's tables on the device.
  Program& program(Kind kind, const data::Source& set, int64_t batch);
  /// The update that follows the parts of an accumulated step; null without accumulation.
  CompiledGraph* update();
  /// Drops the training programs and compiles this one in their place, in the memory that they held.
  std::unique_ptr<CompiledGraph> replace_programs(const Graph& g, const InputLayout& form, const data::Source& set);
  /// How a program takes the set on this device.
  InputLayout form_for(const data::Source& set, bool training);
  data::LoadOptions load_options(const Program& p, bool padding) const;

  // ---- states

  bool has_state(const std::string& name) const { return states_.contains(name); }
  const TensorType& state_type(const std::string& name) const { return states_.at(name).type; }
  HostTensor read(const std::string& name);
  /// The first element of a state.
  double element(const std::string& name);
  /// The numbers of a quantised matrix, or a state.
  HostTensor state(const std::string& name);

  /// Calls `see` with the name and the tensor of all that a checkpoint holds, by name, one at a time in memory.
  /// `stepped`: whether a training step ran; before the first, parts of a loaded checkpoint may not be on the device.
  template <class See>
  void each_kept(bool stepped, See see) {
    for (const std::string& name : kept_names(stepped)) {
      auto it = states_.find(name);
      see(name, it != states_.end() && kept(it->second.role) ? read(name) : loaded_->tensors.at(name));
    }
  }

  /// What runs on other devices; see Trainer::fallback.
  FallbackReport fallback() const;
  const CostEstimate& step_cost() const { return step_cost_; }  ///< of the training program that was compiled last
  double compile_ms() const { return compile_ms_; }  ///< passes, plugin compile and allocation of the training step

  Runner runner;  ///< the device, and the CPUs of a fallback

 private:
  struct State {
    TensorType type;
    StateRole role;
  };
  /// A set that was checked against the model, with its tables.
  struct Bound {
    std::vector<const void*> set;
    InputLayout form;
    bool operator==(const Bound&) const = default;
  };
  static bool kept(StateRole role) {
    return role != StateRole::data && role != StateRole::metric && role != StateRole::gradient;
  }
  std::set<std::string> kept_names(bool stepped) const;
  /// The layout that memory allows, before the device is asked; it names the program.
  InputLayout intended_form(const data::Source& set, bool training) const;
  void declare(const ModelSignature& found);
  void upload(Program& p, const data::Source& set);

  const TrainerOptions& options_;
  Programs programs_;
  std::map<std::string, Program> compiled_;  // by kind, data set and batch
  std::unique_ptr<CompiledGraph> update_;
  std::map<std::string, State> states_;  // every state declared so far
  std::optional<ModelSignature> declared_;
  std::optional<Checkpoint> loaded_;
  HostTensors weights_;  // that parameters start from, until they do
  std::string weights_from_;
  bool initialized_ = false;
  std::vector<Bound> bound_;            // the last two: a run in small pieces trains and evaluates in turn
  std::vector<std::string> elsewhere_;  // nodes that a fallback runs, and where
  std::set<std::string> fallback_devices_;
  double compile_ms_ = 0;
  CostEstimate step_cost_;
};

/// The two words of the state "seed".
std::array<uint32_t, 2> seed_words(uint64_t seed);

}  // namespace tutti
