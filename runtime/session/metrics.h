// prometheusText: the counters of a session in the text format of Prometheus.
#pragma once

#include "runtime/exec/memory_pool.h"
#include "runtime/session/session.h"

#include <string>
#include <string_view>

namespace cgc {

/// The counters and gauges of a session as lines of Prometheus' text exposition format, version
/// 0.0.4, each with the label session="`name`".
std::string prometheusText(const SessionStats &stats, const MemoryReport &memory, bool isHealthy,
                           std::string_view name);

} // namespace cgc
