#include "data/files/strict_json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/file.h"

namespace tutti {
namespace {

using nlohmann::json;

/// Checks every token before a tree is built. The parser's own callback would iterate over all members of an object
/// again after each of them.
class Watch : public nlohmann::json_sax<json> {
 public:
  Watch(const JsonLimits& limits, const std::function<void(size_t, const std::string&)>& fail)
      : limits_(limits), fail_(fail) {}

  bool null() override { return element(); }
  bool boolean(bool) override { return element(); }
  bool number_integer(number_integer_t) override { return element(); }
  bool number_unsigned(number_unsigned_t) override { return element(); }
  bool number_float(number_float_t, const string_t&) override { return element(); }
  bool string(string_t&) override { return element(); }
  bool binary(binary_t&) override { return element(); }
  bool start_object(size_t) override { return enter(true); }
  bool start_array(size_t) override { return enter(false); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (!open_.back().names.insert(name).second) fail_(0, fmt::format("contains the key '{}' twice", name));
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: what is wrong"
    std::string_view what = e.what();
    if (size_t colon = what.find(": "); colon != what.npos) what.remove_prefix(colon + 2);
    fail_(at > 0 ? at - 1 : 0, fmt::format("is no JSON: {}", printable(what, 200)));
    return false;
  }

 private:
  struct Open {
    bool object;
    size_t elements = 0;
    std::set<std::string> names = {};
  };

  bool element() {
    if (!open_.empty() && !open_.back().object && ++open_.back().elements > limits_.list)
      fail_(0, fmt::format("has a list of more than {} elements", limits_.list));
    return true;
  }
  bool enter(bool object) {
    element();
    if (open_.size() == limits_.depth) fail_(0, "is nested too deeply");
    open_.push_back({object});
    return true;
  }
  bool leave() {
    open_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  const std::function<void(size_t, const std::string&)>& fail_;
  std::vector<Open> open_;
};

}  // namespace

json parse_strict(const std::string& text, const JsonLimits& limits,
                  const std::function<void(size_t, const std::string&)>& fail) {
  // The parser would end at a zero byte and ignore the rest.
  if (size_t zero = text.find('\0'); zero != std::string::npos) fail(zero, "is no JSON: a zero byte");
  Watch watch(limits, fail);
  json::sax_parse(text, &watch);
  return json::parse(text);
}

json read_json_object(const std::string& path, const std::string& remedy) {
  json j = parse_strict(data::read_file(path, remedy), {}, [&](size_t at, const std::string& what) {
    throw invalid(fmt::format("{}, byte {}: the file {}", path, at, what), remedy);
  });
  if (!j.is_object()) throw invalid(fmt::format("{}: not a JSON object", path), remedy);
  return j;
}

}  // namespace tutti
