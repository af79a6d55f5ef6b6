#include "backends/cpu/layout.h"

#include <numeric>

namespace tutti::cpu {

size_t layout_bytes(const Layout& f, const TensorType& t) { return f.plain ? num_bytes(t) : f.form->bytes(); }

Layout layout_as(const Layout& f, const TensorType& t) { return f.plain ? Layout{} : f.form->as(t); }

bool physical_loops(const Layout& f, const TensorType& t, Physical& loops) {
  if (!f.plain) return f.form->loops(t, loops);
  size_t rank = t.shape.size();
  loops = {t.shape, std::vector<size_t>(rank), std::vector<int64_t>(rank, 1)};
  std::iota(loops.axis.begin(), loops.axis.end(), size_t{0});
  return true;
}

}  // namespace tutti::cpu
