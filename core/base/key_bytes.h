// Keys of caches: the bytes of everything that decides a result.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// Collects the bytes of a key. Equal sequences of calls with equal values give equal keys.
class KeyBytes {
 public:
  template <class T>
  requires std::is_scalar_v<T> KeyBytes& add(T x) {
    text_.append(reinterpret_cast<const char*>(&x), sizeof x);  // NOLINT(bugprone-sizeof-expression): pointers too
    return *this;
  }
  /// A string, or a list of numbers or structs without padding, with its length.
  template <class T>
  KeyBytes& add_all(const T& list) {
    add(list.size());
    text_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof *list.data());
    return *this;
  }
  KeyBytes& add(const TensorType& t) { return add(t.dtype).add_all(t.shape); }
  KeyBytes& add(const Attrs& attrs) {
    for (const auto& [name, value] : attrs) {
      add_all(name).add(value.index());
      std::visit([&](const auto& x) { add_all(x); }, value);
    }
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace tutti
