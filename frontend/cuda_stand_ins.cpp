// CUDA stubs: schemas and classes without implementations.
#include "frontend/cuda_stand_ins.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/custom_class.h>

namespace cgc::frontend {
namespace {

[[noreturn]] void notRunHere() {
  TORCH_CHECK(false, "not run here");
}

void declare(std::initializer_list<const char *> schemas) {
  for (const char *schema : schemas) {
    const c10::FunctionSchema parsed = torch::jit::parseSchema(schema);
    if (!torch::jit::findOperatorFor(parsed.operator_name()))
      torch::jit::registerOperator(torch::jit::Operator(
          schema, [](torch::jit::Stack &) { notRunHere(); }, c10::AliasAnalysisKind::CONSERVATIVE));
  }
}

struct Stream : torch::CustomClassHolder {};
struct Event : torch::CustomClassHolder {};
using StreamPtr = c10::intrusive_ptr<Stream>;
using EventPtr = c10::intrusive_ptr<Event>;

void declareClasses() {
  // Both names must be known before the methods' schemas use them.
  torch::class_<Stream> stream("cuda", "Stream");
  torch::class_<Event> event("cuda", "Event");
  stream
      .def(torch::init([](std::optional<c10::Device>, int64_t) -> StreamPtr { notRunHere(); }), "",
           {torch::arg("device") = std::nullopt, torch::arg("priority") = 0})
      .def("query", [](const StreamPtr &) -> bool { notRunHere(); })
      .def("record_event", [](const StreamPtr &, EventPtr) -> EventPtr { notRunHere(); })
      .def("synchronize", [](const StreamPtr &) { notRunHere(); })
      .def("wait_event", [](const StreamPtr &, EventPtr) { notRunHere(); })
      .def("wait_stream", [](const StreamPtr &, StreamPtr) { notRunHere(); })
      .def("device_index", [](const StreamPtr &) -> int64_t { notRunHere(); })
      .def("device", [](const StreamPtr &) -> c10::Device { notRunHere(); })
      .def("id", [](const StreamPtr &) -> int64_t { notRunHere(); });
  event
      .def(torch::init([](bool, bool, bool) -> EventPtr { notRunHere(); }), "",
           {torch::arg("enable_timing") = false, torch::arg("blocking") = false,
            torch::arg("interprocess") = false})
      .def("elapsed_time", [](const EventPtr &, EventPtr) -> double { notRunHere(); })
      .def("query", [](const EventPtr &) -> bool { notRunHere(); })
      .def("record", [](const EventPtr &, StreamPtr) { notRunHere(); })
      .def("synchronize", [](const EventPtr &) { notRunHere(); })
      .def("wait", [](const EventPtr &, StreamPtr) { notRunHere(); });
}

} // namespace

void registerCudaOpStubs() {
  static const bool declared = [] {
    declare({"cuda::synchronize() -> ()", "cuda::synchronize.device(Device? device) -> ()",
             "cuda::synchronize.int(int? val) -> ()", "cuda::_current_device() -> int",
             "cuda::_set_device(int val) -> ()", "cuda::_exchange_device(int index) -> int",
             "cuda::_maybe_exchange_device(int index) -> int",
             "cuda::device_index(Device device) -> int", "cuda::device_count() -> int"});
    return true;
  }();
  (void)declared;
}

void registerCudaClassStubs() {
  static const bool declared = [] {
    declareClasses();
    const std::string stream = "__torch__.torch.classes.cuda.Stream";
    declare({("cuda::current_stream.device(Device? device) -> " + stream).c_str(),
             ("cuda::current_stream.int(int? val) -> " + stream).c_str(),
             ("cuda::default_stream.device(Device? device) -> " + stream).c_str(),
             ("cuda::default_stream.int(int? val) -> " + stream).c_str(),
             ("cuda::set_stream(" + stream + " stream) -> ()").c_str()});
    return true;
  }();
  (void)declared;
}

} // namespace cgc::frontend
