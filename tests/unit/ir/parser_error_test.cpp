// Parse errors: message and position (line, column, caret), all errors at once, and no follow-up
// errors.
#include "ir_test_util.h"

namespace cgc::ir {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Returns the only error of `text`; fails the test if there is not exactly one.
Diagnostic onlyError(llvm::StringRef text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parseModule(text, "test.cgir", diagnostics)) << text.str();
  EXPECT_EQ(diagnostics.errors().size(), 1u) << diagnostics.render();
  return diagnostics.hasErrors() ? diagnostics.errors().front() : Diagnostic();
}

/// Returns the only error of a graph with an input %x and `line` as its third line.
Diagnostic errorInBody(const std::string &line) {
  Diagnostic error = onlyError("graph @f(%x: f32[2]) {\n  %y = aten.relu(%x) : f32[2]\n" + line +
                               "\n  output %y\n}\n");
  EXPECT_EQ(error.line, 3u);
  return error;
}

TEST(ParseError, CaretStandsUnderTheToken) {
  EXPECT_EQ(parseErrors("graph @f(%x: f32[2]) {\n\t %0 = aten.relu(%yy) : f32[2]\n  output %x\n}"),
            "test.cgir:2:18: error: no value '%yy' before this line; did you mean '%x'?\n"
            "  \t %0 = aten.relu(%yy) : f32[2]\n"
            "  \t                ^\n");
}

TEST(ParseError, AllErrorsAreReportedAndFollowersAreNot) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parseModule("graph @f(%x: f32[2]) {\n"
                           "  %a = aten.nothing(%x) : f32[2]\n"
                           "  %b = aten.relu(%a) : f32[2]\n"
                           "  %c = aten.relu(%x : f32[2]\n"
                           "  output %b, %c\n"
                           "}\n"
                           "graph @g(%x: f33[2]) {\n"
                           "  output %x\n"
                           "}\n",
                           "test.cgir", diagnostics));
  std::vector<unsigned> lines;
  for (const Diagnostic &error : diagnostics.errors())
    lines.push_back(error.line);
  EXPECT_THAT(lines, testing::ElementsAre(2, 4, 7)) << diagnostics.render();
}

TEST(ParseError, WhatTheLineLacksIsReportedAtItsEnd) {
  Diagnostic error = errorInBody("  %0 = aten.relu(%x)");
  EXPECT_EQ(error.message, "expected ':' before the end of the line");
  EXPECT_EQ(error.column, 21u);
}

TEST(ParseError, UnknownOpSuggestsTheNearest) {
  EXPECT_EQ(errorInBody("  %0 = aten.reluu(%x) : f32[2]").message,
            "no op 'aten.reluu'; did you mean 'aten.relu'?");
}

TEST(ParseError, Arguments) {
  EXPECT_EQ(errorInBody("  %0 = aten.relu(%x, %x) : f32[2]").message,
            "too many arguments in the parentheses of aten.relu");
  EXPECT_EQ(errorInBody("  %0 = aten.linear(%x) : f32[2]").message,
            "argument 'weight' of aten.linear is missing");
  EXPECT_EQ(errorInBody("  %0 = aten.view(%x) : f32[2]").message,
            "argument 'size' of aten.view is missing");
  EXPECT_EQ(errorInBody("  %0 = aten.view(%x) {sizes=[2]} : f32[2]").message,
            "aten.view has no argument 'sizes'; did you mean 'size'?");
  EXPECT_EQ(errorInBody("  %0 = aten.view(%x) {size=[2], size=[2]} : f32[2]").message,
            "argument 'size' is there twice");
  EXPECT_EQ(errorInBody("  %0 = aten.view(%x) {self=%x, size=[2]} : f32[2]").message,
            "argument 'self' stands in the parentheses");
  EXPECT_THAT(errorInBody("  %0 = aten.gelu(%x) {approximate=tanh} : f32[2]").message,
              HasSubstr("no constant 'tanh'"));
}

