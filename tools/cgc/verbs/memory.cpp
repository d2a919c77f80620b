// cgc memory: the memory that plans need, from their files alone.
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_memory.h"
#include "runtime/plan/shards.h"
#include "runtime/session/session.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace cgc::tool {

namespace {

using Json = nlohmann::ordered_json;

struct MemoryFlags {
  std::vector<std::string> plans;
  int contexts = 1, ranks = 1;
  bool buckets = false, json = false;
};

struct PlanBill {
  std::string path;
  PlanData plan;
  PlanMemory memory;
};

/// The memory of a plan with `contexts` contexts. In a pool the arena is not its own.
uint64_t totalBytes(const PlanMemory &memory, int contexts, bool inPool) {
  return memory.weights +
         uint64_t(contexts) * (memory.io + memory.states + (inPool ? 0 : memory.arena));
}

/// The memory of the rank that holds most of the plan's states.
PlanMemory memoryOfRank(const PlanData &plan, int ranks) {
  PlanMemory memory = planMemory(plan);
  const std::vector<int> owners = shardOwners(plan, ranks);
  memory.states = 0;
  for (int rank = 0; rank < ranks; ++rank)
    memory.states =
        std::max(memory.states, stateOffsets(plan, heldStates(plan, owners, rank)).back());
  return memory;
}

/// The arena of a pool of these plans, and all of its memory.
std::pair<uint64_t, uint64_t> poolBytes(const std::vector<PlanBill> &bills, int contexts) {
  uint64_t arena = 0, total = 0;
  for (const PlanBill &bill : bills) {
    arena = std::max(arena, bill.memory.arena);
    total += totalBytes(bill.memory, contexts, /*inPool=*/true);
  }
  return {arena, arena + total};
}

bool fitOnePool(const std::vector<PlanBill> &bills) {
  return bills.size() > 1 && std::ranges::all_of(bills, [&](const PlanBill &bill) {
           return bill.plan.target == bills[0].plan.target;
         });
}

Status printBills(const std::vector<PlanBill> &bills, const MemoryFlags &options) {
  std::vector<std::vector<std::string>> rows = {
      {"plan", "target", "weights", "arena", "workspace", "inputs, outputs", "states", "total"}};
  for (const PlanBill &bill : bills)
    rows.push_back({bill.path, std::string(deviceName(bill.plan.target)),
                    formatBytes(bill.memory.weights), formatBytes(bill.memory.arena),
                    formatBytes(bill.memory.workspace), formatBytes(bill.memory.io),
                    formatBytes(bill.memory.states),
                    formatBytes(totalBytes(bill.memory, options.contexts, false))});
  std::string text = formatTable(rows);
  if (options.buckets)
    for (const PlanBill &bill : bills) {
      rows = {{"entry", "inputs", "arena", "workspace", "inputs, outputs"}};
      for (const Entry &entry : bill.plan.entries)
        for (const Bucket &bucket : entry.buckets)
          rows.push_back({entry.name, describeIo(bucket.inputs), formatBytes(bucket.arenaBytes),
                          formatBytes(workspaceBytes(bucket)), formatBytes(ioBytes(bucket))});
      text += fmt::format("\n{}\n{}", bill.path, formatTable(rows));
    }
  text += fmt::format(
      "\nThe total is for {} context{}: weights once, arena, inputs, outputs and "
      "states for each.\nThe workspace of library GEMMs is part of the arena.\nCUDA graphs, the "
      "driver and LibTorch take more.\n",
      options.contexts, options.contexts == 1 ? "" : "s");
  if (options.ranks > 1)
    text += fmt::format("The states are those of the rank of {} that holds most.\n", options.ranks);
  if (fitOnePool(bills)) {
    const auto [arena, total] = poolBytes(bills, options.contexts);
    text += fmt::format("In one memory pool the plans share an arena of {} and take {}.\n",
                        formatBytes(arena), formatBytes(total));
  }
  return printOut(text);
}

Status printBillsJson(const std::vector<PlanBill> &bills, const MemoryFlags &options) {
  Json plans = Json::array();
  for (const PlanBill &bill : bills) {
    Json plan = {{"plan", bill.path},
                 {"target", deviceName(bill.plan.target)},
                 {"weight_bytes", bill.memory.weights},
                 {"arena_bytes", bill.memory.arena},
                 {"workspace_bytes", bill.memory.workspace},
                 {"io_bytes", bill.memory.io},
                 {"state_bytes", bill.memory.states},
                 {"total_bytes", totalBytes(bill.memory, options.contexts, false)}};
    if (options.buckets) {
      plan["buckets"] = Json::array();
      for (const Entry &entry : bill.plan.entries)
        for (const Bucket &bucket : entry.buckets)
          plan["buckets"].push_back({{"entry", entry.name},
                                     {"inputs", describeIo(bucket.inputs)},
                                     {"arena_bytes", bucket.arenaBytes},
                                     {"workspace_bytes", workspaceBytes(bucket)},
                                     {"io_bytes", ioBytes(bucket)}});
    }
    plans.push_back(std::move(plan));
  }
  Json fields = {
      {"contexts", options.contexts}, {"ranks", options.ranks}, {"plans", std::move(plans)}};
  if (fitOnePool(bills)) {
    const auto [arena, total] = poolBytes(bills, options.contexts);
    fields["pool"] = {{"arena_bytes", arena}, {"total_bytes", total}};
  }
  return printJson("memory", fields);
}

Status memory(const MemoryFlags &options) {
  CGC_TRY(FileArguments().reads(options.plans).check());
  std::vector<PlanBill> bills;
  for (const std::string &path : options.plans) {
    CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(path, Plan::Verify::Metadata));
    bills.push_back({path, plan.data(), memoryOfRank(plan.data(), options.ranks)});
  }
  return options.json ? printBillsJson(bills, options) : printBills(bills, options);
}

} // namespace

Verb addMemory(CLI::App &app) {
  auto options = std::make_shared<MemoryFlags>();
  CLI::App *command = app.add_subcommand("memory", "Show the memory that plans need");
  command->add_option("plans", options->plans, "The plans")->type_name("PLAN...")->required();
  command
      ->add_option("--contexts", options->contexts,
                   "Contexts of each plan: requests that run at a time")
      ->check(CLI::Range(1, kMaxContexts))
      ->capture_default_str();
  command
      ->add_option("--ranks", options->ranks,
                   "The ranks that train the plans, which divide the states of --shard-optimizer")
      ->check(CLI::Range(1, 1 << 12))
      ->capture_default_str();
  command->add_flag("--buckets", options->buckets, "Add a row for each bucket");
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Examples:\n"
                  "  cgc memory model.cgplan\n"
                  "  cgc memory model.cgplan --contexts 4 --buckets --json");
  return {command, [options] { return memory(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
