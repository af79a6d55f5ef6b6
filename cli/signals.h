// Signal handling that does not lose a run's work, and handling of closed standard streams.
#pragma once

namespace tutti::cli {

/// Call it first. Opens closed standard streams, and ignores SIGPIPE and SIGXFSZ, so that writes fail with an error
/// instead.
void prepare_process();

/// Makes SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) only set interrupted(); a second SIGINT or SIGTERM
/// ends the process immediately. Drivers install their own handlers when they are loaded, so call it repeatedly.
void catch_signals();
/// Restores the default handling.
void release_signals();
/// Whether one of these signals was received.
bool interrupted();
/// Ends the process by the signal's default action, without output.
void end_by(int number);

}  // namespace tutti::cli
