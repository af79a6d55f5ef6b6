// Gather and its adjoint, sums over windows, and generated values.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/expression.h"
#include "kernels/codegen/kernel.h"
#include "kernels/codegen/lanes.h"

namespace tutti::codegen {
namespace {

/// A launch with one work-item per item.
Launch launch(const Target& t, Kernel k, int64_t items, std::vector<int> buffers) {
  k.local = {std::min(t.max_local, 64u), 1, 1};
  return dispatch_items(t, std::move(k), items, std::move(buffers));
}

void fits_int(const char* what, int64_t n) {
  if (n > 0x7fffffff) throw Error(Code::declined, fmt::format("{} of {} elements is not supported", what, n));
}

void set_sum(Kernel& k, const Target& t, DType type) {
  DType wide = is_float(type) ? DType::f32 : type == DType::i32 ? DType::i32 : DType::u32;
  k.set("ZERO", literal(*t.language, wide, 0));
  if (k.takes("ADD")) k.set("ADD(a,b)", type == DType::i32 ? "I32(U32(a) + U32(b))" : "((a) + (b))");
}

}  // namespace

LaunchList gather(const Target& t, DType type, int64_t outer, int64_t size, int64_t inner, int64_t count) {
  size_t bytes = tutti::size_of(type);
  if (bytes == 8) {
    inner *= 2;
    bytes = 4;
  }
  int64_t total = outer * count * inner;
  if (total == 0) return {};
  fits_int("gather from an axis", size);
  uint64_t elements = static_cast<uint64_t>(std::max(total, outer * size * inner));
  if (loops_over(t, inner)) {
    constexpr int64_t each = 1 << 13;  // of a work-item: about a microsecond
    const int64_t rows = outer * count, part = std::clamp<int64_t>(each / inner, 1, rows);
    Kernel k = portable("gather_rows", {{"T", raw_element(bytes)}});
    k.set("ROWS", rows);
    k.set("PART", part);
    k.set("SIZE", size);
    k.set("INNER", inner);
    k.set("COUNT", count);
    k.elements = elements;
    const int64_t work = part * (row_work + inner / 4);
    k.work = static_cast<double>(work);
    return {{dispatch(t, std::move(k), static_cast<uint64_t>(ceil_div(rows, part)), {0, 1, 2})}, {}};
  }
  bool fours = !t.cpu_like && inner * static_cast<int64_t>(bytes) % 16 == 0;
  if (fours) {
    inner = inner * static_cast<int64_t>(bytes) / 16;
    total = outer * count * inner;
  }
  Kernel k = fours ? portable("gather_fours") : portable("gather", {{"T", raw_element(bytes)}});
  k.set("TOTAL", total);
  k.set("SIZE", size);
  k.set("INNER", inner);
  k.set("COUNT", count);
  k.elements = elements;
  return {{fours ? dispatch_items(t, std::move(k), total, {0, 1, 2}) : launch(t, std::move(k), total, {0, 1, 2})}, {}};
}

namespace {

/// Updates of whole rows: builds a list of updates per row, then every element sums the updates of its row.
LaunchList scatter_lists(const Target& t, DType type, int64_t outer, int64_t size, int64_t inner, int64_t count) {
  LaunchList list;
  list.scratch_bytes = {static_cast<uint64_t>(size) * 4, static_cast<uint64_t>(count) * 4};
  constexpr int first = 3, next = 4;
  // Comparing every index with every row keeps a GPU busy; walking the indices once does no redundant work.
  bool walk = t.cpu_like || size > (int64_t{1} << 33) / count;
  if (walk) {
    LaunchList none = fill(t, DType::i32, size, static_cast<double>(count));
    none.launches[0].buffers = {first};
    list.launches.push_back(none.launches[0]);
  }
  Kernel link = portable(walk ? "scatter_link" : "scatter_list");
  link.set("SIZE", size);
  link.set("COUNT", count);
  link.elements = static_cast<uint64_t>(std::max(size, count));
  if (walk)
    list.launches.push_back(dispatch(t, std::move(link), 1, {0, first, next}));
  else
    list.launches.push_back(launch(t, std::move(link), size, {0, first, next}));
  int64_t total = outer * size * inner;
  Kernel sum = portable("scatter_sum", {{"T", element_of(type)}});
  sum.set("TOTAL", total);
  sum.set("SIZE", size);
  sum.set("INNER", inner);
  sum.set("COUNT", count);
  set_sum(sum, t, type);
  sum.elements = static_cast<uint64_t>(std::max(total, outer * count * inner));
  list.launches.push_back(launch(t, std::move(sum), total, {first, next, 1, 2}));
  return list;
}

void replace_line(Kernel& k, const std::string& line, const std::string& by) {
  k.body.replace(k.body.find(line), line.size(), by);
}

/// Sums over runs of sorted updates, of as many neighbours at once as the widest load has. PARTS: work-items per sum.
Launch scatter_runs(const Target& t, DType type, int64_t outer, int64_t size, int64_t inner, int64_t count) {
  constexpr int64_t parts = 8, long_list = 4;
  bool divided = !t.exact && count >= long_list * size;
  Element e = element_of(type);
  Kernel k = portable(divided ? "scatter_parts" : "scatter_runs", {{"T", e}});
  int64_t lanes = widest_lanes(t, size_of(e));
  while (lanes > 1 && inner % lanes) lanes = lanes > 4 ? lanes / 2 : 1;
  std::string load, store;
  std::vector<std::string> loaded, sums;
  for (int64_t l = 0; l < lanes; ++l) sums.push_back(fmt::format("s{}", l));
  const Param &u = k.params[3], &y = k.params[4];
  if (lanes > 1) {
    load = load_lanes(t, u, "from", lanes, "w", loaded);
    for (int64_t l = 0; l < lanes; ++l) load += fmt::format("    T u{} = {};\n", l, loaded[static_cast<size_t>(l)]);
    store = store_lanes(t, y, "to", sums);
  } else {
    load = "    T u0 = u(from);\n";
    store = "  y_set(to, s0);\n";
  }
  replace_line(k, "    LOAD\n", load);
  replace_line(k, "  STORE\n", store);
  int64_t items = outer * size * inner / lanes;
  k.set("TOTAL", items);
  k.set("BLOCKS", inner / lanes);
  k.set("SIZE", size);
  k.set("INNER", inner);
  k.set("COUNT", count);
  k.set("LANES", lanes);
  set_sum(k, t, type);
  k.elements = static_cast<uint64_t>(std::max(outer * size * inner, outer * count * inner));
  constexpr int order = 3, first = 4, amount = 5;
  if (!divided) return dispatch_items(t, std::move(k), items, {order, first, amount, 1, 2});
  k.set("PARTS", parts);
  return dispatch(t, std::move(k), static_cast<uint64_t>(ceil_div(items, 32)), {order, first, amount, 1, 2});
}

/// Updates of whole rows on a GPU: sorts them by row, stably, then every element sums the run of its row.
LaunchList scatter_sorted(const Target& t, DType type, int64_t outer, int64_t size, int64_t inner, int64_t count) {
  constexpr int order = 3, first = 4, amount = 5;
  constexpr int64_t rows = 8;  // that a group places
  LaunchList list = fill(t, DType::i32, size, 0);
  list.scratch_bytes = {static_cast<uint64_t>(count) * 4, static_cast<uint64_t>(size) * 4,
                        static_cast<uint64_t>(size) * 4};
  list.launches[0].buffers = {amount};
  Kernel sort = portable("scatter_sort");
  sort.set("SIZE", size);
  sort.set("COUNT", count);
  sort.set("ROWS", rows);
  sort.elements = static_cast<uint64_t>(std::max(size, count));
  list.launches.push_back(
      dispatch(t, std::move(sort), static_cast<uint64_t>(ceil_div(count, rows)), {0, order, first, amount}));
  list.launches.push_back(scatter_runs(t, type, outer, size, inner, count));
  return list;
}

/// Updates of whole rows on a CPU with vectors: each work-item takes some rows and walks the indices.
LaunchList scatter_walk(const Target& t, DType type, int64_t outer, int64_t size, int64_t inner, int64_t count) {
  constexpr int64_t elements = 1 << 14;  // of a work-item: a few microseconds
  const int64_t parts = std::clamp<int64_t>(size * inner / elements, 1, std::min(int64_t{4} * t.compute_units, size));
  const int64_t part = ceil_div(size, parts), groups = outer * ceil_div(size, part);
  Kernel k = portable("scatter_walk", {{"T", element_of(type)}});
  k.set("GROUPS", groups);
  k.set("SIZE", size);
  k.set("INNER", inner);
  k.set("COUNT", count);
  k.set("PARTS", ceil_div(size, part));
  k.set("PART", part);
  const int64_t work = part * inner / 4 + count * (row_work + inner / 4);
  k.work = static_cast<double>(work);
  set_sum(k, t, type);
  k.elements = static_cast<uint64_t>(std::max(outer * size * inner, outer * count * inner));
  return {{dispatch(t, std::move(k), static_cast<uint64_t>(groups), {0, 1, 2})}, {}};
}

}  // namespace

LaunchList scatter_add(const Target& t, DType type, int64_t outer, int64_t size, int64_t inner, int64_t count,
                       bool along) {
  LaunchList list;
  Element e = element_of(type);
  if (e == Element::boolean || e == Element::u8)
    throw Error(Code::declined, fmt::format("scatter_add of dtype {} is not supported", name(type)));
  int64_t total = outer * size * inner, columns = outer * inner;
  if (total == 0) return list;
  fits_int("scatter_add into an axis", size);
  fits_int("scatter_add with an index", count);
  int64_t rounds = std::max<int64_t>(1, static_cast<int64_t>(t.max_rounds) - 2);
  constexpr int64_t short_row = 1 << 12;
  const bool vectors = t.cpu_like && t.language->vectorizes_items && !is_narrow(type) && !along;
  const bool short_rows = size * inner <= short_row && outer >= 2 * int64_t{t.compute_units};
  if (vectors && (loops_over(t, inner) || short_rows)) return scatter_walk(t, type, outer, size, inner, count);
  // Little work needs one launch: every element compares all indices.
  bool few = count <= rounds && total <= (1 << 18) / std::max<int64_t>(count, 1);
  constexpr int64_t most_sorted = 1 << 15;  // each is compared with every other, and two counts share a word
  bool groups = !t.cpu_like && t.max_local >= 256 && t.local_bytes >= 16384;
  // Sorting is a launch more than lists, which are slow if they are long or many elements have one.
  bool sorts = count >= 4 * size || total >= (1 << 18);
  if (!along && !few && count > 0 && count <= rounds)
    return groups && sorts && count <= most_sorted ? scatter_sorted(t, type, outer, size, inner, count)
                                                   : scatter_lists(t, type, outer, size, inner, count);
  // Comparing every index with every row is parallel but redundant; walking the indices per column is not.
  bool by_rows = few || (count <= rounds && (count <= 32 || (columns < 256 && size * count <= (int64_t{1} << 26))));
  bool narrow = is_narrow(type);
  Kernel k = portable(by_rows ? "scatter_rows" : "scatter_columns", {{"T", e}, {"Y", narrow ? Element::f32 : e}});
  k.set(by_rows ? "TOTAL" : "COLUMNS", by_rows ? total : columns);
  k.set("SIZE", size);
  k.set("INNER", inner);
  k.set("COUNT", count);
  k.set("WHICH(i,at)", along ? "(at)" : "(i)");
  set_sum(k, t, type);
  k.elements = static_cast<uint64_t>(std::max(total, outer * count * inner));
  if (by_rows) return {{launch(t, std::move(k), total, {0, 1, 2})}, {}};
  // 16-bit floats are summed in f32.
  int y = narrow ? 3 : 2;
  // A separate launch writes zeros if they dominate the work, or if loop rounds are limited.
  bool apart = size > std::max<int64_t>(count, 1024) || size + count > rounds;
  if (apart) {
    LaunchList zero = fill(t, narrow ? DType::f32 : type, total, 0);
    zero.launches[0].buffers = {y};
    list.launches.push_back(zero.launches[0]);
  }
  k.set("ZEROS", apart ? 0 : size);
  for (int64_t first = 0; first < count; first += rounds) {
    k.set("FIRST", first);
    k.set("LAST", std::min(count, first + rounds));
    list.launches.push_back(launch(t, k, columns, {0, 1, y}));
  }
  if (!narrow) return list;
  list.scratch_bytes = {static_cast<uint64_t>(total) * 4};
  TuttiInstr code[] = {{TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0},
                       {TUTTI_X_CAST, static_cast<uint16_t>(type), 0, 0, 0},
                       {TUTTI_X_RESULT, static_cast<uint16_t>(type), 1, 0, 0}};
  Operand in[] = {{DType::f32, {1}}};
  LaunchList cast = elementwise(t, code, {total}, in, std::span(&type, 1), false);
  cast.launches[0].buffers = {3, 2};
  list.launches.push_back(cast.launches[0]);
  return list;
}

LaunchList random_bits(const Target& t, int64_t n, uint32_t stream) {
  if (n == 0) return {};
  // Every weight, noise and dropout mask has its own stream. It is passed as data, so that a program needs only one
  // kernel.
  Kernel k = portable("random_bits");
  k.set("BLOCK_HIGH(b)", n / 4 > 0xffffffffll ? "U32((b) >> 32)" : "0u");
  k.set("STREAM", static_cast<int32_t>(stream));
  k.set("TOTAL", n);
  k.elements = static_cast<uint64_t>(n) + 4ull * k.local[0];  // the last group counts blocks beyond the end
  return {{launch(t, std::move(k), ceil_div(n, 4), {0, 1, 2})}, {}};
}

LaunchList iota(const Target& t, int64_t outer, int64_t size, int64_t inner) {
  int64_t total = outer * size * inner;
  if (total == 0) return {};
  fits_int("iota along an axis", size);
  Kernel k = portable("iota");
  k.set("TOTAL", total);
  k.set("SIZE", size);
  k.set("INNER", inner);
  k.elements = static_cast<uint64_t>(total);
  return {{launch(t, std::move(k), total, {0})}, {}};
}

LaunchList fill(const Target& t, DType type, int64_t n, double value) {
  if (n == 0) return {};
  bool pair = tutti::size_of(type) == 8;
  if (pair && value != 0)
    throw Error(Code::declined, fmt::format("fill of dtype {} with {} is not supported", name(type), value));
  Kernel k = portable("fill", {{"T", pair ? Element::u32 : element_of(type)}});
  if (pair) n *= 2;
  k.set("TOTAL", n);
  k.set("VALUE", literal(*t.language, pair ? DType::u32 : type, value));
  k.elements = static_cast<uint64_t>(n);
  return {{launch(t, std::move(k), n, {0})}, {}};
}

LaunchList fold_windows(const Target& t, DType type, int64_t planes, const WindowAxis& h, const WindowAxis& w) {
  Element e = element_of(type);
  if (e == Element::boolean || e == Element::u8)
    throw Error(Code::declined, fmt::format("fold of dtype {} is not supported", name(type)));
  int64_t total = planes * h.size * w.size;
  if (total == 0) return {};
  bool few = h.kernel * w.kernel <= 49;
  bool apart = !t.exact && h.kernel <= h.stride && w.kernel <= w.stride && h.dilation == 1 && w.dilation == 1;
  Kernel k = portable(apart ? "fold_apart" : few ? "fold_taps" : "fold_windows", {{"T", e}});
  if (few && !apart) k.set("TAPS", h.kernel * w.kernel);
  k.set("TOTAL", total);
  auto give = [&](const std::string& axis, const WindowAxis& a) {
    k.set(axis, a.size);
    k.set("K" + axis, a.kernel);
    k.set("O" + axis, a.count);
    k.set("S" + axis, a.stride);
    k.set("P" + axis, a.padding);
    if (k.takes("D" + axis)) k.set("D" + axis, a.dilation);
  };
  give("H", h);
  give("W", w);
  set_sum(k, t, type);
  k.elements = static_cast<uint64_t>(std::max(total, planes * h.kernel * w.kernel * h.count * w.count));
  return {{launch(t, std::move(k), total, {0, 1})}, {}};
}

}  // namespace tutti::codegen
