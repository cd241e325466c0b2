//===- LaunchKey.cpp - What tells launches of one kernel apart ------------===//
//
// A key is bytes. It holds more than Triton specializes for, and all that the
// facts of a plan depend on (checking/facts.py), of arguments that are plain:
// numbers, strings, and tensors with memory of their own. Other launches have
// no key.
//
// Each launch comes here, so this is written against Python's C interface, and
// tensors are read through PyTorch's table of DLPack functions, which takes a
// tenth of the time that their methods take.
//
//===----------------------------------------------------------------------===//

// Sizes in formats are Py_ssize_t.
#define PY_SSIZE_T_CLEAN

#include "LaunchKey.h"

#include <memory>
#include <string>
#include <vector>

namespace py = pybind11;

namespace {

// What DLPack 1.3 says of a tensor, and the beginning of its table.
struct DLTensor {
  void *data;
  int32_t deviceType;
  int32_t deviceId;
  int32_t rank;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  const int64_t *shape;
  const int64_t *strides;
  uint64_t offset;
};
struct DLPackTable {
  uint32_t major;
  uint32_t minor;
  void *previous;
  void *allocate;
  void *managedFromObject;
  void *managedToObject;
  int (*fromObject)(void *, DLTensor *);
};
enum DeviceType : int32_t { Cpu = 1, Cuda = 2 };
constexpr uint8_t complexCode = 5;

/// What decides how a parameter's values are told apart.
enum Flag : unsigned {
  /// It is a constexpr, or the plan depends on its value.
  Exact = 1,
  /// The kernel writes to it.
  Written = 2,
  /// The plan depends on the storage around it.
  Spanned = 4,
};

struct Parameter {
  py::object name;
  /// Null if it has none.
  py::object standard;
  unsigned flags;
};

/// What `launch_signature` returns, in a capsule.
struct Signature {
  std::vector<Parameter> parameters;
  /// How many of them may be given by position.
  Py_ssize_t positions = 0;
  /// The types of tensors, and of constants that are told apart by names.
  std::vector<py::object> tensorTypes;
  py::object constantType;
  const DLPackTable *table = nullptr;
};
constexpr const char *capsuleName = "triton_autodiff.launch_signature";

/// The names of methods, made once.
struct Names {
  PyObject *name = PyUnicode_InternFromString("name");
  PyObject *dtype = PyUnicode_InternFromString("dtype");
  PyObject *requiresGrad = PyUnicode_InternFromString("requires_grad");
  PyObject *isNeg = PyUnicode_InternFromString("is_neg");
  PyObject *isView = PyUnicode_InternFromString("_is_view");
  PyObject *storageOffset = PyUnicode_InternFromString("storage_offset");
  PyObject *untypedStorage = PyUnicode_InternFromString("untyped_storage");
  PyObject *nbytes = PyUnicode_InternFromString("nbytes");

