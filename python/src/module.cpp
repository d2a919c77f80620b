// The extension module cgc._runtime: the C API of libcgc_runtime for Python. The package cgc wraps
// it.
#include "communicator.h"
#include "raise.h"
#include "session.h"
#include "trainer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace cgc_python;

namespace {

// The garbage collector finds the cycle of a log that refers to its session.
int traverseSession(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self))
    Py_VISIT(nb::inst_ptr<Session>(self)->log());
  return 0;
}
int clearSession(PyObject *self) {
  if (nb::inst_ready(self))
    nb::inst_ptr<Session>(self)->clear();
  return 0;
}
PyType_Slot kSessionSlots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverseSession)},
                               {Py_tp_clear, reinterpret_cast<void *>(clearSession)},
                               {0, nullptr}};

} // namespace

NB_MODULE(_runtime, m) {
  m.doc() = "The C API of libcgc_runtime. Use the package cgc.";
  m.def("version", cgc_version);
  m.def("code_name", [](int code) { return cgc_code_name(cgc_code(code)); }, "code"_a);

  nb::class_<Plan>(m, "Plan")
      .def(nb::init<const char *>(), "path"_a)
      .def_prop_ro("entries", &Plan::entries)
      .def_prop_ro("states", &Plan::states)
      .def_prop_ro("needs_libtorch", &Plan::needsLibTorch);

  nb::class_<Tensor>(m, "Tensor")
      .def(nb::init<nb::handle, const char *, bool>(), "array"_a.none(), "what"_a, "writable"_a)
      .def(nb::init<uintptr_t, const char *, std::vector<int64_t>, bool>(), "address"_a, "dtype"_a,
           "sizes"_a, "on_gpu"_a)
      .def_prop_ro("shape", &Tensor::shape)
      .def_prop_ro("gpu", &Tensor::gpu);

  nb::class_<Session>(m, "Session", nb::type_slots(kSessionSlots))
      .def(nb::init<const Plan &, const nb::kwargs &>(), "plan"_a, "options"_a)
      .def("run", &Session::run, "entry"_a, "inputs"_a, "outputs"_a, "stream"_a)
      .def("prepare", &Session::prepare, "entry"_a, "batch"_a)
      .def("update", &Session::update, "plan"_a)
      .def("swap_weights", &Session::swapWeights, "plan"_a)
      .def("stats", &Session::stats)
      .def("memory", &Session::memory)
      .def("metrics", &Session::metrics, "name"_a)
      .def("healthy", &Session::healthy)
      .def("reset", &Session::reset)
      .def("close", &Session::close)
      .def_prop_ro("closed", &Session::closed);

  nb::class_<Communicator>(m, "Communicator")
      .def(nb::init<const nb::bytes &, const nb::kwargs &>(), "id"_a, "options"_a)
      .def_static("make_id", &Communicator::makeId, "nccl_path"_a)
      .def("abort", &Communicator::abort, "why"_a);

  nb::class_<Trainer>(m, "Trainer")
      .def(nb::init<const Plan &, const Communicator *, const nb::kwargs &>(), "plan"_a,
           "communicator"_a.none(), "options"_a)
      .def("step", &Trainer::step, "inputs"_a, "stream"_a)
      .def("accumulate", &Trainer::accumulate, "inputs"_a, "stream"_a)
      .def("update", &Trainer::update, "stream"_a)
      .def("poll", &Trainer::poll)
      .def("wait", &Trainer::wait)
      .def("evaluate", &Trainer::evaluate, "inputs"_a, "outputs"_a, "stream"_a)
      .def("set", &Trainer::set, "name"_a, "values"_a)
      .def("read", &Trainer::read, "name"_a, "to"_a)
      .def("write", &Trainer::write, "name"_a, "source"_a)
      .def("save", &Trainer::save, "folder"_a)
      .def("load", &Trainer::load, "folder"_a, "any_plan"_a)
      .def("load_model", &Trainer::loadModel, "path"_a)
      .def("reset", &Trainer::reset)
      .def("memory", &Trainer::memory)
      .def_prop_ro("step_number", &Trainer::stepNumber)
      .def_prop_ro("micro_batches", &Trainer::microBatches)
      .def_prop_ro("non_finite", &Trainer::nonFinite);
}
