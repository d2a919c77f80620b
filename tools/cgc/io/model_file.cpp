// Model files: chooses the frontend.
#include "tools/cgc/io/model_file.h"

#include "frontend/exported/exported.h"
#include "runtime/base/file.h"
#include "tools/cgc/cli/libraries.h"

#include <algorithm>

namespace cgc::tool {

bool isExported(const std::string &path) {
  return describeForeignFile(path) == kExportedFile;
}

Result<ModelFile> importModel(const std::vector<std::string> &paths, frontend::ImportFor purpose,
                              const std::string &onlyMethod) {
  const auto other = std::ranges::find_if_not(paths, isExported);
  if (other == paths.end()) {
    CGC_ASSIGN_OR_RETURN(auto exported, exported::importExported(paths, purpose, onlyMethod));
    return ModelFile{std::move(exported.module), std::move(exported.shapes)};
  }
  if (paths.size() > 1)
    return Status(Code::Usage, *other + ": several models make one plan if all are .pt2 files; "
                                        "export this one by torch.export, or compile it alone and "
                                        "add the others with --add-to");
  CGC_ASSIGN_OR_RETURN(const frontend::Api *frontend, openFrontend());
  CGC_ASSIGN_OR_RETURN(auto root, frontend->import(*other, purpose));
  return ModelFile{std::move(root), {}};
}

Result<std::vector<driver::InputSpec>> withExamples(std::vector<driver::InputSpec> given,
                                                    const ir::ShapesOfMethods &shapes) {
  const size_t numGiven = given.size();
  for (const auto &[method, ofMethod] : shapes)
    for (const ir::InputShape &shape : ofMethod.inputs) {
      const auto known = std::ranges::find(given, shape.name, &driver::InputSpec::name);
      if (known == given.end())
        given.push_back({shape.name, shape.dtype, shape.example});
      else if (size_t(known - given.begin()) >= numGiven &&
               (known->dtype != shape.dtype || known->sizes != shape.example))
        return Status(Code::Usage, "input '" + shape.name + "' of '" + method +
                                       "' was exported with another type than that of another "
                                       "method; give --input " +
                                       shape.name +
                                       "=DTYPE[SIZES], which holds for both, or "
                                       "export one with another name of the argument");
    }
  return given;
}

} // namespace cgc::tool
