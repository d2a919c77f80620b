// Signals: removes temporary files when cgc is interrupted.
#pragma once

namespace cgc::tool {

/// Installs the signal handlers. SIGINT, SIGTERM, SIGHUP and SIGPIPE remove temporary files, then
/// end the process as that signal does (a shell shows 130 for SIGINT, 143 for SIGTERM). SIGXFSZ is
/// ignored, so that a write past a file size limit fails instead of ending the process. Signals
/// that the parent process ignores stay ignored.
void handleSignals();

/// From now on, the first SIGINT or SIGTERM only sets requestedStop(), so that a verb can end where
/// its results are whole. The second one ends the process as handleSignals() says. A signal that
/// the parent process ignores stays ignored.
void deferStop();
/// The signal that came since deferStop(); 0 if none did.
int requestedStop();
/// Removes temporary files and ends the process as `signal` does.
[[noreturn]] void endBySignal(int signal);

} // namespace cgc::tool
