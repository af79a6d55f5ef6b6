#include "graph/loss.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops/mean.h"
#include "graph/ops/sum.h"
#include "graph/reduce.h"

namespace tutti {

Attrs loss_attrs(Attrs more) {
  more.set("reduction", "mean");
  return more;
}

TensorType reduced_loss(const TensorType& each, const Attrs& a) {
  const std::string& reduction = a.text("reduction");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    throw invalid(fmt::format("unknown reduction \"{}\"", reduction), "use \"mean\", \"sum\" or \"none\"");
  return reduction == "none" ? each : TensorType{each.dtype, {}};
}

Types infer_loss(std::span<const TensorType> in, const Attrs& a) {
  if (in[0] != in[1] || !is_float(in[0].dtype))
    throw invalid(fmt::format("x {} and target {} must have the same shape and the same float dtype", to_string(in[0]),
                              to_string(in[1])));
  return {reduced_loss(in[0], a)};
}

Value reduce_loss(Value each, const Attrs& a) {
  const std::string& reduction = a.text("reduction");
  return reduction == "none" ? each : reduction == "sum" ? sum(each) : mean(each);
}

Value pull_loss(const VjpContext& g) {
  if (g.a.text("reduction") != "mean") return g.d[0];
  return divide_by_count(g.d[0], num_elements(g.in[0].shape()));
}

std::vector<Sample> loss_samples(const Sample& base) {
  auto with = [&](Shape shape, const char* reduction) {
    Sample s = base;
    s.shapes = {shape, shape};
    s.attrs.set("reduction", reduction);
    return s;
  };
  return {with({3, 5}, "mean"), with({2, 3, 4}, "sum"), with({7}, "none"), with({33, 130}, "mean")};
}

}  // namespace tutti
