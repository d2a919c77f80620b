// OpTests: reads the lines of the file tests.
#include "tests/numerics/op_tests.h"
#include "tests/paths.h"

#include "ir/op_def.h"
#include "ir/text/text.h"
#include "tests/numerics/op_choices.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace cgc::test {
namespace {

namespace fs = std::filesystem;

/// Writes one call of an op as a graph @g: tensor types become inputs.
class CallGraph {
public:
  CallGraph(ir::OpKind op, llvm::StringRef args) {
    const ir::Schema &schema = ir::opSchema(op);
    std::string positional, named;
    for (const auto &[arg, text] : llvm::zip(schema.args, splitOutside(args, ','))) {
      const bool inParentheses = ir::isPositional(arg);
      std::string &list = inParentheses ? positional : named;
      list += (list.empty() ? "" : ", ") + (inParentheses ? "" : arg.name + "=") + value(text);
    }
    std::string results, types;
    for (unsigned i = 0; i < schema.numResults; ++i) {
      results += (i ? ", %" : "%") + std::to_string(i);
      types += i ? ", dynamic" : "dynamic";
    }
    text_ = "graph @g(" + inputs_ + ") {\n  " + results + " = " + ir::opName(op).str() + "(" +
            positional + ")" + (named.empty() ? "" : " {" + named + "}") + " : " + types +
            "\n  output " + results + "\n}\n";
  }

  const std::string &text() const { return text_; }

private:
  std::string value(llvm::StringRef text) {
    if (text.consume_front("{") && text.consume_back("}")) {
      std::vector<std::string> values; // Not a range: llvm::join maps each element twice.
      for (llvm::StringRef part : splitOutside(text, ';'))
        values.push_back(value(part));
      return "[" + llvm::join(values, ", ") + "]";
    }
    if (!ir::parseTensorType(text))
      return text.str();
    std::string name = "%t" + std::to_string(numInputs_++);
    inputs_ += (inputs_.empty() ? "" : ", ") + name + ": " + text.str();
    return name;
  }

  std::string inputs_, text_;
  unsigned numInputs_ = 0;
};

/// Reads the lines of one file.
class FileReader {
public:
  FileReader(const fs::path &path, std::string where, OpTests &tests)
      : where_(std::move(where)), stem_(path.stem().string()), tests_(tests) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      lines_.push_back(line);
    for (llvm::StringRef space : {"aten.", "prim."})
      if (!op_)
        op_ = ir::parseOpName((space + stem_).str());
    if (llvm::StringRef name = stem_; name.consume_front("cgc_"))
      op_ = ir::parseOpName(("cgc." + name).str());
  }

  void read() {
    for (line_ = 0; line_ < lines_.size(); ++line_) {
      const size_t first = line_;
      llvm::StringRef line = lines_[line_];
      if (!line.consume_front("; "))
        continue;
      for (llvm::StringRef word : {"shapes:", "numerics:", "numerics", "gradient:", "gradient",
                                   "reference", "never", "let"})
        if (line.consume_front(word) && (line.empty() || line.front() == ' ')) {
          std::string text = line.trim().str();
          // Lines that begin with three blanks continue a line.
          while (line_ + 1 < lines_.size() &&
                 llvm::StringRef(lines_[line_ + 1]).starts_with(";   "))
            text += " " + llvm::StringRef(lines_[++line_]).drop_front().trim().str();
          readLine(word.rtrim(':'), text, first + 1);
          break;
        }
    }
  }

private:
  void error(size_t line, const std::string &what) {
    tests_.errors.push_back(where_ + ":" + std::to_string(line) + ": " + what);
  }

  void readLine(llvm::StringRef word, llvm::StringRef text, size_t line) {
    if (word == "let") {
      auto [name, choices] = text.split('=');
      sets_[name.trim().str()] = choicesOf(choices, sets_);
      return;
    }
    if (word == "reference") {
      if (!lastWasGradient_)
        return error(line, "there is no '; numerics' or '; gradient' before this reference");
      (*lastWasGradient_ ? tests_.gradients.back().reference : tests_.cases.back().reference) =
          graphAfter(line).second;
      return;
    }
    if (word == "numerics")
      return readNumerics(text, line);
    if (word == "gradient")
      return readGradient(text, line);
    if (!op_)
      return error(line, "the file is not named after an op");
    if (word == "never") {
      // "; never empty: weight, bias (reason)"
      auto [kind, names] = text.split(':');
      const unsigned bit = kind == "empty" ? kEmpty : kind == "size-1" ? kSizeOne : kStrided;
      if (bit == kStrided && kind != "strided")
        return error(line, "expected '; never empty', 'size-1' or 'strided', and ': arguments'");
      for (llvm::StringRef name : splitOutside(names.split('(').first, ','))
        tests_.impossible[*op_][name.str()] |= bit;
      return;
    }
    readShapes(text, line);
  }

