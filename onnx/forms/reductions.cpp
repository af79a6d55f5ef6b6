// Reductions and scans along an axis.
#include "core/base/shape.h"
#include "core/geometry/index.h"
#include "onnx/form.h"

namespace tutti::onnx {
namespace {

void add_reduction(Forms& f, const std::string& ours, const std::string& theirs) {
  f.by_op[ours] = {[theirs](Raising& r, const tutti::Node& n) {
    Ints axes = n.attrs.ints("axes");
    if (r.shape(n.inputs[0]).empty()) axes.clear();  // ONNX allows no axes of a scalar
    return Names{r.add(theirs, {r.in(n, 0), axes.empty() ? "" : r.integers(axes)}, {{"keepdims", n.attrs.i("keep")}})};
  }};
}

bool has_axes(const Graph& g, const tutti::Node& n) { return !g.info(n.inputs[0]).type.shape.empty(); }

bool of_one_axis(const Graph& g, const tutti::Node& n) { return has_axes(g, n) && n.attrs.ints("axes").size() == 1; }

Names place_of_largest(Raising& r, const tutti::Node& n) {
  std::string place =
      r.add("ArgMax", {r.in(n, 0)}, {{"axis", n.attrs.ints("axes")[0]}, {"keepdims", n.attrs.i("keep")}});
  return {r.add("Cast", {place}, {{"to", int64_t{element_type(DType::i32)}}})};
}

void add_along_axis(Forms& f, const std::string& ours, const std::string& theirs) {
  f.by_op[ours] = {[theirs](Raising& r, const tutti::Node& n) {
                     return Names{r.add(theirs, {r.in(n, 0)}, {{"axis", n.attrs.i("axis")}})};
                   },
                   has_axes};
}

Names running_sum(Raising& r, const tutti::Node& n) {
  std::string axis = r.number(DType::i64, static_cast<double>(n.attrs.i("axis")));
  return {r.add("CumSum", {r.in(n, 0), axis}, {{"reverse", n.attrs.i("reverse")}})};
}

}  // namespace

void add_reductions(Forms& f) {
  add_reduction(f, "max", "ReduceMax");
  add_reduction(f, "mean", "ReduceMean");
  add_reduction(f, "min", "ReduceMin");
  add_reduction(f, "prod", "ReduceProd");
  add_reduction(f, "sum", "ReduceSum");
  add_along_axis(f, "softmax", "Softmax");
  add_along_axis(f, "log_softmax", "LogSoftmax");
  f.by_op["argmax"] = {place_of_largest, of_one_axis};
  f.by_op["cumsum"] = {running_sum, has_axes};
}

}  // namespace tutti::onnx
