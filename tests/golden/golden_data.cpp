#include "tests/golden/golden_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/base/status.h"
#include "core/os/this_process.h"

namespace tutti::golden {

namespace {

/// golden_data beside this program: the build links it, and a copy of both elsewhere works too.
const std::filesystem::path& folder() {
  static const std::filesystem::path found = os::executable().parent_path() / "golden_data";
  return found;
}

}  // namespace

nlohmann::json read(const std::string& name) {
  std::ifstream in(folder() / name);
  if (!in) throw invalid(fmt::format("no file {} in {}", name, folder().string()), "run make_golden.py");
  try {
    return nlohmann::json::parse(in);
  } catch (const std::exception& e) {
    throw invalid(fmt::format("{}: {}", name, e.what()), "run make_golden.py");
  }
}

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

double to_number(const nlohmann::json& x) {
  if (x.is_boolean()) return x.get<bool>();
  return x.is_string() ? std::stod(x.get<std::string>()) : x.get<double>();
}

}  // namespace

Tensor to_tensor(const nlohmann::json& t) {
  auto type = parse_dtype(t.at("type").get<std::string>());
  if (!type) throw invalid("unknown dtype " + t.at("type").dump());
  Tensor out({*type, t.at("shape").get<Shape>()});
  const auto& data = t.at("data");
  if (data.size() != out.at.size())
    throw invalid(fmt::format("{} numbers for a tensor {}", data.size(), to_string(out.type)));
  for (size_t i = 0; i < out.at.size(); ++i) out.at[i] = round_to(*type, to_number(data[i]));
  return out;
}

Attrs to_attrs(const nlohmann::json& a) {
  Attrs out;
  for (const auto& [name, value] : a.items()) {
    if (value.is_string()) {
      out.set(name, value.get<std::string>());
    } else if (value.empty() || value[0].is_number_integer()) {
      out.set(name, value.get<Ints>());
    } else {
      Reals reals;
      for (const auto& x : value) reals.push_back(to_number(x));
      out.set(name, reals);
    }
  }
  return out;
}

std::string difference(const Tensor& got, const Tensor& want, double tolerance) {
  if (got.type != want.type) return fmt::format("is {}, expected {}", to_string(got.type), to_string(want.type));
  double largest = 0;
  for (double x : want.at)
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < want.at.size(); ++i) {
    double a = got.at[i], b = want.at[i];
    bool same = a == b || (std::isnan(a) && std::isnan(b));
    if (!same && !(std::fabs(a - b) <= tolerance * std::max(std::fabs(b), 1e-3 * largest)))
      return fmt::format("element {} is {}, expected {}", i, a, b);
  }
  return "";
}

}  // namespace tutti::golden