TEST(ParseError, Results) {
  EXPECT_EQ(errorInBody("  %y = aten.relu(%x) : f32[2]").message, "'%y' is defined twice");
  EXPECT_EQ(errorInBody("  %0, %0 = aten.chunk(%x) {chunks=2} : f32[1], f32[1]").message,
            "'%0' is defined twice");
  EXPECT_EQ(errorInBody("  %0, %1 = aten.chunk(%x) {chunks=2} : f32[1]").message,
            "expected 2 types, one for each result, got 1");
  EXPECT_EQ(errorInBody("  %0, %1 = get_attr @w : f32[1], f32[1]").message,
            "get_attr has one result");
}

TEST(ParseError, Types) {
  EXPECT_EQ(errorInBody("  %0 = get_attr @w : f31[2]").message, "'f31[2]' is not a type");
  EXPECT_EQ(errorInBody("  %0 = get_attr @w : f32[-2]").message, "'f32[-2]' is not a type");
  EXPECT_EQ(errorInBody("  %0 = get_attr @w : f32[2][1,1]").message, "'f32[2][1,1]' is not a type");
  EXPECT_EQ(errorInBody("  %0 = get_attr @w : f32[2]@tpu").message, "'f32[2]@tpu' is not a type");
  EXPECT_EQ(errorInBody("  %0 = get_attr @w : f32[4294967296,4294967296]").message,
            "'f32[4294967296,4294967296]' is not a type");
  EXPECT_THAT(errorInBody("  %0 = get_attr @w : f32").message, HasSubstr("'f32[]' is a scalar"));
}

TEST(ParseError, Tokens) {
  EXPECT_EQ(errorInBody("  %0 = aten.mul(%x, 12ab) : f32[2]").message, "malformed number '12ab'");
  EXPECT_EQ(errorInBody("  %0 = aten.mul(%x, 1e999) : f32[2]").message,
            "the number '1e999' is out of range");
  EXPECT_EQ(errorInBody("  %0 = aten.mul(%x, 9223372036854775808) : f32[2]").message,
            "the number '9223372036854775808' is out of range");
  EXPECT_EQ(errorInBody("  %0 = aten.gelu(%x) {approximate=\"tanh} : f32[2]").message,
            "this string has no closing quote on its line");
  EXPECT_THAT(errorInBody("  %0 = aten.gelu(%x) {approximate=\"\\q\"} : f32[2]").message,
              HasSubstr("unknown escape"));
  EXPECT_EQ(errorInBody("  %0 = aten.mul(%x, !) : f32[2]").message, "unexpected character '!'");
  EXPECT_EQ(errorInBody("  %\"\" = aten.relu(%x) : f32[2]").message, "a name must not be empty");
  EXPECT_EQ(errorInBody("  % = aten.relu(%x) : f32[2]").message, "expected a name after '%'");
}

TEST(ParseError, Statements) {
  EXPECT_EQ(errorInBody("  %0 = aten.relu(%x) : f32[2] %1 = aten.relu(%x) : f32[2]").message,
            "expected the end of the line");
}

TEST(ParseError, SecondOutput) {
  Diagnostic error = onlyError("graph @f(%x: f32[2]) {\n  output %x\n  output %x\n}\n");
  EXPECT_EQ(error.message, "a graph has one output node");
  EXPECT_EQ(error.line, 3u);
}

TEST(ParseError, DeclaredOutputs) {
  EXPECT_EQ(onlyError("graph @f(%x: f32[2]) -> f32[3] {\n  output %x\n}").message,
            "the header says f32[3] for output 0, its type is f32[2]");
  EXPECT_EQ(onlyError("graph @f(%x: f32[2]) -> () {\n  output %x\n}").message,
            "the header says 0 outputs, the output node has 1");
  EXPECT_EQ(onlyError("graph @f(%x: f32[2]) -> (a: f32[2], f32[2]) {\n  output %x, %x\n}").message,
            "either every output has a key or none has");
}

