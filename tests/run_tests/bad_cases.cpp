// A gtest program whose cases crash, hang, exit and fail, for run_tests_test.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace {

TEST(Misbehaving, Passes) {}
TEST(Misbehaving, PassesToo) {
  printf("text without an end of line"); // In front of gtest's own line.
}
TEST(Misbehaving, Fails) {
  EXPECT_EQ(1 + 1, 3) << "the message of a failed case";
}
TEST(Misbehaving, Skips) {
  GTEST_SKIP() << "the reason of a skip";
}
TEST(Misbehaving, Crashes) {
  fprintf(stderr, "the last words of a crash\n");
  abort();
}
TEST(Misbehaving, Exits) {
  exit(0);
}
TEST(Misbehaving, DISABLED_DoesNotRun) {
  abort();
}
TEST(Misbehaving, Hangs) {
  std::this_thread::sleep_for(std::chrono::hours(1));
}

class Parameters : public testing::TestWithParam<int> {};
TEST_P(Parameters, Pass) {}
INSTANTIATE_TEST_SUITE_P(All, Parameters, testing::Range(0, 20));

/// Each fails at the exit of the process, as a leak does, and only if its case has run.
class ExitStatus : public testing::Test {};
TEST_F(ExitStatus, IsBad) {
  atexit([] { _Exit(23); });
}
class ExitStatusOne : public testing::Test {};
TEST_F(ExitStatusOne, IsThatOfAFailedCase) {
  atexit([] { _Exit(1); });
}

/// Ends the process between two cases.
class AfterTheSuite : public testing::Test {
protected:
  static void TearDownTestSuite() { abort(); }
};
TEST_F(AfterTheSuite, TheProcessEnds) {}

/// Ends the process before its first case.
class BeforeTheSuite : public testing::Test {
protected:
  static void SetUpTestSuite() { abort(); }
};
TEST_F(BeforeTheSuite, TheProcessEnds) {}

class HangsAtExit : public testing::Test {};
TEST_F(HangsAtExit, TheProcess) {
  atexit([] { std::this_thread::sleep_for(std::chrono::hours(1)); });
}

class Sanitized : public testing::Test {};
TEST_F(Sanitized, GoesOnAfterARace) {
  fprintf(stderr, "WARNING: ThreadSanitizer: data race (pid=1)\n");
}
TEST_F(Sanitized, GoesOnAfterUndefinedBehavior) {
  fprintf(stderr, "ir/a.cpp:12:3: runtime error: signed integer overflow\n");
}
TEST_F(Sanitized, PrintsTheNameOfAnotherCase) {
  printf("[ RUN      ] Another.Case\n");
}

} // namespace
