// Depth of TorchScript source, by a lexer that knows strings, comments, lines and words.
#include "runtime/script/source_depth.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace cgc::script {
namespace {

bool isWordPart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Returns true for keywords that are operators of an expression.
bool isOperator(std::string_view word) {
  constexpr std::string_view kOperators[] = {"not", "and", "or",  "if",    "else",
                                             "in",  "is",  "for", "await", "lambda"};
  return std::ranges::find(kOperators, word) != std::end(kOperators);
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : source_(source) {}

  size_t depth() {
    beginLine();
    while (at_ < source_.size())
      readToken();
    return most_;
  }

private:
  /// A block of lines with one indentation.
  struct Block {
    size_t indentation = 0;
    size_t elifs = 0; ///< Those after the last `if`.
  };

  void add() { most_ = std::max(most_, ++depth_); }
  void readToken();
  void skipComment();
  void skipString();
  std::string_view wordAt(size_t at) const;
  void beginLine();
  /// Forgets the operators of the innermost expression.
  void endOperand() { depth_ -= std::exchange(operators_.back(), 0); }

  std::string_view source_;
  size_t at_ = 0, depth_ = 0, most_ = 0;
  std::vector<Block> blocks_ = {{}};
  std::vector<size_t> operators_ = {0}; ///< Of the statement, and of each open bracket.
};

std::string_view Lexer::wordAt(size_t at) const {
  size_t end = at;
  while (end < source_.size() && isWordPart(source_[end]))
    ++end;
  return source_.substr(at, end - at);
}

void Lexer::beginLine() {
  const size_t begin = at_;
  while (at_ < source_.size() && (source_[at_] == ' ' || source_[at_] == '\t'))
    ++at_;
  if (at_ == source_.size() || source_[at_] == '\n' || source_[at_] == '#')
    return; // The line is empty.
  const size_t indentation = at_ - begin;
  while (blocks_.size() > 1 && blocks_.back().indentation > indentation) {
    depth_ -= 1 + blocks_.back().elifs;
    blocks_.pop_back();
  }
  if (blocks_.back().indentation < indentation) {
    blocks_.push_back({indentation});
    add();
  }
  Block &block = blocks_.back();
  const std::string_view word = wordAt(at_);
  if (word == "elif") {
    ++block.elifs;
    add();
  } else if (word != "else") {
    depth_ -= std::exchange(block.elifs, 0);
  }
}

/// A comment is no code, except for the type after `# type:`.
void Lexer::skipComment() {
  constexpr std::string_view kType = "# type:";
  at_ = source_.substr(at_).starts_with(kType) ? at_ + kType.size()
                                               : std::min(source_.find('\n', at_), source_.size());
}

void Lexer::skipString() {
  const char quote = source_[at_];
  const std::string triple(3, quote);
  const bool isTriple = source_.substr(at_, 3) == triple;
  for (at_ += isTriple ? 3 : 1; at_ < source_.size(); ++at_) {
    if (source_[at_] == '\\')
      ++at_;
    else if (isTriple && source_.substr(at_, 3) == triple) {
      at_ += 3;
      return;
    } else if (!isTriple && source_[at_] == '\n')
      return;
    else if (!isTriple && source_[at_] == quote) {
      ++at_;
      return;
    }
  }
}

void Lexer::readToken() {
  const char c = source_[at_];
  if (c == '#')
    return skipComment();
  if (c == '"' || c == '\'')
    return skipString();
  if (isWordPart(c)) {
    const std::string_view word = wordAt(at_);
    at_ += word.size();
    if (isOperator(word)) {
      ++operators_.back();
      add();
    }
    return;
  }
  ++at_;
  switch (c) {
  case ' ':
  case '\t':
  case '\r':
    return;
  case '\\': // At the end of a line, the statement goes on.
    at_ += at_ < source_.size() && source_[at_] == '\n';
    return;
  case '\n':
    if (operators_.size() == 1) {
      endOperand();
      beginLine();
    }
    return;
  case ',':
    return endOperand();
  case '(':
  case '[':
  case '{':
    operators_.push_back(0);
    return add();
  case ')':
  case ']':
  case '}':
    if (operators_.size() > 1) {
      endOperand();
      operators_.pop_back();
      --depth_;
      // A call or a subscript is the operand of what follows.
      ++operators_.back();
      add();
    }
    return;
  default:
    ++operators_.back();
    return add();
  }
}

} // namespace

size_t sourceDepth(std::string_view source) {
  return Lexer(source).depth();
}

} // namespace cgc::script