TEST(ParseError, Modules) {
  EXPECT_EQ(onlyError("module @m {\n  param @w : f32[2]\n  buffer @w : f32[2]\n}").message,
            "there are two parameters named 'w'");
  EXPECT_EQ(onlyError("module @m {\n  attr a = 1\n  attr a = 2\n}").message,
            "there are two attributes named 'a'");
  EXPECT_EQ(onlyError("module @m {\n  module @s {\n  }\n  module @s {\n  }\n}").message,
            "there are two submodules named 's'");
  EXPECT_EQ(onlyError("graph @f() {\n  output\n}\ngraph @f() {\n  output\n}").message,
            "there are two graphs named 'f'");
  EXPECT_EQ(onlyError("module @m {\n  param @w : dynamic\n}").message,
            "a parameter's type is not dynamic");
  EXPECT_THAT(onlyError("module @m {\n  param @a.w : f32[2]\n}").message, HasSubstr("has no dots"));
  EXPECT_THAT(onlyError("module @m {\n  attr a = %x\n}").message, HasSubstr("is a constant"));
  EXPECT_EQ(onlyError("module @m {\n  param @w : f32[2]\n").message,
            "this module has no closing '}'");
  EXPECT_THAT(onlyError("module @m {\n}\nmodule @n {\n").message, HasSubstr("holds one module"));
}

TEST(ParseError, MissingBraceOfAGraph) {
  Diagnostic error = onlyError("graph @f() {\n  output\ngraph @g() {\n  output\n}\n");
  EXPECT_EQ(error.line, 3u);
  EXPECT_THAT(error.message, HasSubstr("is a '}' missing above?"));
}

TEST(ParseError, EmptyFile) {
  EXPECT_EQ(onlyError("").message, "the file holds no module and no graph");
  EXPECT_EQ(onlyError("; nothing\n\n").message, "the file holds no module and no graph");
}

TEST(ParseError, ABrokenHeaderHidesNothingOfItsBody) {
  std::string errors = parseErrors("module @m {\n"
                                   "  graph @f(%x: wrong[2], %y: f32[2]) {\n"
                                   "    %0 = aten.add(%x, %y) : f32[2]\n"
                                   "    %1 = aten.nothing(%0) : f32[2]\n"
                                   "    output %1\n"
                                   "  }\n"
                                   "  param @w : dynamic\n"
                                   "}\n");
  EXPECT_THAT(errors, HasSubstr("test.cgir:2:16: error: 'wrong[2]' is not a type"));
  EXPECT_THAT(errors, HasSubstr("test.cgir:4:10: error: no op 'aten.nothing'"));
  EXPECT_THAT(errors, HasSubstr("test.cgir:7:14: error: a parameter's type is not dynamic"));
  EXPECT_THAT(errors, Not(HasSubstr("no value")));
}

TEST(ParseError, DeepNestingIsRefusedNotFollowed) {
  std::string lists = "module @m {\n  attr a = " + std::string(1000000, '[');
  EXPECT_EQ(onlyError(lists).message, "lists are nested more than 64 deep");
  std::string modules;
  for (int i = 0; i < 100000; ++i)
    modules += "module @m {\n";
  EXPECT_EQ(onlyError(modules).message, "modules are nested more than 64 deep");
}

TEST(ParseError, NestingWithinTheLimitIsRead) {
  std::string open(60, '['), close(60, ']');
  auto module = parsed("module @m {\n  attr a = " + open + close + "\n}\n");
  EXPECT_EQ(argText(module->attributes().at(0).value), open + close);
}

TEST(ParseError, GivesUpAfterAHundred) {
  std::string text = "graph @f() {\n";
  for (int i = 0; i < 1000; ++i)
    text += "  nonsense\n";
  Diagnostics diagnostics;
  EXPECT_FALSE(parseModule(text, "test.cgir", diagnostics));
  EXPECT_EQ(diagnostics.errors().size(), 100u);
}

TEST(Diagnostics, RendersNodesWithTheirModelLine) {
  auto module = parsed("graph @f(%x: f32[2]) {\n"
                       "  %0 = aten.relu(%x) : f32[2] loc(\"/a/model.py\":12 \"visual.act\")\n"
                       "  output %0\n}");
  Diagnostics diagnostics;
  diagnostics.error(*std::next(module->findGraph("f")->begin()), "this op is refused");
  EXPECT_EQ(diagnostics.render(), "model.py:12: error: this op is refused\n"
                                  "  %0 = aten.relu(%x) : f32[2]\n"
                                  "  in module 'visual.act'\n");
  Status status = diagnostics.toStatus(Code::Unsupported);
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_EQ(status.message(), diagnostics.render());
  EXPECT_TRUE(Diagnostics().toStatus(Code::Unsupported).isOk());
}

} // namespace
} // namespace cgc::ir
