// Small programs for direct calls, and copies of them with larger, tightly bounded or broken structs.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "core/abi/growth.h"
#include "graph/lower/lower.h"
#include "verify/conformance/plugin_under_test.h"

namespace tutti::conformance {

/// s' = s + 0.5 * a * b over f32[n], of elementwise nodes: feeds "a" and "b", the state "s" (or another name).
class SmallProgram {
 public:
  explicit SmallProgram(int64_t n = 12, const std::string& state = "s");
  const TuttiProgram& get() const { return lowered_->program(); }
  size_t size() const { return size_; }

 private:
  size_t size_;
  Graph graph_;
  std::unique_ptr<Lowered> lowered_;
};

/// Test data that differs between runs, for draw `k`.
std::vector<float> drawn(size_t n, int k);

/// The small program, prepared, with the expected value of its state.
class SmallRun {
 public:
  SmallRun(RawSession& session, const TuttiProgram& program, size_t n, const std::string& state = "s");
  /// Stages and runs with the feeds of draw k; returns the ticket.
  uint64_t enqueue(int k);
  /// Writes the state.
  void write(const std::vector<float>& values);
  /// Reads the state and compares.
  void verify(Findings& f, const std::string& when);
  TuttiExecutable* get() const { return x_; }
  const TuttiMemory& memory() const { return memory_; }

 private:
  RawSession& session_;
  std::string state_;
  TuttiMemory memory_ = {};
  TuttiExecutable* x_;
  std::vector<double> want_;
};

/// Sizes of structs that may grow with ABI versions.
struct Growth {
  uint32_t extra = 0;     ///< additional bytes beyond this header's size, filled with noise
  bool version1 = false;  ///< sizes of ABI version 1, which may be smaller than this header's
  bool guarded = false;   ///< memory after each struct and array is inaccessible
  template <class T>
  uint32_t size() const {
    return static_cast<uint32_t>(version1 ? v1_size<T> : sizeof(T)) + extra;
  }
};

/// A deep copy of a program with other struct sizes.
class ProgramCopy {
 public:
  explicit ProgramCopy(const TuttiProgram& program, const Growth& growth = {});
  ~ProgramCopy();
  ProgramCopy(const ProgramCopy&) = delete;
  TuttiProgram& get() { return *program_; }
  TuttiValue& value(uint32_t i) { return at<TuttiValue>(program_->values, i); }
  TuttiNode& node(uint32_t i) { return at<TuttiNode>(program_->nodes, i); }
  TuttiState& state(uint32_t i) { return at<TuttiState>(program_->states, i); }
  TuttiGroup& group(uint32_t i) { return at<TuttiGroup>(program_->groups, i); }
  TuttiInstr& instr(uint32_t node, uint32_t i) { return at<TuttiInstr>(this->node(node).expr, i); }
  uint32_t* inputs(uint32_t i) { return const_cast<uint32_t*>(node(i).inputs); }
  uint32_t* results(uint32_t i) { return const_cast<uint32_t*>(node(i).results); }
  /// Allocates memory with the lifetime of the copy and the same guards.
  void* place(size_t bytes);

 private:
  template <class T>
  T& at(const TuttiArray& array, uint32_t i) {
    return *reinterpret_cast<T*>(static_cast<char*>(const_cast<void*>(array.at)) + size_t{i} * array.stride);
  }
  template <class T>
  TuttiArray copy(const TuttiArray& array);
  const uint32_t* copy(const uint32_t* at, uint32_t count);
  Growth growth_;
  std::vector<std::pair<void*, size_t>> pages_;
  std::deque<std::vector<uint64_t>> heap_;
  TuttiProgram* program_;
};

}  // namespace tutti::conformance
