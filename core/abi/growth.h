// Structs of another header's size, read by the rule of docs/ABI.md: what is missing is zero.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "core/abi/tutti_plugin.h"

namespace tutti {

/// The bytes that T had when version 1 began: no writer has fewer, every reader must do with them. A struct that grows
/// has a row with its last member of then, a frozen one with its size.
template <class T>
inline constexpr size_t v1_size = [] {
  static_assert(sizeof(T) == 0, "this struct has no row in core/abi/growth.h");
  return size_t{0};
}();
template <>
inline constexpr size_t v1_size<TuttiError> = offsetof(TuttiError, message) + sizeof(TuttiError::message);
template <>
inline constexpr size_t v1_size<TuttiExt> = offsetof(TuttiExt, next) + sizeof(TuttiExt::next);
template <>
inline constexpr size_t v1_size<TuttiValue> = offsetof(TuttiValue, data) + sizeof(TuttiValue::data);
template <>
inline constexpr size_t v1_size<TuttiNode> = offsetof(TuttiNode, expr) + sizeof(TuttiNode::expr);
template <>
inline constexpr size_t v1_size<TuttiProgram> = offsetof(TuttiProgram, groups) + sizeof(TuttiProgram::groups);
template <>
inline constexpr size_t v1_size<TuttiDevice> = offsetof(TuttiDevice, memory_free) + sizeof(TuttiDevice::memory_free);
template <>
inline constexpr size_t v1_size<TuttiMemory> = offsetof(TuttiMemory, staging) + sizeof(TuttiMemory::staging);
template <>
inline constexpr size_t v1_size<TuttiOptions> = offsetof(TuttiOptions, tuning_bytes) +
                                                sizeof(TuttiOptions::tuning_bytes);
template <>
inline constexpr size_t v1_size<TuttiHost> = offsetof(TuttiHost, cache_put) + sizeof(TuttiHost::cache_put);
template <>
inline constexpr size_t v1_size<TuttiPlugin> = offsetof(TuttiPlugin, release) + sizeof(TuttiPlugin::release);
template <>
inline constexpr size_t v1_size<TuttiNodeTime> = offsetof(TuttiNodeTime, reason) + sizeof(TuttiNodeTime::reason);
template <>
inline constexpr size_t v1_size<TuttiProfile> = offsetof(TuttiProfile, times) + sizeof(TuttiProfile::times);
template <>
inline constexpr size_t v1_size<TuttiNativeState> = offsetof(TuttiNativeState, context) +
                                                    sizeof(TuttiNativeState::context);
template <>
inline constexpr size_t v1_size<TuttiNative> = offsetof(TuttiNative, state) + sizeof(TuttiNative::state);
template <>
inline constexpr size_t v1_size<TuttiCollective> = offsetof(TuttiCollective, broadcast) +
                                                   sizeof(TuttiCollective::broadcast);
template <>
inline constexpr size_t v1_size<TuttiArray> = sizeof(TuttiArray);
template <>
inline constexpr size_t v1_size<TuttiSink> = sizeof(TuttiSink);
template <>
inline constexpr size_t v1_size<TuttiAttr> = sizeof(TuttiAttr);
template <>
inline constexpr size_t v1_size<TuttiInstr> = sizeof(TuttiInstr);
template <>
inline constexpr size_t v1_size<TuttiState> = sizeof(TuttiState);
template <>
inline constexpr size_t v1_size<TuttiGroup> = sizeof(TuttiGroup);
template <>
inline constexpr size_t v1_size<TuttiPair> = sizeof(TuttiPair);

/// The struct of `bytes` bytes at `at` in this header's size: what lies behind is cut, what is missing is zero.
template <class T>
T zero_extended(const void* at, size_t bytes) {
  T out;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  if (bytes) std::memcpy(static_cast<void*>(&out), at, std::min(bytes, sizeof out));
  return out;
}

/// Element i of an array whose elements are at least v1_size<T> and may be of another size than T.
template <class T>
T element_of(const TuttiArray& array, size_t i) {
  return zero_extended<T>(static_cast<const char*>(array.at) + i * array.stride, array.stride);
}

/// The first extension of that id along the chain as T (TuttiProfile, …), or nothing (`id` is null then). Functions
/// that its writer did not know are null.
template <class T>
T find_extension(const TuttiExt* chain, std::string_view id) {
  for (; chain; chain = chain->next)
    if (chain->id && id == chain->id) return zero_extended<T>(chain, chain->size);
  return zero_extended<T>(nullptr, 0);
}

}  // namespace tutti
