// Chat templates of Hugging Face folders.
#pragma once
#include <string>

#include "core/base/export.h"

namespace tutti::data {

/// The template in Jinja's language: chat_template.jinja, else that of tokenizer_config.json, of several the one named
/// "default"; "" if there is none. Throws Error(invalid) naming the file for damage.
TUTTI_API std::string chat_template_of_folder(const std::string& folder);

}  // namespace tutti::data
