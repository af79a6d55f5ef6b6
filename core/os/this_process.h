// This process and its user.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti::os {

int64_t process_id();
/// The effective user's number; on Windows the end of the user's security identifier.
uint64_t user_number();
/// The user's name; "" if unknown.
std::string user_name();
/// The computer's name; "" if unknown.
std::string host_name();
/// The file of the running program; "" if unknown.
std::filesystem::path executable();
/// What a child process is started from: the running program, also after its file was replaced.
std::string own_program();
/// The arguments in UTF-8, the program's name first.
std::vector<std::string> arguments(int argc, char** argv);

/// Closed standard streams are opened on nothing: the next opened file would take their place, and messages would be
/// written to it.
void open_standard_streams();

/// No file is written if the process crashes.
void write_no_core();

/// Seconds of processor time and bytes of resident memory that a process uses.
struct ProcessUse {
  double seconds = 0;
  uint64_t resident = 0;
};
/// False if the process does not exist, or the system does not tell.
bool process_use(int64_t id, ProcessUse& use);

}  // namespace tutti::os
