// Requests to end this process: Ctrl-C, the end of the terminal, `kill`.
#pragma once

namespace tutti::os {

/// Call it first. Requests that the parent process ignored, as under nohup, stay ignored. Writes to a closed pipe and
/// above a limit of file size fail with an error instead of ending the process.
void prepare_signals();
/// Makes a request only set interrupted(); a second Ctrl-C or `kill` ends the process immediately. Drivers install
/// handlers of their own when they are loaded, so call it repeatedly.
void catch_signals();
/// Restores the default handling.
void release_signals();
/// Whether the process was asked to end.
bool interrupted();
/// Ends the process without output, as writing to a pipe whose reader has ended does.
[[noreturn]] void end_by_closed_pipe();

}  // namespace tutti::os
