#include "verify/parity/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::parity {
namespace {

using nlohmann::json;

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

/// Infinities and NaN become strings, because JSON has no numbers for them.
json number(double x) { return std::isfinite(x) ? json(x) : json(fmt::format("{}", x)); }
double number(const json& j) {
  return j.is_string() ? parse_number<double>(j.get_ref<const std::string&>()).value_or(std::nan("")) : j.get<double>();
}

/// Without the shape: sent results are 1-D.
json tensor(const Tensor& t) {
  std::vector<uint8_t> bytes(num_bytes(t.type));
  store_tensor(t, bytes.data());
  return {{"dtype", name(t.type.dtype)}, {"bytes", fmt::format("{:02x}", fmt::join(bytes, ""))}};
}
Tensor tensor(const json& j) {
  const std::string& hex = j.at("bytes").get_ref<const std::string&>();
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 2 <= hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  DType dtype = parse_dtype(j.at("dtype").get<std::string>()).value();
  return tensor_from({dtype, {static_cast<int64_t>(bytes.size() / size_of(dtype))}}, bytes.data());
}

}  // namespace

std::string to_text(const Job& job) {
  json j = {{"device", job.device},
            {"seed", job.seed},
            {"results", job.results},
            {"exact", job.exact},
            {"cases", json::array()}};
  for (const CaseId& id : job.cases) j["cases"].push_back(id.text());
  return dump(j);
}

Job parse_job(const std::string& text) try {
  json j = json::parse(text);
  Job job{
      .device = j.at("device"), .seed = j.at("seed"), .results = j.at("results"), .exact = j.at("exact"), .cases = {}};
  for (const json& id : j.at("cases")) job.cases.push_back(parse_case(id.get<std::string>()));
  return job;
} catch (const json::exception& e) {
  throw invalid(fmt::format("invalid job for a parity worker process: {}", e.what()), "tutti parity --help");
}

std::string to_line(const Message& m) {
  if (m.ready) return dump({{"ready", true}}) + "\n";
  if (!m.problem.empty()) return dump({{"problem", m.problem}}) + "\n";
  json j = {{"case", m.result.id.text()},
            {"outcome", name(m.result.outcome)},
            {"share", number(m.result.share)},
            {"error", number(m.result.error)},
            {"why", m.result.why},
            {"seen", json::array()}};
  for (const Tensor& t : m.seen) j["seen"].push_back(tensor(t));
  return dump(j) + "\n";
}

Message parse_message(const std::string& line) try {
  json j = json::parse(line);
  Message m{.ready = j.value("ready", false), .problem = j.value("problem", "")};
  if (m.ready || !m.problem.empty()) return m;
  m.id = j.at("case");
  bool known = false;
  for (Outcome o : outcomes)
    if (name(o) == j.at("outcome").get<std::string>()) m.result.outcome = o, known = true;
  if (!known) throw Error(Code::internal, "unknown outcome " + j.at("outcome").dump());
  m.result.share = number(j.at("share"));
  m.result.error = number(j.at("error"));
  m.result.why = j.at("why");
  for (const json& t : j.at("seen")) m.seen.push_back(tensor(t));
  return m;
} catch (const std::exception& e) {
  throw Error(Code::internal, fmt::format("a parity worker process sent an invalid message: {}", e.what()));
}

}  // namespace tutti::parity
