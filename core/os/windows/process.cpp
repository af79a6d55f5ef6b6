#include "core/os/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <io.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "core/os/library.h"
#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

constexpr UINT ended_by_force = STATUS_CONTROL_C_EXIT;
constexpr unsigned first_exception = 0xC0000000;  // exit codes from here on are those of exceptions

[[noreturn]] void give_up(const std::string& what, DWORD why = GetLastError()) {
  throw std::system_error(static_cast<int>(why), std::system_category(), what);
}

/// A pipe's two descriptors, which no program inherits.
std::array<int, 2> new_pipe() {
  HANDLE from = nullptr, to = nullptr;
  if (!CreatePipe(&from, &to, nullptr, 1 << 16)) give_up("cannot create a pipe");
  constexpr int mode = _O_BINARY | _O_NOINHERIT;
  return {_open_osfhandle(reinterpret_cast<intptr_t>(from), mode | _O_RDONLY),
          _open_osfhandle(reinterpret_cast<intptr_t>(to), mode)};
}

/// As CommandLineToArgvW takes it apart.
std::wstring quoted(const std::wstring& word) {
  if (!word.empty() && word.find_first_of(L" \t\"") == std::wstring::npos) return word;
  std::wstring text = L"\"";
  size_t slashes = 0;
  for (wchar_t c : word) {
    if (c == L'"') text.append(slashes + 1, L'\\');
    slashes = c == L'\\' ? slashes + 1 : 0;
    text += c;
  }
  return text.append(slashes, L'\\') + L"\"";
}

/// A path as it is; a name is looked for in PATH alone, never in the working folder.
std::wstring found(const std::string& file) {
  if (file.find_first_of("/\\") != std::string::npos) return wide(file);
  const wchar_t* path = _wgetenv(L"PATH");
  wchar_t room[32768];
  if (path && SearchPathW(path, wide(file).c_str(), L".exe", std::size(room), room, nullptr)) return room;
  give_up(file, ERROR_FILE_NOT_FOUND);
}

/// The handles that the child inherits as standard streams, and nothing else.
class Streams {
 public:
  explicit Streams(const Program& program) {
    const int files[] = {program.in, program.out, program.err};
    constexpr DWORD own[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    for (size_t k = 0; k < 3; ++k) {
      HANDLE from = files[k] >= 0 ? handle_of(files[k]) : files[k] == inherited ? GetStdHandle(own[k]) : nullptr;
      if (from && from != INVALID_HANDLE_VALUE &&
          DuplicateHandle(GetCurrentProcess(), from, GetCurrentProcess(), &handles[k], 0, TRUE, DUPLICATE_SAME_ACCESS))
        continue;
      SECURITY_ATTRIBUTES inherit = {sizeof inherit, nullptr, TRUE};
      handles[k] = CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit,
                               OPEN_EXISTING, 0, nullptr);
    }
  }
  ~Streams() {
    for (HANDLE h : handles) CloseHandle(h);
  }
  Streams(const Streams&) = delete;
  std::array<HANDLE, 3> handles = {};
};

/// Kills all its processes when its last handle is closed.
HANDLE new_job() {
  HANDLE job = CreateJobObjectW(nullptr, nullptr);
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  if (!job || !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits))
    give_up("cannot create a job");
  return job;
}

PROCESS_INFORMATION create(const Program& program) {
  Streams streams(program);
  std::wstring line;
  for (const std::string& word : program.words) line += (line.empty() ? L"" : L" ") + quoted(wide(word));
  std::wstring block;
  std::vector<std::string> variables = program.environment;
  std::ranges::sort(variables);
  for (const std::string& entry : variables) (block += wide(entry)) += L'\0';
  block += L'\0';
  SIZE_T bytes = 0;
  InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
  std::vector<std::byte> room(bytes);
  STARTUPINFOEXW start = {};
  start.StartupInfo.cb = sizeof start;
  start.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  start.StartupInfo.hStdInput = streams.handles[0];
  start.StartupInfo.hStdOutput = streams.handles[1];
  start.StartupInfo.hStdError = streams.handles[2];
  start.lpAttributeList = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(room.data());
  if (!InitializeProcThreadAttributeList(start.lpAttributeList, 1, 0, &bytes) ||
      !UpdateProcThreadAttribute(start.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, streams.handles.data(),
                                 sizeof streams.handles, nullptr, nullptr))
    give_up("cannot start a process");
  const DWORD flags = EXTENDED_STARTUPINFO_PRESENT | CREATE_UNICODE_ENVIRONMENT | CREATE_SUSPENDED |
                      (program.group ? CREATE_NEW_PROCESS_GROUP : 0);
  PROCESS_INFORMATION made = {};
  const std::wstring file = found(program.file);
  if (!CreateProcessW(file.c_str(), line.data(), nullptr, nullptr, TRUE, flags,
                      program.environment.empty() ? nullptr : block.data(), nullptr, &start.StartupInfo, &made))
    give_up(program.file);
  DeleteProcThreadAttributeList(start.lpAttributeList);
  return made;
}

}  // namespace

