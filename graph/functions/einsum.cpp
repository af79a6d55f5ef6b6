#include "graph/functions/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/status.h"
#include "graph/functions/indexing.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sum.h"
#include "graph/ops/transpose.h"

namespace tutti {
namespace {

/// Axis labels: letters, and numbers starting at `dots` for the axes of "...", counted from the last.
using Labels = std::vector<int>;
constexpr int dots = 1000;

struct Term {
  Value v;
  Labels labels;
};

bool holds(const Labels& list, int label) { return std::find(list.begin(), list.end(), label) != list.end(); }

int64_t size_of_label(const Term& t, int label) {
  return t.v.shape()[static_cast<size_t>(std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin())];
}

Term sum_over(const Term& t, const std::function<bool(int)>& gone) {
  Ints axes;
  Labels left;
  for (size_t a = 0; a < t.labels.size(); ++a)
    if (gone(t.labels[a]))
      axes.push_back(static_cast<int64_t>(a));
    else
      left.push_back(t.labels[a]);
  return {axes.empty() ? t.v : sum(t.v, axes), left};
}

/// Transposes the axes to that order.
Value arranged(const Term& t, const Labels& order) {
  if (t.labels == order) return t.v;
  Ints perm;
  for (int label : order) perm.push_back(std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin());
  return transpose(t.v, perm);
}

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A factor with axes [batch, own axes, summed axes]; `turned`: the last two are swapped.
struct Factor {
  Value v;
  bool turned;
};

Factor factor(const Term& t, const Labels& batch, const Labels& own, const Labels& summed) {
  auto elements = [&](const Labels& labels) {
    int64_t n = 1;
    for (int label : labels) n *= size_of_label(t, label);
    return n;
  };
  bool turned = t.labels == joined(joined(batch, summed), own);
  Value v = arranged(t, turned ? t.labels : joined(joined(batch, own), summed));
  Shape shape = {elements(batch), elements(own), elements(summed)};
  if (turned) std::swap(shape[1], shape[2]);
  if (batch.empty()) shape.erase(shape.begin());
  return {reshape(v, shape), turned};
}

/// The product of two terms, summed over the labels that both have and `keep` does not.
Term multiply(Term a, Term b, const Labels& keep) {
  a = sum_over(a, [&](int l) { return !holds(keep, l) && !holds(b.labels, l); });
  b = sum_over(b, [&](int l) { return !holds(keep, l) && !holds(a.labels, l); });
  Labels batch, summed, own_a, own_b;
  for (int l : a.labels) (!holds(b.labels, l) ? own_a : holds(keep, l) ? batch : summed).push_back(l);
  for (int l : b.labels)
    if (!holds(a.labels, l)) own_b.push_back(l);
  Term y = {{}, joined(joined(batch, own_a), own_b)};
  Shape shape;
  for (int l : y.labels) shape.push_back(holds(a.labels, l) ? size_of_label(a, l) : size_of_label(b, l));
  if (!summed.empty() && is_float(a.v.dtype())) {
    Factor p = factor(a, batch, own_a, summed), q = factor(b, batch, own_b, summed);
    y.v = reshape(matmul(p.v, q.v, p.turned, !q.turned), shape);
    return y;
  }
  // Without summed labels, or for integers: multiplies [batch, a, 1, summed] by [batch, 1, b, summed].
  Shape to_a, to_b;
  auto add = [&](const Labels& labels, bool in_a, bool in_b) {
    for (int l : labels) {
      to_a.push_back(in_a ? size_of_label(a, l) : 1);
      to_b.push_back(in_b ? size_of_label(b, l) : 1);
    }
  };
  add(batch, true, true);
  add(own_a, true, false);
  add(own_b, false, true);
  add(summed, true, true);
  Value product = reshape(arranged(a, joined(joined(batch, own_a), summed)), to_a) *
                  reshape(arranged(b, joined(joined(batch, own_b), summed)), to_b);
  y.v = product;
  y.labels = joined(y.labels, summed);
  return sum_over(y, [&](int l) { return holds(summed, l); });
}

/// The product of all terms, with the axes of `output`.
Value contract(std::vector<Term> terms, const Labels& output) {
  Term y = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) {
    Labels keep = output;
    for (size_t later = k + 1; later < terms.size(); ++later) keep = joined(keep, terms[later].labels);
    y = multiply(y, terms[k], keep);
  }
  y = sum_over(y, [&](int l) { return !holds(output, l); });
  return arranged(y, output);
}

/// Takes the diagonal of repeated labels.
Term without_repeats(Term t) {
  for (size_t i = 0; i < t.labels.size(); ++i)
    for (size_t j = i + 1; j < t.labels.size(); ++j) {
      if (t.labels[i] != t.labels[j]) continue;
      if (t.v.shape()[i] != t.v.shape()[j])
        throw invalid(
            fmt::format("einsum: '{}' is used for axes of size {} and {} of {}", static_cast<char>(t.labels[i]),
                        t.v.shape()[i], t.v.shape()[j], to_string(t.v.shape())),
            "a repeated letter must stand for axes of equal size");
      t.v = diagonal(t.v, 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
      t.labels.push_back(t.labels[i]);
      t.labels.erase(t.labels.begin() + static_cast<std::ptrdiff_t>(j));
      t.labels.erase(t.labels.begin() + static_cast<std::ptrdiff_t>(i));
      return without_repeats(std::move(t));
    }
  return t;
}

/// The labels of one part of the equation; "..." is `dotted` axes.
Labels parse(const std::string& equation, const std::string& text, int64_t dotted) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels.push_back(text[i]);
    } else if (!seen && text.compare(i, 3, "...") == 0) {
      for (int64_t k = dotted; k-- > 0;) labels.push_back(dots + static_cast<int>(k));
      seen = true;
      i += 2;
    } else {
      throw invalid(fmt::format("einsum: cannot parse '{}' in \"{}\"", text.substr(i), equation),
                    "use letters and one \"...\" per operand");
    }
  }
  return labels;
}

