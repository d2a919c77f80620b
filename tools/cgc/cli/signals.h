// Signals: removes temporary files when cgc is interrupted.
#pragma once

namespace cgc::tool {

/// Installs the signal handlers. SIGINT, SIGTERM, SIGHUP and SIGPIPE remove temporary files, then
/// end the process as that signal does (a shell shows 130 for SIGINT, 143 for SIGTERM). SIGXFSZ is
/// ignored, so that a write past a file size limit fails instead of ending the process. Signals
/// that the parent process ignores stay ignored.
void handleSignals();

} // namespace cgc::tool
