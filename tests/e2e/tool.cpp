// Tool: implements child processes, models that are made once, and scratch folders.
#include "tool.h"
#include "tests/make_once.h"
#include "tests/paths.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cgc::e2e {

namespace {

const fs::path kBuild = test::buildDir();
const fs::path kTool = kBuild / "bin" / "cgc";

/// Sets up files, folder and limits in the child, as `how` asks for.
void prepareChild(const fs::path &in, const std::string &inputFile, const std::string &outFile,
                  const std::string &errFile, const How &how) {
  const auto redirect = [](const std::string &path, int flags, int to) {
    const int fd = open(path.c_str(), flags, 0644);
    if (fd < 0 || dup2(fd, to) < 0)
      _exit(126);
    close(fd);
  };
  redirect(inputFile, O_RDONLY, STDIN_FILENO);
  redirect(outFile, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(errFile, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  if (chdir(in.c_str()) != 0)
    _exit(126);
  if (!how.killOnPhase.empty()) // Shows even short phases.
    setenv("CGC_PROGRESS_AFTER", "0", 1);
  signal(how.signal, SIG_DFL); // A background shell makes its children ignore SIGINT.
  if (how.fileSizeLimit >= 0) {
    const rlimit limit{static_cast<rlim_t>(how.fileSizeLimit),
                       static_cast<rlim_t>(how.fileSizeLimit)};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
}

bool holdsTemporary(const fs::path &folder) {
  return std::ranges::any_of(fs::directory_iterator(folder), [](const fs::directory_entry &entry) {
    return entry.path().filename().string().find(".tmp.") != std::string::npos;
  });
}

/// Sends the signal to `child` when `how` says so. Returns the wait status once the child has
/// ended. The child stands still while its folder is looked at: it cannot finish the file before
/// the signal is there.
int waitFor(pid_t child, const fs::path &in, const std::string &errFile, const How &how,
            rusage &usage) {
  bool sent = how.killOnPhase.empty();
  int status = 0;
  while (wait4(child, &status, sent ? 0 : WNOHANG, &usage) == 0) {
    if (readFile(errFile).find(how.killOnPhase) == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    kill(child, SIGSTOP);
    if (wait4(child, &status, WUNTRACED, &usage) != child || !WIFSTOPPED(status))
      break; // It has ended.
    sent = !how.killOnTemporary || holdsTemporary(in);
    if (sent)
      kill(child, how.signal);
    kill(child, SIGCONT);
    if (!sent)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

/// The folder of that name which the script in tests/e2e fills.
fs::path madeBy(const std::string &script, const std::string &name,
                const std::vector<std::string> &more = {}) {
  const fs::path folder = kBuild / "e2e" / name;
  test::makeOnce(folder / "done", "tests/e2e/" + script, test::quoted(folder), more);
  return folder;
}

/// The real model that the script exports to the folder of that name.
fs::path exportedBy(const std::string &script, const std::string &name) {
  const fs::path model = kBuild / "e2e" / name / "vitb32.pt";
  test::makeOnce(model.parent_path() / "done", script,
                 "--model ViT-B-32 --out " + test::quoted(model));
  return model;
}

} // namespace

Outcome runProgram(const std::vector<std::string> &command, const fs::path &in, const How &how) {
  // Outside of `in`, so that tests can list the files that the program left there.
  std::string pattern = fs::temp_directory_path() / "cgc-e2e-XXXXXX";
  const fs::path scratch = mkdtemp(pattern.data());
  const std::string inputFile = scratch / "in", errFile = scratch / "err";
  const std::string outFile =
      how.standardOutput.empty() ? (scratch / "out").string() : how.standardOutput;
  writeFile(inputFile, how.input);
  std::vector<char *> argv;
  for (const std::string &argument : command)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) {
    prepareChild(in, inputFile, outFile, errFile, how);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  Outcome outcome;
  rusage usage{};
  const int status = waitFor(child, in, errFile, how, usage);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.peakKilobytes = usage.ru_maxrss;
  for (const timeval &time : {usage.ru_utime, usage.ru_stime})
    outcome.cpuSeconds +=
        static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  if (how.standardOutput.empty())
    outcome.out = readFile(outFile);
  outcome.err = readFile(errFile);
  fs::remove_all(scratch);
  return outcome;
}

const fs::path &models() {
  static const fs::path folder = madeBy("make_models.py", "models");
  return folder;
}

const fs::path &familyModels() {
  static const fs::path folder = madeBy("make_families.py", "families");
  return folder;
}

const fs::path &scriptedModels() {
  static const fs::path folder = madeBy("make_scripted.py", "scripted");
  return folder;
}

const fs::path &exportedModels() {
  static const fs::path folder = madeBy("make_exported.py", "exported");
  return folder;
}

const fs::path &trainingModels() {
  static const fs::path folder =
      madeBy("make_training_models.py", "training",
             {"tests/e2e/bad_steps.py", "tests/e2e/batch_norm_step.py", "examples/training/mlp.py",
              "examples/training/shapes.py", "examples/training/shapes.json"});
  return folder;
}

const fs::path &realModel() {
  static const fs::path model = exportedBy("scripts/export_openclip.py", "real");
  return model;
}

const fs::path &realTrainingStep() {
  static const fs::path model = exportedBy("scripts/export_training_step.py", "real_step");
  return model;
}

fs::path outputDir() {
  const char *variant = std::getenv("CGC_TEST_VARIANT");
  return variant ? kBuild / "e2e" / variant : kBuild / "e2e";
}

bool hasGpu() {
  return fs::exists("/dev/nvidiactl");
}

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void writeFile(const fs::path &path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void writeNpy(const fs::path &path, std::string_view dtype, const std::vector<int64_t> &shape,
              std::string_view bytes) {
  std::string header = "{'descr': '" + std::string(dtype) + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : shape)
    header += std::to_string(size) + ", ";
  header += "), }\n";
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  writeFile(path, text + header + std::string(bytes));
}

std::string npyHeader(const fs::path &path) {
  const std::string bytes = readFile(path);
  if (bytes.size() < 10 || !bytes.starts_with("\x93NUMPY\x01"))
    return "";
  return bytes.substr(10, static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]));
}

std::vector<float> npyFloats(const fs::path &path) {
  const std::string header = npyHeader(path), bytes = readFile(path);
  const std::string data = bytes.substr(std::min(bytes.size(), 10 + header.size()));
  if (header.find("'<f2'") != std::string::npos) {
    std::vector<_Float16> halves(data.size() / sizeof(_Float16));
    std::memcpy(halves.data(), data.data(), halves.size() * sizeof(_Float16));
    return {halves.begin(), halves.end()};
  }
  EXPECT_NE(header.find("'<f4'"), std::string::npos) << header;
  std::vector<float> values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(float));
  return values;
}

void ToolTest::SetUp() {
  const auto *info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  std::ranges::replace(name, '/', '_');
  folder = outputDir() / "scratch" / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
}

Outcome ToolTest::cgc(std::vector<std::string> arguments, const How &how) {
  arguments.insert(arguments.begin(), kTool);
  return runProgram(arguments, folder, how);
}

std::vector<std::string> ToolTest::files() const {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> ToolTest::compileTiny(const fs::path &model, const std::string &output,
                                               std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "compile",        model,      "-o", output, "--input", "image=f32[1,3,32,32]", "--input",
      "text=i64[1,16]", "--target", "cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void ToolTest::makePlan(std::vector<std::string> more) {
  const Outcome outcome =
      cgc(compileTiny(models() / "tiny_fp32.pt", "plan.cgplan", std::move(more)));
  // The exception ends the test, which cannot go on without a plan.
  if (outcome.status != 0)
    throw std::runtime_error("no plan: " + outcome.err);
}

void expectError(const Outcome &outcome, int status, const std::vector<std::string> &texts) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const std::string &text : texts)
    EXPECT_NE(outcome.err.find(text), std::string::npos) << "no '" << text << "' in:\n"
                                                         << outcome.err;
}

nlohmann::json parseJson(const Outcome &outcome, const std::string &kind) {
  // The exception ends the test: there is no result to check.
  auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  if (!json.is_object() || json.value("version", 0) != 1 || json.value("kind", "") != kind)
    throw std::runtime_error("no JSON of kind " + kind + ": " + outcome.out + outcome.err);
  return json;
}

} // namespace cgc::e2e
