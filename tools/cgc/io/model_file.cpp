// Model files: chooses the frontend.
#include "tools/cgc/io/model_file.h"

#include "frontend/exported/exported.h"
#include "runtime/base/file.h"
#include "tools/cgc/cli/libraries.h"

#include <algorithm>

namespace cgc::tool {

Result<ModelFile> importModel(const std::string &path, frontend::ImportFor purpose) {
  if (describeForeignFile(path) == kExportedFile) {
    CGC_ASSIGN_OR_RETURN(auto exported, exported::importExported(path, purpose));
    return ModelFile{std::move(exported.module), std::move(exported.shapes)};
  }
  CGC_ASSIGN_OR_RETURN(const frontend::Api *frontend, openFrontend());
  CGC_ASSIGN_OR_RETURN(auto root, frontend->import(path, purpose));
  return ModelFile{std::move(root), std::nullopt};
}

std::vector<driver::InputSpec> withExamples(std::vector<driver::InputSpec> given,
                                            const ir::InputShapes &shapes) {
  for (const ir::InputShape &shape : shapes.inputs)
    if (std::ranges::count(given, shape.name, &driver::InputSpec::name) == 0)
      given.push_back({shape.name, shape.dtype, shape.example});
  return given;
}

} // namespace cgc::tool
