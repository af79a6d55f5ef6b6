// The directives of a module and of its kernels; instructions go to the Decoder.
#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "tests/softcuda/decode.h"

namespace tutti::softcuda {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

/// A declaration of memory: ".shared .align 4 .b8 name[16]", maybe with a list of values.
struct Variable {
  std::string name;
  unsigned bytes = 0, alignment = 1;
  std::vector<unsigned char> values;
};

uint64_t number(const std::string& text) {
  uint64_t x = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end == text.data()) throw InvalidPtx("a number is expected, not " + text);
  return x;
}

Variable variable(const std::string& line) {
  Variable v;
  std::string head = line.substr(0, line.find_first_of("=;"));
  std::vector<std::string> words = words_of(head);
  Type type = Type::none;
  for (size_t k = 1; k < words.size(); ++k) {
    if (words[k] == ".align")
      v.alignment = static_cast<unsigned>(number(words.at(++k)));
    else if (words[k][0] == '.')
      type = type_named(words[k].substr(1));
    else
      v.name = words[k];
  }
  if (type == Type::none || v.name.empty()) throw InvalidPtx("an unknown declaration");
  size_t bracket = v.name.find('[');
  uint64_t count = bracket == std::string::npos ? 1 : number(v.name.substr(bracket + 1));
  v.name.resize(std::min(bracket, v.name.size()));
  v.bytes = static_cast<unsigned>(count) * bytes_of(type);
  if (size_t list = line.find('{'); list != std::string::npos) {
    if (bytes_of(type) != 1) throw InvalidPtx("initial values of other than bytes");
    std::istringstream in(line.substr(list + 1, line.find('}') - list - 1));
    for (std::string x; std::getline(in, x, ',');)
      v.values.push_back(static_cast<unsigned char>(number(words_of(x).at(0))));
  } else if (line.find('=') != std::string::npos) {
    throw InvalidPtx("an initial value that is not a list");
  }
  v.values.resize(v.bytes);
  return v;
}

unsigned aligned(unsigned offset, unsigned to) { return (offset + to - 1) / to * to; }

class Parser {
 public:
  std::unique_ptr<Module> module(std::string_view text) {
    std::istringstream in{std::string(text)};
    int count = 0;
    for (std::string l; std::getline(in, l);) {
      ++count;
      l.resize(std::min(l.find("//"), l.size()));
      size_t first = l.find_first_not_of(" \t\r"), last = l.find_last_not_of(" \t\r");
      if (first == std::string::npos) continue;
      try {
        line(l.substr(first, last - first + 1));
      } catch (const InvalidPtx& e) {
        std::string where = function_ ? " in " + function_->name : "";
        throw InvalidPtx("line " + std::to_string(count) + where + ": " + e.what());
      }
    }
    if (module_->functions.empty()) throw InvalidPtx("no kernel in this text");
    return std::move(module_);
  }

 private:
  enum class In { module, parameters, directives, body };

  void line(const std::string& l) {
    switch (in_) {
      case In::module: return top(l);
      case In::parameters: return parameter(l);
      case In::directives: return directive(l);
      case In::body: return body(l);
    }
  }

  void top(const std::string& l) {
    std::vector<std::string> words = words_of(l);
    if (words[0] == ".version" || words[0] == ".target" || words[0] == ".address_size") return;
    if (words[0] == ".global" || words[0] == ".const" || words[0] == ".visible") {
      auto entry = std::find(words.begin(), words.end(), ".entry");
      if (entry != words.end()) return begin(words.at(static_cast<size_t>(entry - words.begin()) + 1), l);
      if (words[0] != ".const" && std::find(words.begin(), words.end(), ".global") == words.end())
        throw InvalidPtx("a declaration that is not implemented: " + l);
      Variable v = variable(l);
      Data& data = module_->data[v.name];
      data = {v.name, v.values, v.alignment, std::make_unique<unsigned char[]>(v.bytes + v.alignment), 0};
      data.address = (reinterpret_cast<uint64_t>(data.memory.get()) + v.alignment - 1) / v.alignment * v.alignment;
      std::copy(v.values.begin(), v.values.end(), reinterpret_cast<unsigned char*>(data.address));
      return;
    }
    throw InvalidPtx("the directive " + words[0] + " is not implemented");
  }

  void begin(std::string name, const std::string& l) {
    name.resize(std::min(name.find('('), name.size()));
    function_ = &module_->functions[name];
    function_->name = name;
    decoder_.emplace(*function_);
    for (auto& [symbol, data] : module_->data) decoder_->symbol(symbol, data.address);
    in_ = l.back() == ')' ? In::directives : In::parameters;
  }

  void parameter(const std::string& l) {
    if (l[0] == ')') {
      in_ = In::directives;
      return;
    }
    std::vector<std::string> words = words_of(l);
    if (words.size() != 3 || words[0] != ".param") throw InvalidPtx("a parameter that is not implemented: " + l);
    std::string name = words[2].substr(0, words[2].find(','));
    Type type = type_named(words[1].substr(1));
    if (type == Type::none) throw InvalidPtx("a parameter that is not implemented: " + l);
    unsigned offset = aligned(function_->parameter_bytes, bytes_of(type));
    function_->parameters.push_back({name, offset, bytes_of(type)});
    function_->parameter_bytes = offset + bytes_of(type);
  }

  void directive(const std::string& l) {
    if (l[0] == '{') {
      in_ = In::body;
      return;
    }
    std::string all = l;
    std::replace(all.begin(), all.end(), ',', ' ');
    std::vector<std::string> words = words_of(all);
    if (words[0] == ".minnctapersm") return;
    if (words[0] != ".maxntid") throw InvalidPtx("the directive " + words[0] + " is not implemented");
    function_->most_threads = 1;
    for (size_t k = 1; k < words.size(); ++k) function_->most_threads *= static_cast<unsigned>(number(words[k]));
  }

  void body(const std::string& l) {
    if (l[0] == '}') {
      decoder_->finish();
      function_ = nullptr;
      in_ = In::module;
    } else if (l[0] == '.') {
      declaration(l);
    } else if (l.back() == ':') {
      decoder_->label(l.substr(0, l.size() - 1));
    } else if (l.back() == ';') {
      decoder_->instruction(l.substr(0, l.size() - 1));
    } else {
      throw InvalidPtx("a statement that is not implemented: " + l);
    }
  }

  void declaration(const std::string& l) {
    std::vector<std::string> words = words_of(l);
    if (words[0] == ".pragma") return;
    if (words[0] == ".reg") {
      std::string name = words.at(2).substr(0, words[2].find(';'));
      size_t bracket = name.find('<');
      int count = bracket == std::string::npos ? -1 : static_cast<int>(number(name.substr(bracket + 1)));
      return decoder_->declare(name.substr(0, bracket), type_named(words[1].substr(1)), count);
    }
    if (words[0] != ".shared" && words[0] != ".local")
      throw InvalidPtx("the directive " + words[0] + " is not implemented");
    Variable v = variable(l);
    bool shared = words[0] == ".shared";
    unsigned& used = shared ? function_->shared_bytes : function_->local_bytes;
    used = aligned(used, std::max(v.alignment, 16u));
    decoder_->symbol(v.name, (shared ? shared_window : local_window) + used);
    used += v.bytes;
    if (!shared) used = aligned(used, 16);  // of every thread
  }

  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  Function* function_ = nullptr;
  std::optional<Decoder> decoder_;
  In in_ = In::module;
};

}  // namespace

std::unique_ptr<Module> parse(std::string_view text) { return Parser().module(text); }

}  // namespace tutti::softcuda
