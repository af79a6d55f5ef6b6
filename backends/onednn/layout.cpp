#include "backends/onednn/layout.h"

#include <algorithm>
#include <numeric>

namespace tutti::onednn {

using dnnl::memory;

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

bool nameable(const TensorType& t) {
  return data_type(t.dtype) != memory::data_type::undef && t.shape.size() <= DNNL_MAX_NDIMS;
}

Desc plain_desc(memory::data_type t, const Shape& shape) {
  Shape dims = shape.empty() ? Shape{1} : shape;
  return Desc(dims, t, strides_of(dims));
}

Layout plain_layout(const TensorType& t) {
  return {true, nameable(t) ? plain_desc(data_type(t.dtype), t.shape) : Desc()};
}

Layout layout_of(const Desc& desc, const TensorType& t) {
  bool plain = desc.get_data_type() == data_type(t.dtype) && desc == plain_desc(data_type(t.dtype), desc.get_dims());
  return {plain, desc};
}

size_t layout_bytes(const Layout& f, const TensorType& t) { return f.plain ? num_bytes(t) : f.desc.get_size(); }

Layout layout_as(const Layout& f, const TensorType& t) {
  memory::data_type type = data_type(t.dtype);
  if (f.plain || type == memory::data_type::undef || f.desc.get_dims() != t.shape) return plain_layout(t);
  if (f.desc.get_data_type() == type) return f;
  if (f.desc.get_inner_nblks() == 0) return layout_of(Desc(t.shape, type, f.desc.get_strides()), t);
  if (t.shape.size() != 4) return plain_layout(t);
  for (auto tag : {memory::format_tag::nChw16c, memory::format_tag::nChw8c})
    if (f.desc == Desc(t.shape, f.desc.get_data_type(), tag)) return layout_of(Desc(t.shape, type, tag), t);
  return plain_layout(t);
}

bool physical_loops(const Layout& f, const TensorType& t, Physical& loops) {
  size_t rank = t.shape.size();
  if (f.plain) {
    loops = {t.shape, std::vector<size_t>(rank), std::vector<int64_t>(rank, 1)};
    std::iota(loops.axis.begin(), loops.axis.end(), size_t{0});
    return true;
  }
  const Desc& d = f.desc;
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

}  // namespace tutti::onednn
