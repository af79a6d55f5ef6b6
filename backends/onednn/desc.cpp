#include "backends/onednn/desc.h"

#include <algorithm>
#include <numeric>

#include "backends/onednn/channels.h"
#include "backends/onednn/primitive.h"

namespace tutti::onednn {
namespace {

using cpu::Physical;
using dnnl::memory;

class DescForm : public cpu::Form {
 public:
  explicit DescForm(Desc d) : desc(std::move(d)) {}
  const Desc desc;

  Shape dims() const override { return desc.get_dims(); }
  size_t bytes() const override { return desc.get_size(); }
  bool equals(const Form& other) const override { return desc == static_cast<const DescForm&>(other).desc; }
  bool same_order(const Form& other) const override {
    const Desc& d = static_cast<const DescForm&>(other).desc;
    return desc.get_strides() == d.get_strides() && desc.get_inner_blks() == d.get_inner_blks() &&
           desc.get_inner_idxs() == d.get_inner_idxs();
  }
  bool stores(DType t) const override { return desc.get_data_type() == data_type(t); }
  bool strided() const override {
    return desc.get_inner_nblks() == 0 && desc.get_padded_dims() == desc.get_dims() &&
           desc.get_submemory_offset() == 0 &&
           desc.get_size() ==
               static_cast<size_t>(num_elements(desc.get_dims())) * memory::data_type_size(desc.get_data_type());
  }
  bool loops(const TensorType& t, Physical& loops) const override;
  Layout as(const TensorType& t) const override;
  std::optional<cpu::Channels> channels(const Shape& shape) const override {
    for (const Channels& c : channel_layouts(shape))
      if (desc == c.of(shape, desc.get_data_type())) return cpu::Channels{c.tag == memory::format_tag::nhwc, c.inner};
    return {};
  }
  KernelPtr reorder(const TensorType& t, const Layout& from, const Layout& to, int threads) const override;
};

Layout DescForm::as(const TensorType& t) const {
  memory::data_type type = data_type(t.dtype);
  if (type == memory::data_type::undef || dims() != t.shape) return plain_layout(t);
  if (desc.get_data_type() == type) return layout_of(desc, t);
  if (desc.get_inner_nblks() == 0) return layout_of(Desc(t.shape, type, desc.get_strides()), t);
  if (t.shape.size() != 4) return plain_layout(t);
  for (auto tag : {memory::format_tag::nChw16c, memory::format_tag::nChw8c})
    if (desc == Desc(t.shape, desc.get_data_type(), tag)) return layout_of(Desc(t.shape, type, tag), t);
  return plain_layout(t);
}

bool DescForm::loops(const TensorType& t, Physical& loops) const {
  size_t rank = t.shape.size();
  const Desc& d = desc;
  if (d.get_format_kind() != memory::format_kind::blocked || d.get_data_type() != data_type(t.dtype)) return false;
  if (d.get_dims() != t.shape || d.get_padded_dims() != t.shape || d.get_submemory_offset() != 0) return false;
  if (d.get_size() != num_bytes(t)) return false;
  memory::dims inner = d.get_inner_blks(), axes = d.get_inner_idxs(), strides = d.get_strides();
  Shape outer = t.shape;
  std::vector<int64_t> block(rank, 1);
  for (size_t k = 0; k < inner.size(); ++k) block[static_cast<size_t>(axes[k])] *= inner[k];
  for (size_t a = 0; a < rank; ++a) outer[a] /= block[a];
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return strides[a] != strides[b] ? strides[a] > strides[b] : outer[a] > outer[b];
  });
  loops = {};
  for (size_t a : order) {
    loops.dims.push_back(outer[a]);
    loops.axis.push_back(a);
    loops.step.push_back(block[a]);
  }
  for (size_t k = 0; k < inner.size(); ++k) {
    auto a = static_cast<size_t>(axes[k]);
    block[a] /= inner[k];
    loops.dims.push_back(inner[k]);
    loops.axis.push_back(a);
    loops.step.push_back(block[a]);
  }
  return true;
}

KernelPtr DescForm::reorder(const TensorType& t, const Layout& from, const Layout& to, int threads) const {
  // A plain layout is described with the other side's dimensions, because weights with groups have one more dimension.
  Desc plain = plain_desc(data_type(t.dtype), dims());
  Desc source = from.plain ? plain : desc_of(from), target = to.plain ? plain : desc_of(to);
  int used = cpu::threads_for(static_cast<double>(num_elements(t.shape)) * 64, threads);
  ThreadScope scope(used);
  dnnl::reorder::primitive_desc pd(engine(), source, engine(), target, attributes());
  auto kernel = std::make_unique<PrimitiveKernel>(
      pd, std::vector<PrimitiveKernel::Argument>{{DNNL_ARG_FROM, false, 0, source}, {DNNL_ARG_TO, true, 0, target}},
      used, threads);
  kernel->in = {from};
  kernel->out = {to};
  return kernel;
}

}  // namespace

memory::data_type data_type(DType t) {
  switch (t) {
    case DType::f32: return memory::data_type::f32;
    case DType::f16: return memory::data_type::f16;
    case DType::bf16: return memory::data_type::bf16;
    case DType::i32:
    case DType::u32: return memory::data_type::s32;
    case DType::u8:
    case DType::boolean: return memory::data_type::u8;
    default: return memory::data_type::undef;
  }
}

Desc plain_desc(memory::data_type t, const Shape& shape) {
  Shape dims = shape.empty() ? Shape{1} : shape;
  return Desc(dims, t, strides_of(dims));
}

Layout plain_layout(const TensorType& t) {
  if (data_type(t.dtype) == memory::data_type::undef || t.shape.size() > DNNL_MAX_NDIMS) return {};
  return {true, std::make_shared<DescForm>(plain_desc(data_type(t.dtype), t.shape))};
}

Layout layout_of(const Desc& desc, const TensorType& t) {
  bool plain = desc.get_data_type() == data_type(t.dtype) && desc == plain_desc(data_type(t.dtype), desc.get_dims());
  return {plain, std::make_shared<DescForm>(desc)};
}

Desc desc_of(const Layout& f) { return f.form ? static_cast<const DescForm&>(*f.form).desc : Desc(); }

}  // namespace tutti::onednn
