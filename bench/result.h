// Results of a benchmark, from measure.h or from the file of an earlier run.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/statistics.h"
#include "graph/lower/cost_estimate.h"

namespace tutti::bench {

/// Identity of a case. Times are compared only if all four fields are equal.
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
  std::string reason;                          ///< reason, unless "measured"
  Statistics seconds;                          ///< statistics of the time per run over the repetitions
  int64_t runs = 0;                            ///< number of runs in all repetitions
  double first_seconds = 0;                    ///< open, compile (or load kernels from the cache), allocate, first run
  CostEstimate cost;                           ///< of one run
  int64_t batch = 0;                           ///< batch size of a model
  uint64_t planned_bytes = 0, peak_bytes = 0;  ///< of a device; 0: unknown
  std::string bound;                           ///< "products" or "memory": the limiting peak; "": unknown
  double share = 0;                            ///< roofline time at the lane's peaks divided by the median; 0: unknown

  bool measured() const { return status == "measured"; }
  double flops_per_second() const { return measured() ? cost.flops / seconds.median : 0; }
  double bytes_per_second() const { return measured() ? cost.bytes / seconds.median : 0; }
};

/// Measured peak rates of a device.
struct Peaks {
  struct Product {
    double flops_per_second = 0;
    std::string shape;
  };
  std::map<std::string, Product> products;  ///< by precision
  std::map<double, double> copies;          ///< bytes per second of the sum of two tensors, by bytes moved

  /// The rate for work that moves `bytes` bytes: that of the largest sum that moves at most as many (else of the
  /// smallest sum); 0: unknown.
  double copy_rate(double bytes) const;
  double memory_rate() const { return copies.empty() ? 0 : copies.rbegin()->second; }  ///< of the largest sum
  /// Highest of all sums, in some cache.
  double best_rate() const;
};

/// A lane: a device or a peer.
struct LaneInfo {
  std::string id;  ///< "onednn:0", "torch:cpu"
  bool peer = false;
  std::string name, driver, kind;
  Peaks peaks;  ///< of a device
};

struct Machine {
  std::string cpu, system;
  int cores = 0;  ///< cores that this process may use
  uint64_t memory_bytes = 0;
};

struct Result {
  std::string date;     ///< UTC, "2026-11-21T22:40:00Z"
  std::string version;  ///< of Tutti
  Machine machine;
  int repetitions = 0;
  double seconds_per_case = 0, seconds = 0;
  bool quick = false;
  bool partial = false;  ///< stopped early: cases are missing
  std::vector<LaneInfo> lanes;
  std::vector<Measurement> measurements;  ///< ordered by case, then by lane
  std::vector<std::string> notes;

  const LaneInfo* lane(const std::string& id) const;
  /// The distinct cases in order.
  std::vector<CaseName> cases() const;
  const Measurement* find(const CaseName& of, const std::string& lane) const;
  /// The peer's measurement to compare a device with: that of the peer on the same kind of device; nullptr if there is
  /// none for this case.
  const Measurement* peer_of(const Measurement& m) const;
};

/// a's median time divided by b's. Throws Error(invalid) unless both were measured for the same case and precision.
double ratio(const Measurement& a, const Measurement& b);

/// This machine: CPU model, cores, memory and system; nothing that identifies its owner.
Machine this_machine();
/// The current time in UTC.
std::string utc_now();

// ---- output formats (each a whole document)

/// Text tables for a terminal.
std::string tables(const Result& result);
/// One line per measurement, after a header line.
std::string csv(const Result& result);
/// One JSON document, "tutti_bench": 1.
std::string json(const Result& result);
/// Parses a document of json(). Throws Error(invalid) naming `name` for anything else.
Result read_json(const std::string& text, const std::string& name);
/// One self-contained HTML page, as well-formed XML. `earlier`: runs for the history.
std::string page(const Result& result, const std::vector<Result>& earlier = {});

// ---- numbers as text

std::string time_text(double seconds);  ///< "1.23 ms"
/// A range of times in the unit and with the decimals of `like`: "1.21 - 1.25 ms".
std::string span_text(double from, double to, double like, std::string_view dash = " - ");
/// Three significant digits: "0.0123", "1.23", "312".
std::string digits(double x);

}  // namespace tutti::bench
