// Converts arrays of NumPy and of DLPack libraries from and to host tensors.
#include <fmt/format.h>
#include <unistd.h>

#include "core/base/status.h"
#include "module.h"

namespace tutti::python {
namespace {

DType dtype_of(const nb::dlpack::dtype& d) {
  using Kind = nb::dlpack::dtype_code;
  auto is = [&](Kind kind, int bits) { return d.code == static_cast<uint8_t>(kind) && d.bits == bits && d.lanes == 1; };
  if (is(Kind::Float, 32)) return DType::f32;
  if (is(Kind::Float, 64)) return DType::f64;
  if (is(Kind::Float, 16)) return DType::f16;
  if (is(Kind::Bfloat, 16)) return DType::bf16;
  if (is(Kind::Int, 32)) return DType::i32;
  if (is(Kind::Int, 64)) return DType::i64;
  if (is(Kind::UInt, 8)) return DType::u8;
  if (is(Kind::UInt, 32)) return DType::u32;
  if (is(Kind::Bool, 8)) return DType::boolean;
  throw invalid(fmt::format("an array of DLPack type {}, {} bits", d.code, d.bits),
                "use float16, bfloat16, float32, float64, int32, int64, uint8, uint32 or bool");
}

nb::dlpack::dtype dlpack_of(DType t) {
  using Kind = nb::dlpack::dtype_code;
  auto kind = t == DType::boolean                  ? Kind::Bool
              : t == DType::u8 || t == DType::u32  ? Kind::UInt
              : t == DType::i32 || t == DType::i64 ? Kind::Int
              : t == DType::bf16                   ? Kind::Bfloat
                                                   : Kind::Float;
  return {static_cast<uint8_t>(kind), static_cast<uint8_t>(8 * size_of(t)), 1};
}

}  // namespace

HostView view(const Array& array) {
  TensorType type{dtype_of(array.dtype()), {}};
  for (size_t i = 0; i < array.ndim(); ++i) type.shape.push_back(static_cast<int64_t>(array.shape(i)));
  return {type, array.data(), array.nbytes()};
}

nb::object to_numpy(HostTensor t) {
  if (t.type.dtype == DType::bf16) t = t.to(DType::f32);
  auto* held = new HostTensor(std::move(t));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<HostTensor*>(p); });
  std::vector<size_t> shape(held->type.shape.begin(), held->type.shape.end());
  nb::ndarray<nb::numpy> array(held->bytes.data(), shape.size(), shape.data(), owner, nullptr,
                               dlpack_of(held->type.dtype));
  return nb::cast(array);
}

nb::object alias(const std::pair<TensorType, TuttiNativeState>& state, std::shared_ptr<void> owner) {
  const auto& [type, native] = state;
  std::vector<size_t> shape(type.shape.begin(), type.shape.end());
  nb::capsule keeper(new std::shared_ptr<void>(std::move(owner)),
                     [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
  // The kinds are numbered as in DLPack.
  nb::ndarray<> array(reinterpret_cast<void*>(native.data), shape.size(), shape.data(), keeper, nullptr,
                      dlpack_of(type.dtype), static_cast<int>(native.kind), static_cast<int>(native.ordinal), 'C',
                      native.offset);
  bool numpy = native.kind == TUTTI_NATIVE_HOST && type.dtype != DType::bf16;
  return numpy ? nb::cast(nb::ndarray<nb::numpy>(array)) : nb::cast(nb::ndarray<nb::array_api>(array));
}

void check_process() {
  static const pid_t first = getpid();
  if (getpid() != first)
    throw invalid("this process was forked from one that uses tutti, whose threads did not follow",
                  "start it by multiprocessing's \"spawn\", or use tutti in the children alone");
}

Callback callback(nb::object function) {
  return {new nb::object(std::move(function)), [](nb::object* o) {
            if (!Py_IsInitialized()) return;  // the interpreter and the object no longer exist
            WithGil gil;
            delete o;
          }};
}

}  // namespace tutti::python
