// Offender report: makes one JSON object for each diagnostic.
#include "tools/cgc/report/offender_report.h"

#include <nlohmann/json.hpp>

namespace cgc::tool {

nlohmann::ordered_json offendersJson(const ir::Diagnostics &diagnostics) {
  auto offenders = nlohmann::ordered_json::array();
  for (const ir::Diagnostic &error : diagnostics.errors()) {
    const ir::CauseText &text = ir::textOf(error.cause);
    offenders.push_back({{"op", error.op},
                         {"file", error.loc.file},
                         {"line", error.loc.line},
                         {"module", error.loc.module},
                         {"cause", text.id.str()},
                         {"why", text.why.str()},
                         {"to_do", text.fix.str()},
                         {"message", error.message}});
  }
  return offenders;
}

} // namespace cgc::tool
