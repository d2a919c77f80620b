// Graphviz: runs `dot -Tsvg` from one unnamed file to another.
#include "tools/cgc/draw/graphviz.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cgc::tool {

namespace {

using File = std::unique_ptr<std::FILE, decltype([](std::FILE *file) { std::fclose(file); })>;

Status drawingFailed(const std::string &why) {
  return Status(Code::Failed, fmt::format("cannot draw the graph: {}", why));
}

} // namespace

Result<std::string> drawSvg(const std::string &dotText) {
  // Unnamed files cannot deadlock, as pipes can, and need no cleanup.
  const File input(std::tmpfile()), output(std::tmpfile());
  if (!input || !output)
    return drawingFailed(fmt::format("no temporary file: {}", std::strerror(errno)));
  if (std::fwrite(dotText.data(), 1, dotText.size(), input.get()) != dotText.size() ||
      std::fflush(input.get()) != 0)
    return drawingFailed(std::strerror(errno));
  std::rewind(input.get());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(input.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(output.get()), STDOUT_FILENO);
  std::string program = "dot", format = "-Tsvg";
  char *const argv[] = {program.data(), format.data(), nullptr};
  pid_t child;
  const int error = posix_spawnp(&child, "dot", &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return drawingFailed(fmt::format("{}: 'dot'; install Graphviz (Debian: graphviz) or use --dot",
                                     std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return drawingFailed("Graphviz's dot failed; its message is above");

  std::rewind(output.get());
  std::string svg;
  char chunk[1 << 16];
  while (const size_t size = std::fread(chunk, 1, sizeof chunk, output.get()))
    svg.append(chunk, size);
  return svg;
}

} // namespace cgc::tool
