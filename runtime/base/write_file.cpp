// writeFile, implemented with AtomicFile.
#include "runtime/base/write_file.h"

#include "runtime/base/file.h"

namespace cgc {

Status writeFile(const std::string &path, std::string_view text) {
  CGC_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  CGC_TRY(file.write(text.data(), text.size()));
  return file.commit();
}

} // namespace cgc