  static const Names &get() {
    static const Names names;
    return names;
  }
};

/// Whether `value` is an object, which is released; sets whether it is True.
bool isTrue(PyObject *value, bool &result) {
  if (!value)
    return false;
  result = value == Py_True;
  Py_DECREF(value);
  return true;
}

/// Returns PyTorch's functions of a capsule; null, with an error, if it has
/// others.
const DLPackTable *tableOf(PyObject *capsule) {
  auto *table = static_cast<const DLPackTable *>(
      PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (table && table->major != 1) {
    PyErr_SetString(PyExc_ValueError, "a table of another DLPack than 1");
    return nullptr;
  }
  return table;
}

/// Reads a tensor, and whether it is negated; there may be an error if false.
bool look(const DLPackTable &table, PyObject *tensor, DLTensor &seen,
          bool &isNeg) {
  return table.fromObject(tensor, &seen) == 0 &&
         isTrue(PyObject_CallMethodNoArgs(tensor, Names::get().isNeg), isNeg);
}

uintptr_t addressOf(const DLTensor &seen) {
  return reinterpret_cast<uintptr_t>(seen.data) + seen.offset;
}

void addAxes(std::string &bytes, const DLTensor &seen) {
  size_t size = seen.rank * sizeof(int64_t);
  bytes.append(reinterpret_cast<const char *>(seen.shape), size);
  bytes.append(reinterpret_cast<const char *>(seen.strides), size);
}

/// Appends the element's type.
void addType(std::string &bytes, const DLTensor &seen) {
  int64_t type = seen.code | seen.bits << 8 | seen.lanes << 16;
  bytes.append(reinterpret_cast<const char *>(&type), sizeof(type));
}

/// Memory from the first to behind the last element of a tensor.
struct Range {
  uintptr_t begin;
  uintptr_t end;
  bool isWritten;

  bool meets(const Range &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// The key of one launch. Each function returns false where there is none;
/// there may be a Python error then.
class Key {
public:
  explicit Key(const Signature &signature) : signature(signature) {
    bytes.reserve(64 + 80 * signature.parameters.size());
  }

  bool add(PyObject *value, unsigned flags) {
    if (isTensor(value))
      return addTensor(value, flags);
    if (PyLong_CheckExact(value))
      return addInteger(value, flags & Exact);
    if (PyFloat_CheckExact(value)) {
      append('f');
      if (flags & Exact)
        append(PyFloat_AS_DOUBLE(value));
      return true;
    }
    if (value == Py_None || PyBool_Check(value)) {
      append(value == Py_None ? 'n' : value == Py_True ? 'y' : 'z');
      return true;
    }
    if (PyUnicode_CheckExact(value))
      return addText(value);
    if (!(flags & Exact) || Py_TYPE(value) != constantType())
      return false;
    return addName(value);
  }

  /// A constant is what its name says.
  bool addName(PyObject *value) {
    PyObject *name = PyObject_GetAttr(value, Names::get().name);
    append('c');
    bool isAdded = name && PyUnicode_CheckExact(name) && addText(name);
    Py_XDECREF(name);
    return isAdded;
  }

  bool addText(PyObject *value) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text)
      return false;
    append('s');
    append(size);
    bytes.append(text, size);
    return true;
  }

  /// Whether no tensor that is written has memory in common with another one.
  bool isApart() const {
    for (size_t a = 0; a < ranges.size(); ++a)
      for (size_t b = 0; b < a; ++b)
        if ((ranges[a].isWritten || ranges[b].isWritten) &&
            ranges[a].meets(ranges[b]))
          return false;
    return true;
  }

  const std::string &get() const { return bytes; }
  bool wants() const { return requiresGrad; }

private:
  template <typename T> void append(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }

  bool isTensor(PyObject *value) const {
    for (const py::object &type : signature.tensorTypes)
      if (Py_TYPE(value) == reinterpret_cast<PyTypeObject *>(type.ptr()))
        return true;
    return false;
  }

  PyTypeObject *constantType() const {
    return reinterpret_cast<PyTypeObject *>(signature.constantType.ptr());
  }

  /// Triton tells integers apart by their type, and as one or a multiple of 16.
  bool addInteger(PyObject *value, bool isExact) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
      return false;
    if (isExact) {
      append('i');
      append(number);
      return true;
    }
    bool isNarrow = number == static_cast<int32_t>(number);
    append('k');
    append(static_cast<uint8_t>((number == 1) | (number % 16 == 0) << 1 |
                                isNarrow << 2));
    return true;
  }

  bool addNumberOf(PyObject *object, PyObject *method, int64_t &number) {
    PyObject *found = PyObject_CallMethodNoArgs(object, method);
    if (!found)
      return false;
    number = PyLong_AsLongLong(found);
    Py_DECREF(found);
    append(number);
    return !PyErr_Occurred();
  }

  /// The bytes of the storage around a tensor, of which `own` are the tensor's.
  bool addStorage(PyObject *tensor, int64_t own, bool isWritten) {
    const Names &names = Names::get();
    int64_t offset, size;
    if (!addNumberOf(tensor, names.storageOffset, offset))
      return false;
    PyObject *storage = PyObject_CallMethodNoArgs(tensor, names.untypedStorage);
    if (!storage)
      return false;
    bool found = addNumberOf(storage, names.nbytes, size);
    Py_DECREF(storage);
    // What is beside a part of a tensor may be another argument.
    return found && !(isWritten && size > own);
  }

  /// For DLPack, integers of one to seven bits are of eight. PyTorch's types
  /// live forever.
  bool addSmallType(PyObject *tensor, const DLTensor &seen) {
    if (seen.bits != 8 || seen.code > 1)
      return true;
    PyObject *type = PyObject_GetAttr(tensor, Names::get().dtype);
    append(type);
    Py_XDECREF(type);
    return type;
  }

  bool addTensor(PyObject *tensor, unsigned flags) {
    const Names &names = Names::get();
    DLTensor seen;
    bool isNeg, isWanted, isView = false;
    if (!look(*signature.table, tensor, seen, isNeg))
      return false;
    if (!seen.data || seen.code == complexCode ||
        (seen.deviceType != Cpu && seen.deviceType != Cuda))
      return false;
    if (deviceType &&
        (seen.deviceType != deviceType || seen.deviceId != deviceId))
      return false;
    deviceType = seen.deviceType;
    deviceId = seen.deviceId;
    if (!isTrue(PyObject_GetAttr(tensor, names.requiresGrad), isWanted))
      return false;
    bool isWritten = flags & Written;
    if (isWritten &&
        !isTrue(PyObject_CallMethodNoArgs(tensor, names.isView), isView))
      return false;
    // Histories of what is written are looked at anew each time.
    if (isNeg || isView || (isWritten && isWanted))
      return false;
    requiresGrad |= isWanted;
    uintptr_t begin = addressOf(seen);
    append('t');
    append(static_cast<uint8_t>(begin % 16 << 1 | isWanted));
    append(seen.deviceType);
    append(seen.deviceId);
    if (!addSmallType(tensor, seen))
      return false;
    addType(bytes, seen);
    append(seen.rank);
    addAxes(bytes, seen);
    int64_t last = 0;
    for (int32_t axis = 0; axis < seen.rank; ++axis)
      last += (seen.shape[axis] - 1) * seen.strides[axis];
    int64_t size = (last + 1) * (int64_t(seen.bits) * seen.lanes + 7) / 8;
    ranges.push_back({begin, begin + size, isWritten});
    return !(flags & (Written | Spanned)) ||
           addStorage(tensor, size, isWritten);
  }

  const Signature &signature;
  std::string bytes;
  std::vector<Range> ranges;
  int32_t deviceType = 0;
  int32_t deviceId = 0;
  bool requiresGrad = false;
};

/// Return the values of parameters, a list; null if some are missing. `used`
/// is how many of the named arguments were taken.
PyObject *bind(const Signature &signature, PyObject *args, PyObject *kwargs,
               Py_ssize_t &used) {
  Py_ssize_t given = PyTuple_GET_SIZE(args),
             count = signature.parameters.size();
  if (given > signature.positions)
    return nullptr;
  PyObject *values = PyList_New(count);
  if (!values)
    return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Parameter &parameter = signature.parameters[i];
    PyObject *value = nullptr;
    if (i < given) {
      value = PyTuple_GET_ITEM(args, i);
    } else if ((value =
                    PyDict_GetItemWithError(kwargs, parameter.name.ptr()))) {
      ++used;
    } else if (PyErr_Occurred() || !(value = parameter.standard.ptr())) {
      Py_DECREF(values);
      return nullptr;
    }
    PyList_SET_ITEM(values, i, Py_NewRef(value));
  }
  return values;
}

