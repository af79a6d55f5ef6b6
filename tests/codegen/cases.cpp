#include "tests/codegen/cases.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

namespace tutti::codegen::cases {

std::vector<std::byte> Array::bytes() const {
  std::vector<std::byte> b(at.size() * tutti::size_of(dtype));
  for (size_t i = 0; i < at.size(); ++i) store_element(dtype, b.data(), i, at[i]);
  return b;
}

Array random(DType t, int64_t n, double low, double high, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> pick(low, high);
  Array a{t, std::vector<double>(static_cast<size_t>(n))};
  for (double& x : a.at) x = round_to(t, is_float(t) ? pick(generator) : std::floor(pick(generator)));
  return a;
}

std::string compare(const Case& c, const std::vector<Array>& got) {
  if (got.size() != c.expected.size()) return "the number of results differs";
  for (size_t r = 0; r < got.size(); ++r) {
    const Array& want = c.expected[r];
    if (got[r].at.size() != want.at.size())
      return fmt::format("result {}: {} elements, not {}", r, got[r].at.size(), want.at.size());
    for (size_t i = 0; i < want.at.size(); ++i) {
      double x = got[r].at[i], y = want.at[i];
      if (std::isnan(x) && std::isnan(y)) continue;
      double allowed = is_float(want.dtype) ? c.absolute + c.relative * std::fabs(y) : 0;
      if (x == y || std::fabs(x - y) <= allowed) continue;
      return fmt::format("result {}, element {} of {}: {} instead of {}", r, i, want.at.size(), x, y);
    }
  }
  return "";
}

Target target(const Language& language, bool cpu_like) {
  bool glsl = &language == &Language::glsl();
  Target t;
  t.language = &language;
  t.cpu_like = cpu_like;
  t.subgroup = !cpu_like ? 32 : glsl ? 8 : 1;
  t.compute_units = cpu_like ? 2 : 16;
  t.max_texels = cpu_like && glsl ? 1 << 27 : 0;
  if (t.max_texels) t.max_buffer_bytes = 1 << 27;
  t.byte_storage = !glsl || cpu_like;
  t.half_storage = !glsl || cpu_like;
  return t;
}

}  // namespace tutti::codegen::cases
