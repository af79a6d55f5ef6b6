// What a kernel list decides on, as bytes: the key of what a session keeps for nodes alike.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>

#include "sdk/program.h"

namespace tutti::sdk {

/// Collects the bytes of a key.
class SignatureBytes {
 public:
  template <class T>
  void add(const T& x) {
    static_assert(std::is_scalar_v<T>);
    text_.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  /// A list of numbers or instructions, with its length.
  template <class T>
  void add_all(const T& list) {
    add(static_cast<uint32_t>(list.size()));
    text_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]);
  }
  void add_type(const TensorType& t);
  /// Op, version, flags, attributes, expression, numerics, the types of inputs and of results that are read, and which
  /// inputs are the same value.
  void add_node(const Program& program, const Node& node);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace tutti::sdk