/// Adds named arguments that are no parameters: Triton's options. A parameter
/// that is given twice, by its position, too, is an error.
bool addOptions(Key &key, const Signature &signature, Py_ssize_t given,
                PyObject *kwargs) {
  Py_ssize_t place = 0;
  PyObject *name, *value;
  while (PyDict_Next(kwargs, &place, &name, &value)) {
    Py_ssize_t found = 0, parameters = signature.parameters.size();
    while (found < parameters && signature.parameters[found].name.ptr() != name)
      ++found;
    if (found < given)
      return false;
    if (found == parameters && !(key.addText(name) && key.add(value, Exact)))
      return false;
  }
  return true;
}

/// Appends address, rank and sign, shape, and strides of a tensor.
bool addLayout(std::string &bytes, const DLPackTable &table, PyObject *tensor) {
  DLTensor seen;
  bool isNeg;
  if (!look(table, tensor, seen, isNeg))
    return false;
  int64_t head[] = {static_cast<int64_t>(addressOf(seen)), seen.rank, isNeg};
  bytes.append(reinterpret_cast<const char *>(head), sizeof(head));
  addAxes(bytes, seen);
  return true;
}

PyObject *layouts(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
  const DLPackTable *table = count == 3 ? tableOf(arguments[0]) : nullptr;
  PyObject *given = count == 3 ? arguments[2] : nullptr;
  if (!table || !(PyTuple_CheckExact(given) || PyList_CheckExact(given))) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError,
                      "layouts takes a table, a function, and tensors");
    return nullptr;
  }
  std::string bytes;
  PyObject *const *tensors = PySequence_Fast_ITEMS(given);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i)
    if (!addLayout(bytes, *table, tensors[i])) {
      PyErr_Clear();
      return PyObject_CallOneArg(arguments[1], given);
    }
  return PyBytes_FromStringAndSize(bytes.data(), bytes.size());
}

