// training_notes: what a training step leaves out though it compiles.
#pragma once

#include "ir/module.h"

#include <string>
#include <vector>

namespace cgc::passes {

/// Sentences about the training of `method`, a method of the root module whose calls are inlined,
/// by `step`, the graph of its step: the trained parameters that no gradient reaches, and what the
/// model does not do because it was exported after eval().
std::vector<std::string> trainingNotes(const ir::Graph &method, const ir::Graph &step);

} // namespace cgc::passes
