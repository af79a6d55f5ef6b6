#include "data/files/npy.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "data/files/whole_file.h"

namespace tutti {
namespace {

const char* descr(DType t) {
  switch (t) {
    case DType::f64: return "<f8";
    case DType::f32: return "<f4";
    case DType::f16: return "<f2";
    case DType::i64: return "<i8";
    case DType::i32: return "<i4";
    case DType::u32: return "<u4";
    case DType::u8: return "|u1";
    case DType::boolean: return "|b1";
    default: throw invalid(fmt::format("NumPy files have no {}", name(t)), "cast to f32 before");
  }
}

}  // namespace

void write_npy(const std::string& path, const HostTensor& t) {
  std::string shape;
  for (int64_t n : t.type.shape) shape += fmt::format("{}, ", n);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr(t.type.dtype), shape);
  constexpr size_t lead = 10;  // magic, version, length
  header.append(64 - (lead + header.size() + 1) % 64, ' ');
  header += '\n';
  WholeFile file(path, lead + header.size() + t.bytes.size());
  auto length = static_cast<uint16_t>(header.size());
  const char magic[lead] = {
      '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  file.write(magic, lead);
  file.write(header.data(), header.size());
  file.write(t.bytes.data(), t.bytes.size());
  file.become_target();
}

}  // namespace tutti