PyObject *formOf(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
  const DLPackTable *table = count == 2 ? tableOf(arguments[0]) : nullptr;
  DLTensor seen;
  bool isNeg;
  if (!table || !look(*table, arguments[1], seen, isNeg)) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  uintptr_t address = addressOf(seen);
  if (!address || address % 16 || isNeg)
    Py_RETURN_NONE;
  std::string bytes;
  addType(bytes, seen);
  addAxes(bytes, seen);
  return PyBytes_FromStringAndSize(bytes.data(), bytes.size());
}

PyObject *launchKey(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 3 || !PyTuple_CheckExact(arguments[1]) ||
      !PyDict_CheckExact(arguments[2])) {
    PyErr_SetString(PyExc_TypeError,
                    "launch_key takes a signature, a tuple and a dict");
    return nullptr;
  }
  auto *signature = static_cast<const Signature *>(
      PyCapsule_GetPointer(arguments[0], capsuleName));
  if (!signature)
    return nullptr;
  Py_ssize_t used = 0;
  PyObject *values = bind(*signature, arguments[1], arguments[2], used);
  Key key(*signature);
  bool isFound = values;
  for (size_t i = 0; isFound && i < signature->parameters.size(); ++i)
    isFound =
        key.add(PyList_GET_ITEM(values, i), signature->parameters[i].flags);
  if (isFound && used != PyDict_GET_SIZE(arguments[2]))
    isFound = addOptions(key, *signature, PyTuple_GET_SIZE(arguments[1]),
                         arguments[2]);
  if (isFound && key.isApart())
    return Py_BuildValue("(y#NN)", key.get().data(),
                         static_cast<Py_ssize_t>(key.get().size()), values,
                         PyBool_FromLong(key.wants()));
  // Whatever is wrong with an argument, the launch says it better.
  PyErr_Clear();
  Py_XDECREF(values);
  Py_RETURN_NONE;
}

py::capsule launchSignature(const py::list &parameters, Py_ssize_t positions,
                            const py::list &tensorTypes,
                            const py::object &constantType,
                            const py::object &table) {
  auto signature = std::make_unique<Signature>();
  signature->positions = positions;
  for (py::handle parameter : parameters) {
    auto parts = py::reinterpret_borrow<py::tuple>(parameter);
    bool hasStandard = parts.size() > 2;
    signature->parameters.push_back(
        {py::reinterpret_borrow<py::object>(parts[0]),
         hasStandard ? py::reinterpret_borrow<py::object>(parts[2])
                     : py::object(),
         parts[1].cast<unsigned>()});
  }
  for (py::handle type : tensorTypes)
    signature->tensorTypes.push_back(py::reinterpret_borrow<py::object>(type));
  signature->constantType = constantType;
  signature->table = tableOf(table.ptr());
  if (!signature->table)
    throw py::error_already_set();
  return py::capsule(signature.release(), capsuleName, [](PyObject *capsule) {
    delete static_cast<Signature *>(PyCapsule_GetPointer(capsule, capsuleName));
  });
}

PyMethodDef fastFunctions[] = {
    {"form", reinterpret_cast<PyCFunction>(formOf), METH_FASTCALL,
     "Return type, shape and strides of a tensor as bytes; None if it has no "
     "memory of its own, if that is not aligned, or holds negatives."},
    {"layouts", reinterpret_cast<PyCFunction>(layouts), METH_FASTCALL,
     "Return address, rank, sign, shape and strides of tensors as bytes; what "
     "a function makes of them if one has no memory of its own."},
    {"launch_key", reinterpret_cast<PyCFunction>(launchKey), METH_FASTCALL,
     "Return (key, values of parameters, whether a tensor requires a gradient) "
     "of a launch with a tuple and a dict of arguments; None if it has no "
     "key."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

void addLaunchKey(py::module_ &m) {
  m.def("launch_signature", launchSignature, py::arg("parameters"),
        py::arg("positions"), py::arg("tensor_types"), py::arg("constant_type"),
        py::arg("table"),
        "What `launch_key` is told of a kernel: (name, flags[, default]) of "
        "each parameter, how many may be given by position, the types of "
        "tensors and of constants, and the "
        "capsule of PyTorch's DLPack functions. Flags are 1 where the value "
        "matters, 2 for what is written, 4 where storage matters.");
  if (PyModule_AddFunctions(m.ptr(), fastFunctions) < 0)
    throw py::error_already_set();
}
