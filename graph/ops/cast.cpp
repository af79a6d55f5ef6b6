#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef cast_op;
/// y = x in another dtype: floats round to nearest even; to integers truncates and clamps; to bool is x != 0
inline Value cast(Value x, DType to) {
  return x.dtype() == to ? x : call(cast_op, {x}, {{"to", std::string(name(to))}});
}
// end of public

const OpDef cast_op{
    .name = "cast",
    .doc = "y = x as dtype `to`: floats round to nearest even, to integers truncates and clamps, to bool is x != 0",
    .inputs = {"x"},
    .attrs = {{"to", std::string("f32")}},
    .expr =
        [](In x, const Attrs& a) {
          auto to = parse_dtype(a.text("to"));
          if (!to) throw invalid(fmt::format("unknown dtype '{}'", a.text("to")));
          return Exs{cast(x[0], *to)};
        },
    .vjp =
        [](const VjpContext& g) {
          return Values{cast(g.d[0], g.in[0].dtype())};
        },  // only copies: nothing to compute in f32
    .samples = {{.shapes = {{3, 5}}, .attrs = {{"to", std::string("bf16")}}},
                {.shapes = {{3, 5}}, .attrs = {{"to", std::string("f16")}}},
                {.shapes = {{3, 5}}, .attrs = {{"to", std::string("f64")}}},
                {.shapes = {{3, 5}}, .low = -9, .high = 9, .attrs = {{"to", std::string("i32")}}},
                {.shapes = {{3, 5}}, .low = -9, .high = 9, .dtypes = {DType::i32}},
                {.shapes = {{7}}, .low = 0, .high = 255, .dtypes = {DType::u8}},
                {.shapes = {{7}}, .dtypes = {DType::boolean}},
                {.shapes = {{0}}, .attrs = {{"to", std::string("i32")}}}}};

}  // namespace tutti
