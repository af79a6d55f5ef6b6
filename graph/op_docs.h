// The reference of all ops, generated from their records.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

namespace tutti {

/// What `tutti parity --full` found, as scripts/parity-full.py keeps it in docs/results.
struct ParityMatrix {
  struct Device {
    std::string id, name;
  };
  /// Cases of one op on one device, and the worst error of those that passed as a share of what is allowed.
  struct Cell {
    size_t pass = 0, failed = 0, not_judged = 0;  ///< failed: or unsupported; not judged: expected failure, no room
    double worst = 0;
  };
  std::string source;                                      ///< the file's name; "" for no matrix
  std::vector<Device> devices;                             ///< columns
  std::map<std::string, std::map<std::string, Cell>> ops;  ///< by op, by device id
};

/// The text of docs/OPS.md: which op passes where, then per op its formula, inputs, results, attributes, how its value
/// is defined, its gradient.
std::string ops_markdown(const ParityMatrix& parity = {});

}  // namespace tutti
