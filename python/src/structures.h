// Structures of the C API: options from keyword arguments, and reports as dicts.
#pragma once

#include <cgc.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace cgc_python {

/// Reads keyword arguments. A member that is not given keeps its default.
class Options final {
public:
  explicit Options(const nanobind::kwargs &given) : given_(given) {}

  template <class T> void take(const char *name, T &member) {
    if (!given_.contains(name))
      return;
    ++taken_;
    if (!nanobind::try_cast(given_[name], member))
      throw nanobind::type_error(
          ("the option '" + std::string(name) + "' has the wrong type").c_str());
  }
  void take(const char *name, cgc_executor &member) {
    int number = member;
    take(name, number);
    member = cgc_executor(number);
  }
  /// The text lives as long as the reader.
  void take(const char *name, const char *&member) {
    std::string &text = texts_.emplace_back();
    take(name, text);
    member = text.c_str();
  }
  void takeAll(const char *name, std::vector<const char *> &member) {
    std::vector<std::string> all;
    take(name, all);
    for (std::string &text : all)
      member.push_back(texts_.emplace_back(std::move(text)).c_str());
  }
  /// TypeError if an option is given that nothing took.
  void finish() const {
    if (taken_ != given_.size())
      throw nanobind::type_error("an option is unknown");
  }

private:
  const nanobind::kwargs &given_;
  size_t taken_ = 0;
  std::deque<std::string> texts_; ///< Whose elements stay where they are.
};

/// Reads the options that sessions and trainers share. `opLibraries` keeps what `options` points
/// to.
template <class T>
void takeShared(Options &named, T &options, std::vector<const char *> &opLibraries) {
  named.take("executor", options.executor);
  named.take("threads", options.threads);
  named.take("memory_limit", options.memory_limit);
  named.take("aten_path", options.aten_path);
  named.take("cublaslt_path", options.cublaslt_path);
  named.take("reference_path", options.reference_path);
  named.takeAll("op_libraries", opLibraries);
  options.op_libraries = opLibraries.data();
  options.op_library_count = opLibraries.size();
}

/// The members of the report by name.
inline nanobind::dict named(const cgc_memory_report &report) {
  nanobind::dict named;
  named["weights"] = report.weights;
  named["arenas"] = report.arenas;
  named["io"] = report.io;
  named["graphs"] = report.graphs;
  named["workspace"] = report.workspace;
  named["peak"] = report.peak;
  named["states"] = report.states;
  return named;
}

} // namespace cgc_python
