// The descriptors of fake_graphs.cpp.
#pragma once
#include <cudnn.h>

#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tutti::cuda::fake {

struct Descriptor {
  struct Value {
    std::vector<unsigned char> bytes;
    int64_t count = 0;
    std::vector<std::shared_ptr<const Descriptor>> descriptors = {};  ///< copies: their originals may be destroyed
  };
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Value> values = {};
  std::shared_ptr<const Descriptor> graph = {};  ///< of a configuration
  int64_t number = 0;                            ///< of a configuration and its engine

  bool has(cudnnBackendAttributeName_t name) const { return values.contains(name); }
  /// All elements of an attribute. Throws std::runtime_error if it is not set.
  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    auto at = values.find(name);
    if (at == values.end()) throw std::runtime_error("an attribute is not set: " + std::to_string(name));
    std::vector<T> all(static_cast<size_t>(at->second.count));
    if (all.size() * sizeof(T) != at->second.bytes.size()) throw std::runtime_error("an attribute of another size");
    std::memcpy(all.data(), at->second.bytes.data(), at->second.bytes.size());
    return all;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    return list<T>(name).at(0);
  }
  const std::vector<std::shared_ptr<const Descriptor>>& descriptors(cudnnBackendAttributeName_t name) const {
    auto at = values.find(name);
    if (at == values.end()) throw std::runtime_error("an attribute is not set: " + std::to_string(name));
    return at->second.descriptors;
  }
  const Descriptor& descriptor(cudnnBackendAttributeName_t name) const { return *descriptors(name).at(0); }
};

}  // namespace tutti::cuda::fake