  /// "aten::pow.Scalar(numbers, operands) fill=0 may refuse: reason"
  void readShapes(llvm::StringRef text, size_t line) {
    auto [overload, rest] = text.split('(');
    const size_t end = closing(rest);
    if (end == llvm::StringRef::npos)
      return error(line, "expected 'aten::op.overload(choices, ...)'");
    llvm::StringRef options = rest.drop_front(end + 1).trim();
    std::string name = llvm::StringRef(overload).substr(6).str();
    std::replace(name.begin(), name.end(), '.', '_');
    Grid grid{where_ + ":" + std::to_string(line),
              name + "_" + std::to_string(line),
              *op_,
              overload.str(),
              {}};
    for (llvm::StringRef arg : splitOutside(rest.take_front(end), ','))
      grid.args.push_back(choicesOf(arg, sets_));
    if (options.consume_front("fill=0"))
      grid.fill = 0;
    options = options.trim();
    if (options.starts_with("may refuse: "))
      grid.strictness = Strictness::MayRefuse;
    else if (options.starts_with("may accept: "))
      grid.strictness = Strictness::MayAccept;
    else if (!options.empty())
      error(line, "expected 'fill=0', 'may refuse: reason' or 'may accept: reason', not '" +
                      options.str() + "'");
    if (grid.args.size() != ir::opSchema(*op_).args.size())
      return error(line, "expected choices for each of the op's arguments");
    tests_.grids.push_back(std::move(grid));
  }

  /// Returns the position of the parenthesis that closes `text`; npos if there is none.
  static size_t closing(llvm::StringRef text) {
    bool quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
      quoted ^= text[i] == '"';
      if (text[i] == ')' && !quoted)
        return i;
    }
    return llvm::StringRef::npos;
  }

  /// "bound=9 (f32[2,3], 0.5)", or without a call: then the next graph.
  void readNumerics(llvm::StringRef text, size_t line) {
    NumericsCase c;
    if (text.consume_front("bound=") && text.consumeInteger(10, c.bound))
      return error(line, "expected 'bound=' and a number");
    if (!readGraph(text.trim(), line, calls_, c))
      return;
    tests_.cases.push_back(std::move(c));
    lastWasGradient_ = false;
  }

  /// "bound=9 range=0.1,0.9 kink (f64[2,3], 0.5)", or without a call: then the next graph.
  void readGradient(llvm::StringRef text, size_t line) {
    GradientCase c;
    while (!text.empty() && !text.starts_with("(")) {
      auto [word, rest] = text.split(' ');
      if (word.consume_front("bound=")) {
        if (word.getAsInteger(10, c.bound))
          return error(line, "expected 'bound=' and a number");
      } else if (word.consume_front("range=")) {
        auto [low, high] = word.split(',');
        c.range.emplace();
        if (low.getAsDouble(c.range->first) || high.getAsDouble(c.range->second))
          return error(line, "expected 'range=' and two numbers");
      } else if (word == "kink") {
        c.hasKink = true;
      } else {
        return error(line, "expected 'bound=', 'range=' or 'kink', not '" + word.str() + "'");
      }
      text = rest.trim();
    }
    if (!readGraph(text, line, gradientCalls_, c))
      return;
    tests_.gradients.push_back(std::move(c));
    lastWasGradient_ = true;
  }

  /// Reads "(f32[2,3], 0.5)", or the graph after `line` if `text` is empty. `calls` counts the
  /// calls of the file. Returns false if it cannot be read.
  template <class Case>
  bool readGraph(llvm::StringRef text, size_t line, unsigned &calls, Case &c) {
    if (!text.empty()) {
      if (!op_ || !text.consume_front("(") || !text.consume_back(")")) {
        error(line, "expected a call '(argument, ...)' of the op after which the file is named, or "
                    "nothing and a graph on the next line");
        return false;
      }
      c.graph = CallGraph(*op_, text).text();
      c.name = stem_ + "_call" + (++calls > 1 ? "_" + std::to_string(calls) : "");
    } else {
      std::tie(c.name, c.graph) = graphAfter(line);
    }
    c.reference = c.graph;
    return true;
  }

  /// Returns the name and the text, with the name @g, of the graph that begins after line `line`.
  std::pair<std::string, std::string> graphAfter(size_t line) {
    while (line < lines_.size() && llvm::StringRef(lines_[line]).starts_with(";"))
      ++line;
    llvm::StringRef head = line < lines_.size() ? lines_[line] : llvm::StringRef();
    if (!head.consume_front("graph @")) {
      error(line + 1, "expected a graph");
      return {};
    }
    const size_t parenthesis = head.find('(');
    std::string text =
        "graph @g" + head.drop_front(std::min(parenthesis, head.size())).str() + "\n";
    for (size_t i = line + 1; i < lines_.size(); ++i) {
      text += lines_[i] + "\n";
      if (lines_[i] == "}")
        break;
    }
    return {head.take_front(parenthesis).str(), text};
  }

  std::string where_, stem_;
  OpTests &tests_;
  /// Whether a reference belongs to the last '; gradient' or the last '; numerics' of the file.
  std::optional<bool> lastWasGradient_;
  std::optional<ir::OpKind> op_;
  std::vector<std::string> lines_;
  size_t line_ = 0;
  unsigned calls_ = 0, gradientCalls_ = 0;
  Sets sets_ = commonSets();
};

} // namespace

const OpTests &opTests() {
  static const OpTests tests = [] {
    OpTests all;
    const fs::path root = sourceDir() / "tests" / "filetests";
    std::vector<fs::path> paths;
    for (const auto &entry : fs::recursive_directory_iterator(root))
      if (entry.path().extension() == ".cgir")
        paths.push_back(entry.path());
    llvm::sort(paths);
    for (const fs::path &path : paths)
      FileReader(path, fs::relative(path, root).string(), all).read();
    return all;
  }();
  return tests;
}

} // namespace cgc::test
