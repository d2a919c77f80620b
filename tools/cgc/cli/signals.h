// Signals: an interrupted cgc leaves no temporary file behind.
#pragma once

namespace cgc::tool {

/// A write past a file size limit fails instead of ending the process. SIGINT, SIGTERM, SIGHUP and
/// SIGPIPE remove temporary files, then end the process as that signal does (a shell shows 130 for
/// SIGINT, 143 for SIGTERM). Signals that the caller ignores stay ignored.
void handleSignals();

} // namespace cgc::tool
