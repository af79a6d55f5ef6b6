// A source of windows over a token sequence.
#pragma once
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/source.h"

namespace tutti::data {

/// Divides tokens into consecutive samples of `context` tokens: the columns "tokens" and "next", both i32 [context];
/// "next" is shifted by one token.
class TUTTI_API TokenStream : public Source {
 public:
  /// Throws Error(invalid) if there are too few tokens for one sample.
  TokenStream(std::string name, std::vector<int32_t> tokens, int64_t context, int64_t size_of_vocabulary,
              std::string characters = "");
  int64_t size() const override;
  bool parallel() const override { return true; }
  std::vector<Column> columns() const override;
  std::vector<Table> tables() const override;

 private:
  std::vector<int32_t> tokens_;
  int64_t context_, size_of_vocabulary_;
};

}  // namespace tutti::data
