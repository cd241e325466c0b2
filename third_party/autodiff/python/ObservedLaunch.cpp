//===- ObservedLaunch.cpp - A launch function that notes what is written --===//
//
// Every launch of a process comes here, also those that are none of ours. So it
// passes arguments on as they lie on Python's stack, and what is not ordinary
// is left to Python (plain_launches.py).
//
//===----------------------------------------------------------------------===//

#include "ObservedLaunch.h"

#include <structmember.h>

namespace py = pybind11;

namespace {

/// The arguments of a launch function before those of the kernel: the first
/// three are the grid.
constexpr Py_ssize_t extents = 3;

struct ObservedLaunch {
  PyObject_HEAD;
  vectorcallfunc call;
  /// Triton's launch function, and how many arguments it takes here.
  PyObject *run;
  Py_ssize_t count;
  /// A tuple of (place among the arguments, what is noted of a write to it).
  PyObject *written;
  /// The dictionary of the last writes, and how many it may hold.
  PyObject *writes;
  Py_ssize_t most;
  /// Increases the versions of tensors.
  PyObject *increase;
  /// Has the `watch` of the thread's stub, None if there is none; and what then
  /// looks at a launch, and what notes the writes of any launch from the one
  /// with a number on.
  PyObject *thread;
  PyObject *look;
  PyObject *note;
};

struct Names {
  PyObject *watch = PyUnicode_InternFromString("watch");
  PyObject *dataPtr = PyUnicode_InternFromString("data_ptr");
  PyObject *version = PyUnicode_InternFromString("_version");

  static const Names &get() {
    static const Names names;
    return names;
  }
};

PyObject *tupleOf(PyObject *const *arguments, Py_ssize_t count) {
  PyObject *all = PyTuple_New(count);
  for (Py_ssize_t i = 0; all && i < count; ++i)
    PyTuple_SET_ITEM(all, i, Py_NewRef(arguments[i]));
  return all;
}

/// Whether a stub's rules let the launch happen; there is an error otherwise.
bool isAllowed(ObservedLaunch *self, PyObject *const *arguments) {
  PyObject *watch = PyObject_GetAttr(self->thread, Names::get().watch);
  if (!watch)
    return false;
  bool isWatched = watch != Py_None;
  Py_DECREF(watch);
  if (!isWatched)
    return true;
  PyObject *all = tupleOf(arguments, self->count);
  PyObject *seen = all ? PyObject_CallOneArg(self->look, all) : nullptr;
  Py_XDECREF(seen);
  Py_XDECREF(all);
  return seen;
}

bool isZero(PyObject *extent) {
  return PyLong_CheckExact(extent) && PyLong_AsLong(extent) == 0;
}

/// Notes the last write to a tensor: writes[address] = (what, version).
bool noteVersion(ObservedLaunch *self, PyObject *tensor, PyObject *what) {
  const Names &names = Names::get();
  PyObject *address = PyObject_CallMethodNoArgs(tensor, names.dataPtr);
  PyObject *version =
      address ? PyObject_GetAttr(tensor, names.version) : nullptr;
  PyObject *noted = version ? PyTuple_Pack(2, what, version) : nullptr;
  bool isNoted = noted && PyDict_SetItem(self->writes, address, noted) == 0;
  Py_XDECREF(noted);
  Py_XDECREF(version);
  Py_XDECREF(address);
  return isNoted;
}

/// Increases the version of a tensor, and notes the write; returns false with
/// an error if it has no version.
bool noteWrite(ObservedLaunch *self, PyObject *const *arguments,
               PyObject *pair) {
  Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 0));
  PyObject *tensors = PyTuple_Pack(1, arguments[place]);
  PyObject *increased =
      tensors ? PyObject_CallOneArg(self->increase, tensors) : nullptr;
  Py_XDECREF(tensors);
  Py_XDECREF(increased);
  return increased &&
         noteVersion(self, arguments[place], PyTuple_GET_ITEM(pair, 1));
}

