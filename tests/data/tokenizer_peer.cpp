// The ids of texts in a folder's tokenizer, and the texts of these ids: what tokenizer_peer.py compares with the Python
// library.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "data/hf_tokenizer.h"

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const tutti::data::HfTokenizer tokenizer(argv[1]);
  const std::string in(std::istreambuf_iterator<char>(std::cin), {});
  nlohmann::json all = nlohmann::json::array();
  for (const nlohmann::json& text : nlohmann::json::parse(in)) {
    std::vector<int32_t> ids = tokenizer.encode(text.get<std::string>(), "the text");
    all.push_back({{"ids", ids}, {"text", tokenizer.decode(ids)}});
  }
  // An incomplete character becomes U+FFFD, as in Python.
  std::cout << all.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
} catch (const tutti::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
