// What a benchmark found: plain data, made by measure.h or read from an earlier run's file.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/statistics.h"
#include "graph/lower/cost_estimate.h"

namespace tutti::bench {

/// What was measured. Times of two cases are compared only where all four agree.
struct CaseName {
  std::string kind;       ///< "model" (a training step) or "op"
  std::string name;       ///< "mlp", "matmul"
  std::string detail;     ///< "784-512-256-10, batch 64", "512x512x512"
  std::string precision;  ///< "f32", "tf32", "bf16", "f16"
  bool operator==(const CaseName&) const = default;
  auto operator<=>(const CaseName&) const = default;
  /// "mlp 784-512-256-10, batch 64, f32"
  std::string text() const;
};

/// One case on one lane.
struct Measurement {
  CaseName of;
  std::string lane;
  std::string status = "measured";             ///< or "declined", "out of memory", "failed"
  std::string reason;                          ///< of everything but "measured"
  Statistics seconds;                          ///< of one run, over the repetitions
  int64_t runs = 0;                            ///< in all repetitions
  double first_seconds = 0;                    ///< open, compile (or load kernels from the cache), allocate, first run
  CostEstimate cost;                           ///< of one run
  int64_t batch = 0;                           ///< of a model
  uint64_t planned_bytes = 0, peak_bytes = 0;  ///< of a device; 0 where unknown
  std::string bound;                           ///< "products" or "memory": which peak limits it; "" unknown
  double share = 0;  ///< of what the lane's peaks allow: the time at the peaks, divided by the median; 0 unknown

  bool measured() const { return status == "measured"; }
  double flops_per_second() const { return measured() ? cost.flops / seconds.median : 0; }
  double bytes_per_second() const { return measured() ? cost.bytes / seconds.median : 0; }
};

/// How fast a device can be: the best of what was tried on it just before.
struct Peaks {
  struct Product {
    double flops_per_second = 0;
    std::string shape;
  };
  std::map<std::string, Product> products;  ///< by precision
  std::map<double, double> copies;          ///< bytes per second of the sum of two tensors, by the bytes that it moves

  /// Of work that moves that many bytes: what the largest sum that moves no more reached (else the smallest); 0
  /// unknown.
  double copy_rate(double bytes) const;
  double memory_rate() const { return copies.empty() ? 0 : copies.rbegin()->second; }  ///< of the largest sum
  double best_rate() const;                                                            ///< of any: in some cache
};

/// Who runs cases: a device, or a peer.
struct LaneInfo {
  std::string id;  ///< "onednn:0", "torch:cpu"
  bool peer = false;
  std::string name, driver, kind;
  Peaks peaks;  ///< of a device
};

struct Machine {
  std::string cpu, system;
  int cores = 0;  ///< that this process may use
  uint64_t memory_bytes = 0;
};

struct Result {
  std::string date;     ///< UTC, "2026-11-21T22:40:00Z"
  std::string version;  ///< of Tutti
  Machine machine;
  int repetitions = 0;
  double seconds_per_case = 0, seconds = 0;
  bool quick = false;
  bool partial = false;  ///< it was stopped: cases are missing
  std::vector<LaneInfo> lanes;
  std::vector<Measurement> measurements;  ///< case by case, within it lane by lane
  std::vector<std::string> notes;

  const LaneInfo* lane(const std::string& id) const;
  /// The cases in order, each once.
  std::vector<CaseName> cases() const;
  const Measurement* find(const CaseName& of, const std::string& lane) const;
  /// The peer that a device's time is held against: the one on the same kind of device; nullptr where none measured
  /// this case.
  const Measurement* peer_of(const Measurement& m) const;
};

/// a's median time over b's. Throws Error(invalid) unless both were measured and are the same case in the same
/// precision.
double ratio(const Measurement& a, const Measurement& b);

/// This machine: model of the CPU, cores, memory and system; nothing that names its owner.
Machine this_machine();
/// Now, in UTC.
std::string utc_now();

// ---- forms (each a whole document)

/// Text tables for a terminal.
std::string tables(const Result& result);
/// One line per measurement, with a line of names first.
std::string csv(const Result& result);
/// One JSON document, "tutti_bench": 1.
std::string json(const Result& result);
/// What json() wrote. Throws Error(invalid), with `name` as the document's, unless it is such a document.
Result read_json(const std::string& text, const std::string& name);
/// One page that needs nothing beside it: well-formed XML that browsers take as HTML. `earlier`: runs for the history.
std::string page(const Result& result, const std::vector<Result>& earlier = {});

// ---- numbers as text

std::string time_text(double seconds);  ///< "1.23 ms"
/// Two times in the unit and with the decimals of `like`, so that what lies between them is seen to: "1.21 - 1.25 ms".
std::string span_text(double from, double to, double like, std::string_view dash = " - ");
/// Three digits: "0.0123", "1.23", "312".
std::string digits(double x);

}  // namespace tutti::bench
