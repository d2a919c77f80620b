// OpLibrary: opens a library, checks its ABI, and finds the libraries of a plan.
#include "runtime/plan/op_library.h"

#include "runtime/base/shared_library.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>

namespace cgc {
namespace {

static_assert(int(DType::F32) == CGC_OP_F32 && int(DType::BF16) == CGC_OP_BF16 &&
                  int(DType::I64) == CGC_OP_I64 && int(DType::Bool) == CGC_OP_BOOL &&
                  kNumDTypes == CGC_OP_BOOL + 1,
              "op_library_abi.h has the numbers of dtype.h");

std::string nameOf(const std::string &path) {
  return std::filesystem::path(path).filename().string();
}

std::string described(const OpLibraryId &id) {
  return "op library '" + id.name + "' (xxhash64 " + hashText(id.hash) + ")";
}

} // namespace

std::string hashText(uint64_t hash) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; hash >>= 4)
    text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

Result<std::shared_ptr<const OpLibrary>> OpLibrary::open(const std::string &path) {
  Result<LibraryFile> file = LibraryFile::open(path);
  if (!file)
    return file.status().withContext("cannot load op library '" + path + "'");
  return load(*file, path);
}

Result<std::shared_ptr<const OpLibrary>> OpLibrary::load(LibraryFile &file,
                                                         const std::string &path) {
  OpLibraryId id{nameOf(path), file.hash()};
  const auto opened = file.load();
  if (!opened)
    return opened.status().withContext("cannot load op library '" + path + "'");
  void *const library = *opened;
  const auto entry = reinterpret_cast<decltype(&cgcOpLibrary)>(dlsym(library, "cgcOpLibrary"));
  if (!entry)
    return Status(Code::InvalidFile, "'" + path +
                                         "' is no op library: it does not define cgcOpLibrary" +
                                         (dlsym(library, "cgcPassPlugin")
                                              ? "; it is a pass plug-in: name it with --pass-plugin"
                                              : " (runtime/plan/op_library_abi.h)"));
  const CgcOpLibrary *table = entry();
  if (!table || table->abi != CGC_OP_LIBRARY_ABI)
    return Status(Code::Failed,
                  "op library '" + path + "' has ABI " + std::to_string(table ? table->abi : 0) +
                      ", and this cgc takes ABI " + std::to_string(CGC_OP_LIBRARY_ABI) +
                      "; build it with this cgc's header");
  for (uint32_t i = 0; i < table->numOps; ++i)
    if (!table->ops[i].name || !table->ops[i].check)
      return Status(Code::Failed, "op library '" + path + "': op " + std::to_string(i) +
                                      " has no name or no check function");
  return std::shared_ptr<const OpLibrary>(new OpLibrary(path, std::move(id), *table));
}

const CgcOp *OpLibrary::find(std::string_view op) const {
  const std::span ops(table_.ops, table_.numOps);
  const auto it =
      std::find_if(ops.begin(), ops.end(), [&](const CgcOp &o) { return o.name == op; });
  return it == ops.end() ? nullptr : &*it;
}

Result<std::vector<std::shared_ptr<const OpLibrary>>>
openOpLibraries(const PlanData &plan, std::span<const std::string> paths) {
  std::vector<std::shared_ptr<const OpLibrary>> libraries;
  std::vector<LibraryFile> given;
  for (const std::string &path :
       plan.opLibraries.empty() ? std::span<const std::string>() : paths) {
    Result<LibraryFile> file = LibraryFile::open(path);
    if (!file)
      return Status(file.status().code() == Code::OutOfMemory ? Code::OutOfMemory : Code::Device,
                    "the plan calls ops of " + described(plan.opLibraries[0]) + ", and '" + path +
                        "', given with " + kOpLibraryOption +
                        ", cannot be opened: " + file.status().message());
    given.push_back(*std::move(file));
  }
  for (const OpLibraryId &wanted : plan.opLibraries) {
    const auto same = std::ranges::find(given, wanted.hash, &LibraryFile::hash);
    if (same == given.end()) {
      const auto named = std::ranges::find(paths, wanted.name, nameOf);
      if (named == paths.end())
        return Status(Code::Usage, "the plan calls ops of " + described(wanted) +
                                       ", which was not given: name its file with " +
                                       kOpLibraryOption);
      return Status(Code::Usage, "'" + *named + "', given with " + kOpLibraryOption +
                                     ", has xxhash64 " +
                                     hashText(given[named - paths.begin()].hash()) +
                                     ", and the plan was compiled with " + described(wanted) +
                                     "; give that one, or compile again with this one");
    }
    auto library = OpLibrary::load(*same, paths[same - given.begin()]);
    if (!library && library.status().code() == Code::InvalidFile)
      // The file's bytes are the expected ones, so one of its own dependencies is missing.
      return Status(Code::Device, library.status().message());
    CGC_TRY(library.status());
    libraries.push_back(*std::move(library));
  }
  return libraries;
}

Status checkOpCall(const OpLibrary &library, const CgcOp &op, const OpArguments &arguments,
                   DeviceKind target) {
  const std::string which = "op '" + std::string(op.name) + "' of '" + library.id().name + "'";
  if (target == DeviceKind::Cpu ? !op.run : !op.launch)
    return {Code::Unsupported, which + " has no implementation for target " +
                                   std::string(deviceName(target)) + "; compile for --target " +
                                   (target == DeviceKind::Cpu ? "cuda" : "cpu")};
  const CgcOpCall call = arguments.call();
  if (const char *why = op.check(&call))
    return {Code::Unsupported, which + " refuses: " + why};
  return Status::ok();
}

} // namespace cgc
