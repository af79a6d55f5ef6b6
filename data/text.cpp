#include "data/text.h"

#include <fmt/format.h>

#include "core/base/option_text.h"
#include "core/base/status.h"

namespace tutti::data {

TokenStream::TokenStream(std::string set_name, std::vector<int32_t> tokens, int64_t context, int64_t size_of_vocabulary,
                         std::string characters)
    : Source(std::move(set_name)),
      tokens_(std::move(tokens)),
      context_(context),
      size_of_vocabulary_(size_of_vocabulary) {
  vocabulary = std::move(characters);
  if (context < 1) throw invalid(fmt::format("text {}: the context is {} tokens, must be at least 1", name, context));
  if (TokenStream::size() < 1)
    throw invalid(fmt::format("text {} has {} tokens, but a context of {} needs at least {}", name, tokens_.size(),
                              context, context + 1),
                  "use a smaller " + option_text("context") + ", or a longer text");
}

int64_t TokenStream::size() const { return (static_cast<int64_t>(tokens_.size()) - 1) / context_; }

std::vector<Column> TokenStream::columns() const {
  Column tokens{.name = "tokens",
                .type = {DType::i32, {context_}},
                .table = "tokens",
                .window = true,
                .stride = context_,
                .classes = size_of_vocabulary_};
  Column next = tokens;
  next.name = "next";
  next.offset = 1;
  return {tokens, next};
}

std::vector<Table> TokenStream::tables() const {
  return {{"tokens",
           {DType::i32, {static_cast<int64_t>(tokens_.size())}},
           reinterpret_cast<const std::byte*>(tokens_.data())}};
}

}  // namespace tutti::data
