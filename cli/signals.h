// Signals that must not lose a run's work, and standard streams that are not there.
#pragma once

namespace tutti::cli {

/// First of all: opens standard streams that are closed, and makes a pipe without a reader or a file that may not grow
/// an error of the write.
void prepare_process();

/// From here on SIGINT, SIGTERM and SIGHUP (unless ignored, as by nohup) only ask for an end; a second SIGINT or
/// SIGTERM ends at once. Drivers put handlers of their own in place when they are loaded: call it again and again.
void catch_signals();
/// Ends that.
void release_signals();
/// Whether one of them has come.
bool interrupted();
/// Ends the process as that signal does by default, in silence.
void end_by(int number);

}  // namespace tutti::cli
