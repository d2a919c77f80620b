// Archive: lists the members by the zip's directory and reads them with pread, which returns an
// error for a file that shrinks meanwhile where a mapping would end the process.
#include "frontend/exported/archive.h"

#include "runtime/base/printable.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CRC.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace cgc::exported {
namespace {

constexpr const char *kAgain = "; export or copy the file again";

Status invalid(std::string message) {
  return Status(Code::InvalidFile, std::move(message));
}

Status damaged(std::string_view member, const std::string &how) {
  return invalid("the member '" + printable(member) + "' " + how + kAgain);
}

uint32_t crcOf(const Bytes &bytes) {
  return llvm::crc32(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

/// The folder that holds every member: that of `archive_format`.
std::string_view rootOf(const std::vector<ZipEntry> &entries) {
  constexpr std::string_view kFormat = "/archive_format";
  for (const ZipEntry &entry : entries)
    if (entry.name.ends_with(kFormat))
      return entry.name.substr(0, entry.name.size() - kFormat.size() + 1);
  return {};
}

} // namespace

Archive::Descriptor::~Descriptor() {
  if (number >= 0)
    ::close(number);
}

Result<Archive> Archive::open(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const std::string kind = describeForeignFile(path);
  if (kind != kExportedFile)
    return invalid(path + ": this is " + (kind.empty() ? "of no kind that cgc knows" : kind) +
                   "; here cgc reads a .pt2 archive, which torch.export.save(...) writes");
  Archive archive;
  archive.file_ = std::make_shared<const Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (archive.file_->number < 0)
    return invalid(path + ": " + std::strerror(errno));
  Status status = archive.list(file);
  if (status.isOk())
    status = archive.checkFormat();
  if (!status.isOk())
    return status.withContext(path);
  return archive;
}

Status Archive::list(const MappedFile &file) {
  const std::span<const std::byte> zip = file.bytes();
  const auto entries = zipEntries(zip);
  if (!entries)
    return invalid(std::string("the zip is damaged or cut short") + kAgain);
  const std::string_view root = rootOf(*entries);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const ZipEntry &entry : *entries) {
    std::string_view name = entry.name;
    if (root.empty() || !name.starts_with(root))
      continue;
    name.remove_prefix(root.size());
    const auto bytes = storedBytes(zip, entry);
    if (!bytes)
      return damaged(name, "does not lie in the file");
    const auto begin = static_cast<uint64_t>(bytes->data() - zip.data());
    if (!members_.try_emplace(name, Member{begin, entry.size, entry.crc, entry.isStored}).second)
      return damaged(name, "is there twice");
    if (entry.isStored && entry.size > 0)
      ranges.emplace_back(begin, begin + entry.size);
  }
  llvm::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return invalid(std::string("two members of the zip overlap") + kAgain);
  return Status::ok();
}

Status Archive::checkFormat() const {
  // Torch wrote no member `byteorder` into the first archives of this form.
  if (has("byteorder")) {
    CGC_ASSIGN_OR_RETURN(const std::string order, text("byteorder"));
    if (order != "little")
      return invalid("the file was written on a machine of byte order '" + printable(order) +
                     "', and cgc reads little-endian weights; export the model on such a machine");
  }
  CGC_ASSIGN_OR_RETURN(const std::string format, text("archive_format"));
  if (format != "pt2")
    return invalid("the archive is of the format '" + printable(format) +
                   "', and cgc reads 'pt2', which torch.export.save writes");
  return Status::ok();
}

Result<std::string> Archive::programName() const {
  std::vector<std::string> names;
  for (const auto &member : members_) {
    llvm::StringRef name = member.getKey();
    if (name.consume_front("models/") && name.consume_back(".json"))
      names.push_back(name.str());
  }
  llvm::sort(names);
  if (names.empty())
    return invalid("the archive has no program 'models/model.json'; export the model again with "
                   "torch.export.save of torch 2.11");
  if (names.size() > 1)
    return invalid("the archive has " + std::to_string(names.size()) + " programs, '" +
                   printable(names[0]) + "' and '" + printable(names[1]) +
                   "' among them; save each program to a file of its own");
  return names.front();
}

Result<std::string> Archive::text(std::string_view member) const {
  CGC_ASSIGN_OR_RETURN(const auto bytes, read(member));
  return std::string(reinterpret_cast<const char *>(bytes->data()), bytes->size());
}

Result<std::shared_ptr<const Bytes>> Archive::read(std::string_view name) const {
  const auto found = members_.find(name);
  if (found == members_.end())
    return damaged(name, "is missing");
  const Member &member = found->second;
  if (!member.isStored)
    return invalid("the member '" + printable(name) +
                   "' is compressed, and torch.export.save stores members as they are; save the "
                   "program again, and do not repack it");
  auto bytes = std::make_shared<Bytes>(member.size);
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t got = ::pread(file_->number, bytes->data() + done, bytes->size() - done,
                                static_cast<off_t>(member.begin + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return damaged(name, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0)
      return damaged(name, "was cut off while it was read");
    done += static_cast<size_t>(got);
  }
  if (crcOf(*bytes) != member.crc)
    return damaged(name, "is damaged: its checksum differs");
  return std::shared_ptr<const Bytes>(std::move(bytes));
}

} // namespace cgc::exported
