// Limits of another device, which lower what a device reports: TUTTI_VULKAN_LIMITS, TUTTI_OPENCL_LIMITS.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tutti::sdk {

/// One section of a JSON file of limits, with the names that the device's API has for them. A value that is not lower
/// than the device's has no effect: a device is never said to offer more than it does. All functions throw
/// Error(invalid), naming file and key, for a value of the wrong type. A copy serves one device.
class Limits {
 public:
  Limits() = default;  ///< no limits
  /// Reads the file that the environment variable names, if any. Throws Error(invalid) for a damaged file and for one
  /// without the section.
  Limits(const char* variable, const char* section);
  /// Whether there is a file.
  bool on() const { return !file_.empty(); }

  /// Lowers a number.
  template <class T>
  void at_most(const char* key, T& value) {
    static_assert(std::is_unsigned_v<T>);
    if (auto limit = number(key, 1)) lower(key, limit < value, value, static_cast<T>(limit));
  }
  /// Lowers several numbers of one key.
  template <class T, size_t N>
  void at_most(const char* key, std::span<T, N> values) {
    std::vector<uint64_t> limits = numbers(key, values.size());
    bool lower_one = false;
    for (size_t k = 0; k < limits.size(); ++k) {
      lower_one = lower_one || limits[k] < values[k];
      if (limits[k] < values[k]) values[k] = static_cast<T>(limits[k]);
    }
    if (!limits.empty()) note(key, lower_one);
  }
  /// Raises an alignment, which must be a power of two.
  template <class T>
  void at_least(const char* key, T& value) {
    if (auto limit = alignment(key)) lower(key, limit > value, value, static_cast<T>(limit));
  }
  /// Turns a feature off where the file says false.
  template <class T>
  void feature(const char* key, T& value) {
    if (auto limit = flag(key)) lower(key, !*limit && value, value, T{0});
  }
  /// Keeps only the bits whose names the file lists.
  void only(const char* key, std::span<const std::pair<const char*, uint32_t>> names, uint32_t& bits);
  /// Whether the file describes a GPU: kernels are then chosen as for one. False without the key.
  bool is_gpu(const char* key, std::span<const char* const> gpus, std::span<const char* const> others);
  /// Accepts keys that no kernel depends on.
  void unused(std::initializer_list<const char*> keys);
  /// Accepts a key of `count` numbers that must not be below `needed`, which every device of the API offers.
  void guaranteed(const char* key, size_t count, uint64_t needed);
  /// Throws Error(invalid) for a key that no call named.
  void check_keys() const;
  /// "the limits of 'Mali-G610' (mali-g610.json)", for names and messages.
  std::string name() const;
  /// What the limits change on the device, for a warning.
  std::string summary(const std::string& device) const;

 private:
  using Value = std::variant<bool, uint64_t, std::string, std::vector<uint64_t>, std::vector<std::string>>;

  template <class T>
  void lower(const char* key, bool lower, T& value, T limit) {
    if (lower) value = limit;
    note(key, lower);
  }
  void note(const char* key, bool lower);
  /// The value of a key, or null. Throws Error(invalid) if it has another type.
  template <class T>
  const T* get(const char* key, const char* wanted);
  uint64_t number(const char* key, uint64_t least);  // 0: there is none
  uint64_t alignment(const char* key);               // 0: there is none
  const bool* flag(const char* key);
  std::vector<uint64_t> numbers(const char* key, size_t count);
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

  std::string variable_, file_, section_, card_;
  std::map<std::string, Value> values_;
  std::map<std::string, std::string> texts_;  // the values as they are in the file
  std::set<std::string> known_, lowered_, idle_;
};

}  // namespace tutti::sdk
