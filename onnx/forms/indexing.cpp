// Gather ops. Tutti clamps indices out of range; ONNX does not allow them.
#include "onnx/form.h"

namespace tutti::onnx {
namespace {

Names rows(Raising& r, const tutti::Node& n) { return {r.add("Gather", {r.in(n, 0), r.in(n, 1)})}; }

Names gathered(Raising& r, const tutti::Node& n) {
  return {r.add("Gather", {r.in(n, 0), r.in(n, 1)}, {{"axis", n.attrs.i("axis")}})};
}

Names along_axis(Raising& r, const tutti::Node& n) {
  return {r.add("GatherElements", {r.in(n, 0), r.in(n, 1)}, {{"axis", n.attrs.i("axis")}})};
}

}  // namespace

void add_indexing(Forms& f) {
  f.by_op["embedding"] = {rows};
  f.by_op["gather"] = {gathered};
  f.by_op["take_along_axis"] = {along_axis};
}

}  // namespace tutti::onnx
