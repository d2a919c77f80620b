// checkInputs: solves each size for its symbol, and computes the guards.
#include "ir/input_shapes.h"

#include "ir/size_guard.h"

#include "runtime/base/printable.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {
namespace {

/// Where the value of a symbol comes from.
struct Solved {
  int64_t value;
  std::string place;
};

std::string placeOf(const GivenInput &input, size_t dim) {
  return "dimension " + std::to_string(dim) + " of input '" + input.name + "'";
}

std::string text(const InputShapes::Range &range) {
  if (!range.most)
    return "at least " + std::to_string(range.least.value_or(0));
  return "from " + std::to_string(range.least.value_or(0)) + " to " + std::to_string(*range.most);
}

std::string text(const LinearSize &size) {
  std::string text = size.factor == 1 ? "" : std::to_string(size.factor) + " * ";
  text += size.symbol;
  return size.offset == 0 ? text : text + " + " + std::to_string(size.offset);
}

class Check {
public:
  explicit Check(const InputShapes &shapes) : shapes_(shapes) {}

  Status run(const GivenInput &input) {
    const auto shape =
        llvm::find_if(shapes_.inputs, [&](const InputShape &s) { return s.name == input.name; });
    if (shape == shapes_.inputs.end())
      return Status::ok(); // The choice of buckets refuses unknown names.
    if (shape->dtype != input.dtype)
      return refuse("input '" + input.name + "' is " + std::string(dtypeName(input.dtype)),
                    std::string(dtypeName(shape->dtype)));
    if (shape->sizes.size() != input.sizes.size())
      return refuse("input '" + input.name + "' has " + std::to_string(input.sizes.size()) +
                        " dimensions",
                    std::to_string(shape->sizes.size()));
    for (size_t dim = 0; dim < input.sizes.size(); ++dim)
      CGC_TRY(runSize(shape->sizes[dim], input.sizes[dim], placeOf(input, dim)));
    return Status::ok();
  }

  Status checkGuards(llvm::ArrayRef<GivenInput> inputs) const {
    const auto sizesOf = [&](llvm::StringRef name) -> llvm::ArrayRef<int64_t> {
      const auto *given =
          llvm::find_if(inputs, [&](const GivenInput &input) { return name == input.name; });
      if (given != inputs.end())
        return given->sizes;
      const auto shape = llvm::find_if(shapes_.inputs,
                                       [&](const InputShape &shape) { return name == shape.name; });
      return shape == shapes_.inputs.end() ? llvm::ArrayRef<int64_t>()
                                           : llvm::ArrayRef(shape->example);
    };
    const auto sizeOf = [&](llvm::StringRef name, unsigned dim) -> std::optional<int64_t> {
      const llvm::ArrayRef<int64_t> sizes = sizesOf(name);
      return dim < sizes.size() ? std::optional(sizes[dim]) : std::nullopt;
    };
    const bool isExample = llvm::all_of(shapes_.inputs, [&](const InputShape &shape) {
      return sizesOf(shape.name) == llvm::ArrayRef(shape.example);
    });
    for (const std::string &guard : shapes_.guards)
      if (!isExample && !guardHolds(guard, sizeOf).value_or(false))
        return Status(Code::Usage, "the program was exported under the condition " +
                                       printable(guard) +
                                       ", which does not hold for these sizes or cannot be "
                                       "checked; give others, or export the model with these");
    return Status::ok();
  }

private:
  static Status refuse(const std::string &what, const std::string &wanted) {
    return Status(Code::Usage, what + ", and the program was exported for " + wanted +
                                   "; give that, or export the model with a dynamic dimension "
                                   "there (torch.export.Dim)");
  }

  Status runSize(const LinearSize &size, int64_t given, const std::string &place) {
    const std::string what = place + " is " + std::to_string(given);
    if (size.symbol.empty())
      return given == size.offset ? Status::ok() : refuse(what, std::to_string(size.offset));
    int64_t product = 0;
    if (__builtin_sub_overflow(given, size.offset, &product) || product % size.factor != 0)
      return refuse(what, text(size));
    const int64_t value = product / size.factor;
    const auto range = shapes_.ranges.find(size.symbol);
    if (range != shapes_.ranges.end()) {
      const auto &[least, most] = range->second;
      if ((least && value < *least) || (most && value > *most))
        return refuse(what, text(size) + " with " + size.symbol + " " + text(range->second));
    }
    const auto [known, isNew] = solved_.try_emplace(size.symbol, Solved{value, place});
    if (!isNew && known->second.value != value)
      return refuse(what, text(size) + " with the same " + size.symbol + " as " +
                              known->second.place + ", which makes it " +
                              std::to_string(known->second.value));
    return Status::ok();
  }

  const InputShapes &shapes_;
  llvm::StringMap<Solved> solved_; ///< Never iterated.
};

} // namespace

Status checkInputs(const InputShapes &shapes, llvm::ArrayRef<GivenInput> inputs) {
  Check check(shapes);
  for (const GivenInput &input : inputs)
    CGC_TRY(check.run(input));
  return check.checkGuards(inputs);
}

} // namespace cgc::ir
