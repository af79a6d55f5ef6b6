#include "data/files/gguf_quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/dtype.h"
#include "core/base/status.h"

namespace tutti {
namespace {

constexpr uint32_t type_f32 = 0, type_f16 = 1, type_q8_0 = 8, type_q4_k = 12, type_bf16 = 30;

template <class T>
void put(std::byte* to, T x) {
  std::memcpy(to, &x, sizeof x);
}

/// Stores x as f16 and returns what was stored.
float put_half(std::byte* to, float x) {
  put(to, f32_to_f16(x));
  return f16_to_f32(f32_to_f16(x));
}

/// 32 numbers: their largest magnitude becomes 127.
void to_q8_0(const float* x, std::byte* to) {
  float largest = 0;
  for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = largest / 127, inverse = scale == 0 ? 0 : 1 / scale;
  put_half(to, scale);
  for (size_t i = 0; i < 32; ++i) put(to + 2 + i, static_cast<int8_t>(std::round(x[i] * inverse)));
}

/// A group of 32 numbers as scale q - least, q from 0 to 15 and least >= 0, which is what q4_k can store.
struct Fit {
  double scale = 0, least = 0;
};

double nearest(double x, const Fit& f) {
  return f.scale > 0 ? std::clamp(std::round((x + f.least) / f.scale), 0., 15.) : 0;
}

double error_of(const float* x, const Fit& f) {
  double sum = 0;
  for (size_t i = 0; i < 32; ++i) sum += std::pow(f.scale * nearest(x[i], f) - f.least - x[i], 2);
  return sum;
}

/// The least squares fit for the quants that f gives.
Fit refitted(const float* x, const Fit& f) {
  double q_sum = 0, qq_sum = 0, x_sum = 0, qx_sum = 0;
  for (size_t i = 0; i < 32; ++i) {
    const double q = nearest(x[i], f);
    q_sum += q;
    qq_sum += q * q;
    x_sum += x[i];
    qx_sum += q * x[i];
  }
  const double det = 32 * qq_sum - q_sum * q_sum;
  if (det <= 0) return f;
  Fit out{(32 * qx_sum - q_sum * x_sum) / det, -(qq_sum * x_sum - q_sum * qx_sum) / det};
  if (out.least < 0) out = {qx_sum / qq_sum, 0};
  return out.scale > 0 ? out : f;
}

/// The best of fits that cut off more or less of the range, each refitted twice.
Fit best_fit(const float* x) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const double least = -std::min(*low, 0.f), range = std::max(*high + least, 0.);
  Fit best{range / 15, least};
  double error = error_of(x, best);
  for (int k = 0; k <= 16 && range > 0; ++k) {
    Fit f{range / (14 + 0.125 * k), least};
    for (int again = 0; again < 2; ++again) f = refitted(x, f);
    if (const double e = error_of(x, f); e < error) {
      error = e;
      best = f;
    }
  }
  return best;
}

/// 256 numbers: 8 groups whose scales and minimums are 6-bit multiples of two units.
void to_q4_k(const float* x, std::byte* to) {
  Fit fits[8];
  double scale = 0, least = 0;
  for (size_t j = 0; j < 8; ++j) {
    fits[j] = best_fit(x + 32 * j);
    scale = std::max(scale, fits[j].scale);
    least = std::max(least, fits[j].least);
  }
  const double scale_unit = put_half(to, static_cast<float>(scale / 63));
  const double min_unit = put_half(to + 2, static_cast<float>(least / 63));
  auto times = [](double x, double unit) {
    return unit > 0 ? static_cast<int>(std::clamp(std::round(x / unit), 0., 63.)) : 0;
  };
  int s[8], m[8], q[256];
  for (size_t j = 0; j < 8; ++j) {
    s[j] = times(fits[j].scale, scale_unit);
    m[j] = times(fits[j].least, min_unit);
    const Fit stored{scale_unit * s[j], min_unit * m[j]};
    for (size_t i = 32 * j; i < 32 * j + 32; ++i) q[i] = static_cast<int>(nearest(x[i], stored));
  }
  for (size_t j = 0; j < 4; ++j) {
    to[4 + j] = static_cast<std::byte>(s[j] | s[j + 4] >> 4 << 6);
    to[8 + j] = static_cast<std::byte>(m[j] | m[j + 4] >> 4 << 6);
    to[12 + j] = static_cast<std::byte>((s[j + 4] & 15) | (m[j + 4] & 15) << 4);
  }
  for (size_t i = 0; i < 128; ++i) {
    const size_t low = i / 32 * 64 + i % 32;
    to[16 + i] = static_cast<std::byte>(q[low] | q[low + 32] << 4);
  }
}

/// One block; whether it can hold the numbers is checked afterwards.
void to_block(const GgufType& type, const float* x, std::byte* to) {
  switch (type.number) {
    case type_f32: return put(to, *x);
    case type_f16: return put(to, f32_to_f16(*x));
    case type_bf16: return put(to, f32_to_bf16(*x));
    case type_q8_0: return to_q8_0(x, to);
    case type_q4_k: return to_q4_k(x, to);
    default: throw Error(Code::internal, fmt::format("no floats become {}", type.name));
  }
}

}  // namespace

const std::vector<const GgufType*>& writable_gguf_types() {
  static const std::vector<const GgufType*> all = [] {
    std::vector<const GgufType*> found;
    for (uint32_t n : {type_f32, type_f16, type_bf16, type_q8_0, type_q4_k}) found.push_back(find_gguf_type(n));
    return found;
  }();
  return all;
}

const GgufType* writable_gguf_type(const std::string& name) {
  for (const GgufType* t : writable_gguf_types())
    if (t->name == name) return t;
  return nullptr;
}

std::string gguf_bytes(const HostTensor& floats, const GgufType& type, const std::string& name) {
  const HostTensor wide = floats.to(DType::f32);
  const std::vector<float> x = wide.as<float>();
  std::string bytes(x.size() / type.block * type.bytes, '\0');
  auto* to = reinterpret_cast<std::byte*>(bytes.data());
  std::vector<float> back(type.block);
  for (size_t i = 0; i < x.size(); i += type.block, to += type.bytes) {
    const bool finite = std::all_of(&x[i], &x[i] + type.block, [](float v) { return std::isfinite(v); });
    if (finite) {
      to_block(type, &x[i], to);
      type.read(to, 1, back.data());
    }
    if (!finite || !std::ranges::all_of(back, [](float v) { return std::isfinite(v); }))
      throw invalid(fmt::format("tensor '{}' has elements near index {} that {} {}", name, i,
                                finite ? "are too large for" : "are not finite, which cannot be stored as", type.name),
                    finite ? "use another type, such as bf16" : "export another checkpoint");
  }
  return bytes;
}

}  // namespace tutti