/// The output labels if the equation has none, given the number of uses of each label.
Labels implicit_output(const std::map<int, int>& uses, int64_t dotted) {
  Labels output;
  for (int64_t k = dotted; k-- > 0;) output.push_back(dots + static_cast<int>(k));
  for (auto [label, count] : uses)
    if (label < dots && count == 1) output.push_back(label);
  return output;
}

/// Checks that sizes agree; removes axes of size 1 that broadcast.
void align(std::vector<Term>& terms) {
  std::map<int, int64_t> sizes;
  for (const Term& t : terms)
    for (size_t a = 0; a < t.labels.size(); ++a) {
      int64_t n = t.v.shape()[a], &size = sizes.try_emplace(t.labels[a], n).first->second;
      if (size == 1) size = n;
      if (n != size && n != 1)
        throw invalid(fmt::format("einsum: '{}' is used for axes of size {} and {}",
                                  t.labels[a] < dots ? std::string(1, static_cast<char>(t.labels[a])) : "...", size, n),
                      "a letter must stand for axes of equal size");
    }
  for (Term& t : terms) {
    Shape shape;
    Labels left;
    for (size_t a = 0; a < t.labels.size(); ++a) {
      if (t.v.shape()[a] != sizes.at(t.labels[a])) continue;
      shape.push_back(t.v.shape()[a]);
      left.push_back(t.labels[a]);
    }
    if (left.size() < t.labels.size()) t = {reshape(t.v, shape), left};
  }
}

}  // namespace

Value einsum(const std::string& equation, const Values& operands) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  size_t arrow = text.find("->");
  std::vector<std::string> parts(1);
  for (char c : text.substr(0, arrow)) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (operands.empty() || parts.size() != operands.size())
    throw invalid(
        fmt::format("einsum: \"{}\" has {} operands, but {} are given", equation, parts.size(), operands.size()));
  std::vector<Term> terms;
  std::map<int, int> uses;
  int64_t dotted = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    auto named = static_cast<int64_t>(parse(equation, parts[k], 0).size()),
         rank = static_cast<int64_t>(operands[k].rank());
    bool has_dots = parts[k].find("...") != std::string::npos;
    if (has_dots ? named > rank : named != rank)
      throw invalid(fmt::format("einsum: '{}' does not match the rank of the operand {}", parts[k],
                                to_string(operands[k].type())),
                    "use one letter per axis, or \"...\"");
    dotted = std::max(dotted, rank - named);
    Labels labels = parse(equation, parts[k], rank - named);
    for (int label : labels) ++uses[label];
    terms.push_back(without_repeats({operands[k], labels}));
  }
  align(terms);
  Labels output =
      arrow == std::string::npos ? implicit_output(uses, dotted) : parse(equation, text.substr(arrow + 2), dotted);
  for (size_t a = 0; a < output.size(); ++a) {
    bool known = std::any_of(terms.begin(), terms.end(), [&](const Term& t) { return holds(t.labels, output[a]); });
    if (!known || std::count(output.begin(), output.end(), output[a]) > 1)
      throw invalid(fmt::format("einsum: invalid output '{}' in \"{}\"", text.substr(arrow + 2), equation),
                    "the output must consist of letters of the operands, each at most once");
  }
  return contract(std::move(terms), output);
}

Value tensordot(Value a, Value b, const Ints& axes_a, const Ints& axes_b) {
  Term p = {a, Labels(a.rank())}, q = {b, Labels(b.rank())};
  std::iota(p.labels.begin(), p.labels.end(), 0);
  std::iota(q.labels.begin(), q.labels.end(), static_cast<int>(a.rank()));
  bool fits = axes_a.size() == axes_b.size();
  Labels gone;
  for (size_t k = 0; fits && k < axes_a.size(); ++k) {
    auto i = static_cast<size_t>(normalize_axis(axes_a[k], a.rank())),
         j = static_cast<size_t>(normalize_axis(axes_b[k], b.rank()));
    fits =
        a.shape()[i] == b.shape()[j] && !holds(gone, static_cast<int>(i)) && q.labels[j] >= static_cast<int>(a.rank());
    q.labels[j] = static_cast<int>(i);
    gone.push_back(static_cast<int>(i));
  }
  if (!fits)
    throw invalid(fmt::format("tensordot: axes {} of {} do not match axes {} of {}", to_string(axes_a),
                              to_string(a.shape()), to_string(axes_b), to_string(b.shape())),
                  "pair axes of equal size, each at most once");
  Labels output;
  for (int l : joined(p.labels, q.labels))
    if (!holds(gone, l)) output.push_back(l);
  return contract({p, q}, output);
}

Value tensordot(Value a, Value b, int64_t axes) {
  if (axes < 0 || axes > static_cast<int64_t>(std::min(a.rank(), b.rank())))
    throw invalid(fmt::format("tensordot: cannot contract {} axes of {} and {}", axes, to_string(a.shape()),
                              to_string(b.shape())));
  Ints last, first;
  for (int64_t k = 0; k < axes; ++k) {
    last.push_back(k - axes);
    first.push_back(k);
  }
  return tensordot(a, b, last, first);
}

Value outer(Value a, Value b) {
  if (a.rank() != 1 || b.rank() != 1)
    throw invalid(fmt::format("outer: {} and {} must be vectors", to_string(a.shape()), to_string(b.shape())),
                  "use vectors, or einsum");
  return reshape(a, {a.shape()[0], 1}) * reshape(b, {1, b.shape()[0]});
}

}  // namespace tutti
