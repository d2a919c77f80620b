// Archive: the members of a .pt2 file, a zip of stored files under one folder.
#pragma once

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/base/zip.h"

#include "llvm/ADT/StringMap.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::exported {

using Bytes = std::vector<std::byte>;

class Archive final {
public:
  /// InvalidFile, naming what is wrong, unless `path` is a whole archive that torch.export.save
  /// wrote on a little-endian machine.
  static Result<Archive> open(const std::string &path);

  /// The name of the one program in the archive. InvalidFile if there is none or more than one.
  Result<std::string> programName() const;

  /// `member` is a path below the archive's folder: "models/model.json".
  bool has(std::string_view member) const { return members_.contains(member); }
  /// Reads a member whole. InvalidFile, naming it, if it is missing, compressed or damaged.
  Result<std::shared_ptr<const Bytes>> read(std::string_view member) const;

private:
  struct Member {
    uint64_t begin = 0, size = 0; ///< In the file, in bytes.
    uint32_t crc = 0;
    bool isStored = false;
  };
  struct Descriptor {
    explicit Descriptor(int number) : number(number) {}
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor();
    int number;
  };

  Status list(const MappedFile &file);
  Status checkFormat() const;
  Result<std::string> text(std::string_view member) const;

  std::shared_ptr<const Descriptor> file_;
  llvm::StringMap<Member> members_; ///< Never iterated where the order could show.
};

} // namespace cgc::exported
