// JSON of the archive, whose accessors throw what it lacks.
#pragma once

#include "frontend/exported/program.h"

#include <nlohmann/json.hpp>

namespace cgc::exported {

using Json = nlohmann::json;

/// Thrown and caught in this library, for what the types of JSON do not show.
struct Malformed {
  std::string message;
};

/// Returns the member of a union: its one field that is not null. Throws if there is none.
std::pair<std::string, const Json &> unionOf(const Json &json);

/// Throw if `json` has another form. `depth`: lists around the argument.
Argument parseArgument(const Json &json, unsigned depth = 0);
TensorMeta parseTensorMeta(const Json &json);
ValueTree parseTree(const std::string &text);

/// Parses "Symbol('s0', positive=True, integer=True)", "Add(Mul(Integer(2), Symbol('s0')),
/// Integer(1))" or "s0". None for an expression that is no linear function of one symbol.
std::optional<ir::LinearSize> parseSize(std::string_view expression);

/// The dtype with a number of torch.export's schema.
struct SchemaDType {
  std::optional<DType> dtype;
  std::string name;
};
SchemaDType schemaDType(int64_t number);

/// Runs `parse` on the JSON of `text`. InvalidFile with what it throws.
template <class Parse> Status parseJson(std::string_view text, Parse &&parse) {
  try {
    parse(Json::parse(text));
  } catch (const Malformed &error) {
    return Status(Code::InvalidFile, error.message);
  } catch (const Json::exception &error) {
    return Status(Code::InvalidFile, std::string("this is not what torch.export writes (") +
                                         error.what() + "); export the model again");
  }
  return Status::ok();
}

} // namespace cgc::exported