/// Notes all writes of a launch. From the first one on that is not ordinary,
/// Python does.
bool noteWrites(ObservedLaunch *self, PyObject *const *arguments) {
  Py_ssize_t count = PyTuple_GET_SIZE(self->written), done = 0;
  while (done < count &&
         noteWrite(self, arguments, PyTuple_GET_ITEM(self->written, done)))
    ++done;
  if (PyDict_GET_SIZE(self->writes) > self->most)
    PyDict_Clear(self->writes);
  if (count && done == count)
    return true;
  PyErr_Clear();
  PyObject *all = tupleOf(arguments, self->count);
  PyObject *first = all ? PyLong_FromSsize_t(done) : nullptr;
  PyObject *noted =
      first ? PyObject_CallFunctionObjArgs(self->note, all, first, nullptr)
            : nullptr;
  Py_XDECREF(noted);
  Py_XDECREF(first);
  Py_XDECREF(all);
  return noted;
}

PyObject *call(PyObject *object, PyObject *const *arguments, size_t flags,
               PyObject *names) {
  auto *self = reinterpret_cast<ObservedLaunch *>(object);
  if (names || PyVectorcall_NARGS(flags) != self->count)
    return PyObject_Vectorcall(self->run, arguments, flags, names);
  if (!isAllowed(self, arguments))
    return nullptr;
  PyObject *result =
      PyObject_Vectorcall(self->run, arguments, self->count, nullptr);
  if (!result)
    return nullptr;
  for (Py_ssize_t i = 0; i < extents; ++i)
    if (isZero(arguments[i]))
      return result;
  if (!noteWrites(self, arguments))
    Py_CLEAR(result);
  return result;
}

int traverse(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<ObservedLaunch *>(object);
  Py_VISIT(Py_TYPE(object));
  for (PyObject *held : {self->run, self->written, self->writes, self->increase,
                         self->thread, self->look, self->note})
    Py_VISIT(held);
  return 0;
}

int clear(PyObject *object) {
  auto *self = reinterpret_cast<ObservedLaunch *>(object);
  for (PyObject **held :
       {&self->run, &self->written, &self->writes, &self->increase,
        &self->thread, &self->look, &self->note})
    Py_CLEAR(*held);
  return 0;
}

void release(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET,
                          offsetof(ObservedLaunch, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void *>(release)},
    {Py_tp_members, members},
    {0, nullptr}};

PyType_Spec spec = {
    "triton_autodiff._native.ObservedLaunch", sizeof(ObservedLaunch), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    slots};

py::object observedLaunch(py::object run, Py_ssize_t count, py::tuple written,
                          py::dict writes, Py_ssize_t most, py::object increase,
                          py::object thread, py::object look, py::object note) {
  static PyObject *const type = PyType_FromSpec(&spec);
  if (!type)
    throw py::error_already_set();
  auto *typed = reinterpret_cast<PyTypeObject *>(type);
  PyObject *object = typed->tp_alloc(typed, 0);
  if (!object)
    throw py::error_already_set();
  auto *made = reinterpret_cast<ObservedLaunch *>(object);
  made->call = call;
  made->count = count;
  made->most = most;
  made->run = run.release().ptr();
  made->written = written.release().ptr();
  made->writes = writes.release().ptr();
  made->increase = increase.release().ptr();
  made->thread = thread.release().ptr();
  made->look = look.release().ptr();
  made->note = note.release().ptr();
  return py::reinterpret_steal<py::object>(object);
}

} // namespace

void addObservedLaunch(py::module_ &m) {
  m.def("observed_launch", observedLaunch, py::arg("run"), py::arg("count"),
        py::arg("written"), py::arg("writes"), py::arg("most"),
        py::arg("increase"), py::arg("thread"), py::arg("look"),
        py::arg("note"),
        "A function that launches as `run` does, and notes what is written, "
        "where a launch has `count` arguments; see plain_launches.py.");
}
