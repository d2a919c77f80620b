// Op choices: reads the choices of arguments in the lines of the file tests.
#include "tests/numerics/op_choices.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::test {
namespace {

/// Returns a tensor of each dtype with these sizes.
Choices ofEachDType(llvm::StringRef sizes) {
  Choices result;
  for (const char *dtype : {"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "bool"})
    result.push_back(dtype + sizes.str());
  return result;
}

} // namespace

llvm::SmallVector<llvm::StringRef> splitOutside(llvm::StringRef text, char separator) {
  llvm::SmallVector<llvm::StringRef> parts;
  size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    quoted ^= c == '"';
    if (quoted)
      continue;
    depth += c == '[' || c == '{' || c == '(';
    depth -= c == ']' || c == '}' || c == ')';
    if (c == separator && depth == 0) {
      parts.push_back(text.slice(begin, i).trim());
      begin = i + 1;
    }
  }
  if (llvm::StringRef last = text.drop_front(begin).trim(); !last.empty() || !parts.empty())
    parts.push_back(last);
  return parts;
}

Sets commonSets() {
  Sets sets;
  sets["dtypes"] = ofEachDType("");
  sets["numbers"] = {"true", "2", "2.5"};
  sets["dims"] = {"-4", "-3", "-2", "-1", "0", "1", "2", "3"};
  sets["bools"] = {"false", "true"};
  // One tensor for each kind of layout.
  sets["layouts"] = {"f32[]",
                     "f32[1]",
                     "f32[0]",
                     "f32[4]",
                     "f32[4][2]",
                     "f32[4][0]",
                     "f32[2,3]",
                     "f32[2,3][1,2]",
                     "f32[2,3][6,2]",
                     "f32[1,3][7,1]",
                     "f32[2,1]",
                     "f32[2,0]",
                     "f32[2,3,4]",
                     "f32[2,3,4][1,2,6]",
                     "f32[2,3,4][12,1,3]",
                     "f32[1,3,1]",
                     "f32[1,3,1][9,1,5]",
                     "f32[2,3,4][0,4,1]",
                     "f32[0,3,4]",
                     "f32[2,1,6][12,12,2]"};
  // Every dtype, as a tensor with a dimension and as one without.
  sets["operands"] = ofEachDType("[2]");
  llvm::append_range(sets["operands"], ofEachDType("[]"));
  // Partners of `layouts` where arguments broadcast.
  sets["partners"] = {"f32[]",         "f32[1]",     "f32[3]",    "f32[0]",
                      "f32[2,3][1,2]", "f32[2,1,1]", "f32[1,3,4]"};
  return sets;
}

Choices choicesOf(llvm::StringRef text, const Sets &sets) {
  Choices choices;
  for (llvm::StringRef part : splitOutside(text, '|')) {
    auto [name, dtype] = part.split(':');
    if (auto set = sets.find(name.str()); set != sets.end()) {
      for (std::string choice : set->second) {
        if (!dtype.empty())
          choice.replace(0, choice.find('['), dtype.str());
        choices.push_back(std::move(choice));
      }
    } else if (part.consume_front("each")) {
      llvm::append_range(choices, ofEachDType(part));
    } else {
      choices.push_back(part.str());
    }
  }
  return choices;
}

} // namespace cgc::test
