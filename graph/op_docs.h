// Generates the reference of all ops from their records.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

namespace tutti {

/// Results of `tutti parity --full`, as scripts/parity-full.py stores them in docs/results.
struct ParityMatrix {
  struct Device {
    std::string id, name;
  };
  /// Number of cases of one op on one device, and the largest error of the passed cases relative to the tolerance.
  struct Cell {
    size_t pass = 0, failed = 0, not_judged = 0;  ///< failed: or unsupported; not judged: expected failure, no memory
    double worst = 0;
  };
  std::string source;                                      ///< the file's name; "" if there is no matrix
  std::vector<Device> devices;                             ///< columns
  std::map<std::string, std::map<std::string, Cell>> ops;  ///< by op, by device id
};

/// The text of docs/OPS.md: which ops pass on which devices, then per op its formula, inputs, results, attributes, the
/// definition of its value, and its gradient.
std::string ops_markdown(const ParityMatrix& parity = {});

}  // namespace tutti
