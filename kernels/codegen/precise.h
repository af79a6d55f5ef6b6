// PRECISE statements for languages without an equivalent.
#pragma once
#include <string>

namespace tutti::codegen {

/// A text of the dialect without the word PRECISE: in "PRECISE float x = …;" and later assignments to that x in the
/// same function, each addition, subtraction, multiplication and division is put into `form`, which has the field
/// {value}. Arguments of calls are unchanged; other expressions are wrapped as a whole.
std::string keep_apart(const std::string& text, const std::string& form);

}  // namespace tutti::codegen