std::vector<bool> wait_readable(const std::vector<int>& pipes, Deadline end) {
  std::vector<bool> ready(pipes.size());
  for (DWORD pause = 0;; pause = std::min<DWORD>(pause + 1, 5)) {
    bool some = false;
    for (size_t k = 0; k < pipes.size(); ++k) {
      DWORD bytes = 0;
      if (pipes[k] < 0) continue;
      ready[k] = !PeekNamedPipe(handle_of(pipes[k]), nullptr, 0, nullptr, &bytes, nullptr) || bytes > 0;  // or closed
      some = some || ready[k];
    }
    if (some || Deadline::clock::now() >= end) return ready;
    Sleep(pause);
  }
}

Pipe::Pipe() : ends(new_pipe()) {}

Pipe::~Pipe() {
  close_end(0);
  close_end(1);
}

void Pipe::close_end(size_t k) {
  if (ends[k] >= 0) _close(std::exchange(ends[k], -1));
}

Conversation::Conversation() {
  const std::array<int, 2> there = new_pipe(), back = new_pipe();
  ends_ = {there[0], back[1], back[0], there[1]};
}

Conversation::~Conversation() {
  close_child_ends();
  close();
}

void Conversation::close_child_ends() {
  for (size_t k : {size_t{0}, size_t{1}})
    if (ends_[k] >= 0) _close(std::exchange(ends_[k], -1));
}

bool Conversation::send(const std::string& text) const {
  return ends_[3] >= 0 &&
         _write(ends_[3], text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size());
}

void Conversation::close() {
  for (size_t k : {size_t{2}, size_t{3}})
    if (ends_[k] >= 0) _close(std::exchange(ends_[k], -1));
}

std::string Ending::text() const {
  if (!signal) return fmt::format("exit code {}", exit_code);
  const auto code = static_cast<unsigned>(signal);
  const char* name = code == static_cast<unsigned>(STATUS_ACCESS_VIOLATION)         ? ": access violation"
                     : code == static_cast<unsigned>(STATUS_STACK_OVERFLOW)         ? ": stack overflow"
                     : code == static_cast<unsigned>(STATUS_ILLEGAL_INSTRUCTION)    ? ": illegal instruction"
                     : code == static_cast<unsigned>(STATUS_INTEGER_DIVIDE_BY_ZERO) ? ": division by zero"
                     : code == ended_by_force                                       ? ": ended by force"
                                                                                    : "";
  return fmt::format("exception {:#x}{}", code, name);
}

ChildProcess::ChildProcess(const Program& program) {
  job_ = new_job();
  PROCESS_INFORMATION made = {};
  try {
    made = create(program);
  } catch (...) {
    CloseHandle(job_);
    throw;
  }
  AssignProcessToJobObject(job_, made.hProcess);
  ResumeThread(made.hThread);
  CloseHandle(made.hThread);
  process_ = made.hProcess;
  id_ = made.dwProcessId;
}

ChildProcess::ChildProcess(const std::function<void()>&) { give_up("a copy of a process", ERROR_NOT_SUPPORTED); }

ChildProcess::~ChildProcess() {
  if (!process_) return;
  kill();
  wait();
}

void ChildProcess::kill() const {
  if (job_) TerminateJobObject(job_, ended_by_force);
}

void ChildProcess::ask_to_end() const {
  if (process_) GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, static_cast<DWORD>(id_));
}

bool ChildProcess::ends_by(Deadline end) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Deadline::clock::now()).count();
  const auto ms = static_cast<DWORD>(std::clamp<int64_t>(left, 0, 1 << 30));
  return !process_ || WaitForSingleObject(process_, ms) == WAIT_OBJECT_0;
}

Ending ChildProcess::wait() {
  DWORD code = 0;
  WaitForSingleObject(process_, INFINITE);
  GetExitCodeProcess(process_, &code);
  kill();  // what it started
  CloseHandle(std::exchange(process_, nullptr));
  CloseHandle(std::exchange(job_, nullptr));
  id_ = -1;
  Ending e;
  if (code >= first_exception)
    e.signal = static_cast<int>(code);
  else
    e.exit_code = static_cast<int>(code);
  return e;
}

bool can_fork() { return false; }

ChildrenEndOnSignals::ChildrenEndOnSignals() = default;
ChildrenEndOnSignals::~ChildrenEndOnSignals() = default;
void ChildrenEndOnSignals::add(int64_t) {}
void ChildrenEndOnSignals::remove(int64_t) {}

Answers::Answers() : to_(_dup(1)) {
  if (to_ < 0 || _dup2(2, 1) < 0) give_up("stdout and stderr must be open");
  SetHandleInformation(handle_of(to_), HANDLE_FLAG_INHERIT, 0);
  _setmode(to_, _O_BINARY);
}

void redirect(int out, int err) {
  _dup2(out, 1);
  _dup2(err, 2);
}

void lead_group() {}
bool end_with_parent(int64_t) { return true; }  // the job sees to that

}  // namespace tutti::os
