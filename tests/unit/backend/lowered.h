// Helpers for the tests of lower(): parse a graph from text, lower it, and look at its records.
#pragma once

#include "backend/backend.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "runtime/plan/plan_file.h"

#include <gtest/gtest.h>

namespace cgc::backend {

/// Parses and verifies `text`. With `withData`, fills the parameters with bytes; those whose names
/// begin with "same" get equal bytes.
inline std::unique_ptr<ir::Module> parse(const std::string &text, bool withData = true) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule(text, "test", diagnostics);
  EXPECT_TRUE(module && ir::verify(*module, diagnostics)) << diagnostics.render();
  if (module && withData) {
    uint8_t next = 1;
    for (const ir::Parameter &parameter : module->parameters()) {
      std::byte fill{parameter.name.starts_with("same") ? uint8_t{0} : next++};
      std::vector<std::byte> bytes(parameter.type.numBytes(), fill);
      module->setParameterData(parameter.name, ir::TensorData::copyOf(parameter.type, bytes));
    }
  }
  return module;
}

/// The launch of a record that is one.
inline const KernelLaunch &launchOf(const Bucket &bucket, size_t record) {
  return std::get<KernelLaunch>(bucket.records.at(record).op);
}

inline Result<CompiledPlan> lowerAll(const ir::Module &module,
                                     LowerOptions options = DeviceKind::Cpu) {
  std::vector<EntryBucket> buckets;
  for (const auto &graph : module.graphs())
    buckets.push_back({graph->name(), graph.get()});
  ir::Diagnostics diagnostics;
  auto plan = lower(buckets, options, diagnostics);
  if (plan) {
    Status valid = validate(plan->plan);
    EXPECT_TRUE(valid.isOk()) << valid.message();
  }
  return plan;
}

inline std::vector<std::string> recordNames(const Bucket &bucket) {
  std::vector<std::string> names;
  for (const LaunchRecord &record : bucket.records)
    names.push_back(recordName(record));
  return names;
}

/// The slot of the first result of record `i`.
inline Slot written(const Bucket &bucket, size_t i) {
  return bucket.tensors[static_cast<uint32_t>(recordWrites(bucket.records[i])[0])].slot;
}
/// The slot of the first argument of record `i`.
inline Slot read(const Bucket &bucket, size_t i) {
  return bucket.tensors[static_cast<uint32_t>(recordReads(bucket.records[i])[0])].slot;
}

/// Lowers a graph with these inputs and lines for Hopper.
inline Result<CompiledPlan> lowerForHopper(const std::string &inputs, const std::string &lines) {
  return lowerAll(*parse("graph @g(" + inputs + ") {\n" + lines + "\n}"),
                  {DeviceKind::Cuda, Arch::Sm90a});
}

} // namespace cgc::backend
