// The process's environment variables.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace tutti::os {

/// Sets the variable in this process; with `replace` false only if it is not set. Not while other threads read
/// variables.
void set_variable(const std::string& name, const std::string& value, bool replace = true);
void unset_variable(const std::string& name);

/// All variables, as "NAME=value".
std::vector<std::string> environment();

/// The same with these variables set to these values.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes);

}  // namespace tutti::os
