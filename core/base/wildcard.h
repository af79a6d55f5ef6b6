// Patterns for names, as shells have them.
#pragma once
#include <string_view>

namespace tutti {

/// Whether the whole text matches the pattern of fnmatch(3), on every system: `*` stands for any characters, `?` for
/// one,
/// `[a-f5]` for one of these, `[!a-f]` or `[^a-f]` for any other, `[[:digit:]]` for one of a class of C; `\` takes the
/// meaning of the character after it. Characters are bytes, and there are no collating symbols. `any_case`: upper and
/// lower case of ASCII are equal.
bool matches_wildcard(std::string_view pattern, std::string_view text, bool any_case = false);

}  // namespace tutti
