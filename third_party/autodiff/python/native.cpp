//===- native.cpp - Python face of libtriton_autodiff ---------------------===//
//
// The binding only passes strings and bytes to and from the C interface; the
// keys of launches (LaunchKey.cpp) are its own. It is compiled for each version
// of Python, the library behind it once for all.
//
//===----------------------------------------------------------------------===//

#include "LaunchKey.h"
#include "autodiff-c/Autodiff.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace py = pybind11;

namespace {

/// What a call passed to its sinks.
struct Results {
  std::string first;
  std::string second;
  std::string diagnostics;

  static void takeFirst(const char *data, size_t size, void *self) {
    static_cast<Results *>(self)->first.assign(data, size);
  }
  static void takeSecond(const char *data, size_t size, void *self) {
    static_cast<Results *>(self)->second.assign(data, size);
  }
  static void takeError(const char *data, size_t size, void *self) {
    static_cast<Results *>(self)->diagnostics.append(data, size);
  }

  /// Raises AutodiffError unless the call succeeded; issues its warnings.
  void check(bool succeeded) const {
    if (!succeeded) {
      py::object type =
          py::module_::import("triton_autodiff.errors").attr("AutodiffError");
      // Names in a damaged file need not be UTF-8.
      auto message = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
          diagnostics.data(), diagnostics.size(), "backslashreplace"));
      PyErr_SetObject(type.ptr(), message.ptr());
      throw py::error_already_set();
    }
    if (!diagnostics.empty() &&
        PyErr_WarnEx(PyExc_RuntimeWarning, diagnostics.c_str(), 1) < 0)
      throw py::error_already_set();
  }
};

std::string runPipeline(const std::string &ir, const std::string &pipeline,
                        const std::string &fileName) {
  Results results;
  bool succeeded;
  {
    py::gil_scoped_release release;
    succeeded =
        tadRunPipeline(ir.data(), ir.size(), fileName.c_str(), pipeline.c_str(),
                       Results::takeFirst, Results::takeError, &results);
  }
  results.check(succeeded);
  return results.first;
}

std::string printSource(const std::string &ir, const std::string &fileName) {
  Results results;
  bool succeeded;
  {
    py::gil_scoped_release release;
    succeeded =
        tadPrintSource(ir.data(), ir.size(), fileName.c_str(),
                       Results::takeFirst, Results::takeError, &results);
  }
  results.check(succeeded);
  return results.first;
}

std::string differentiate(const std::string &ir, const std::string &request,
                          const std::string &fileName) {
  Results results;
  bool succeeded;
  {
    py::gil_scoped_release release;
    succeeded = tadDifferentiate(ir.data(), ir.size(), fileName.c_str(),
                                 request.c_str(), Results::takeFirst,
                                 Results::takeError, &results);
  }
  results.check(succeeded);
  return results.first;
}

py::tuple compileCpu(const std::string &ir, const std::string &options,
                     const std::string &fileName) {
  Results results;
  bool succeeded;
  {
    py::gil_scoped_release release;
    succeeded = tadCompileCpu(
        ir.data(), ir.size(), fileName.c_str(), options.c_str(),
        Results::takeFirst, Results::takeSecond, Results::takeError, &results);
  }
  results.check(succeeded);
  return py::make_tuple(py::bytes(results.first), results.second);
}

/// Rounds to the nearest value (ties to even) of a binary floating-point format
/// of 16 bits and returns its encoding.
uint16_t encodeSmallFloat(double value, int exponentBits, int mantissaBits) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  const uint32_t infinity = static_cast<uint32_t>(2 * bias + 1) << mantissaBits;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return sign | infinity | (1u << (mantissaBits - 1));
  if (std::isinf(value))
    return sign | infinity;
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  // The significand: with the implicit bit for a normal number, so that it
  // carries into the exponent field; without one for a subnormal number.
  double mantissa =
      std::nearbyint(std::ldexp(std::fabs(value), mantissaBits - exponent));
  if (exponent > bias)
    return sign | infinity;
  uint32_t bits = static_cast<uint32_t>(mantissa) +
                  (static_cast<uint32_t>(exponent + bias - 1) << mantissaBits);
  return sign | std::min(bits, infinity);
}

/// A CPU kernel in this process, with its arguments' types.
class Kernel {
public:
  Kernel(const std::string &object, const std::string &symbol) {
    Results results;
    {
      py::gil_scoped_release release;
      kernel = tadLoadCpu(object.data(), object.size(), symbol.c_str(),
                          Results::takeError, &results);
    }
    results.check(kernel);
    parseSignature(tadKernelSignature(kernel));
  }
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;
  ~Kernel() { tadUnloadCpu(kernel); }

  void launch(uint32_t gx, uint32_t gy, uint32_t gz, py::tuple args,
              uint32_t threads) const {
    if (args.size() != types.size())
      throw py::type_error("kernel takes " + std::to_string(types.size()) +
                           " arguments, got " + std::to_string(args.size()));
    std::vector<uint64_t> values(types.size());
    std::vector<void *> pointers(types.size());
    for (size_t i = 0; i < types.size(); ++i) {
      values[i] = convert(PyTuple_GET_ITEM(args.ptr(), i), types[i]);
      pointers[i] = &values[i];
    }
    Results results;
    bool succeeded;
    {
      py::gil_scoped_release release;
      succeeded = tadLaunchCpu(kernel, gx, gy, gz, pointers.data(), threads,
                               Results::takeError, &results);
    }
    results.check(succeeded);
  }

  const std::vector<std::string> &getSignature() const { return names; }

private:
  enum class Type { Pointer, Integer, F16, BF16, F32, F64 };

  void parseSignature(const std::string &signature) {
    for (size_t begin = 0; begin < signature.size();) {
      size_t end = std::min(signature.find(',', begin), signature.size());
      names.push_back(signature.substr(begin, end - begin));
      types.push_back(parseType(names.back()));
      begin = end + 1;
    }
  }

  static Type parseType(const std::string &name) {
    if (name == "ptr")
      return Type::Pointer;
    if (name == "f16")
      return Type::F16;
    if (name == "bf16")
      return Type::BF16;
    if (name == "f32")
      return Type::F32;
    if (name == "f64")
      return Type::F64;
    if (name[0] == 'i')
      return Type::Integer;
    throw py::type_error("kernel argument of type " + name);
  }

  /// The value's bytes as the kernel reads them, at the start of the result
  /// (the host is little-endian).
  static uint64_t convert(PyObject *value, Type type) {
    uint64_t bits = 0;
    switch (type) {
    case Type::Pointer:
      return convertPointer(value);
    case Type::Integer:
      bits = PyLong_AsUnsignedLongLongMask(value);
      break;
    case Type::F16:
      bits = encodeSmallFloat(PyFloat_AsDouble(value), 5, 10);
      break;
    case Type::BF16:
      bits = encodeSmallFloat(PyFloat_AsDouble(value), 8, 7);
      break;
    case Type::F32: {
      float narrow = static_cast<float>(PyFloat_AsDouble(value));
      std::memcpy(&bits, &narrow, sizeof(narrow));
      break;
    }
    case Type::F64: {
      double wide = PyFloat_AsDouble(value);
      std::memcpy(&bits, &wide, sizeof(wide));
      break;
    }
    }
    if (PyErr_Occurred())
      throw py::error_already_set();
    return bits;
  }

  static uint64_t convertPointer(PyObject *argument) {
    PyObject *value = argument;
    if (value == Py_None)
      return 0;
    static PyObject *const dataPtr = PyUnicode_InternFromString("data_ptr");
    py::object address;
    if (!PyLong_Check(value)) {
      address = py::reinterpret_steal<py::object>(
          PyObject_CallMethodNoArgs(value, dataPtr));
      if (!address)
        throw py::error_already_set();
      value = address.ptr();
    }
    uint64_t bits = PyLong_AsUnsignedLongLongMask(value);
    if (PyErr_Occurred())
      throw py::error_already_set();
    if (!bits && address)
      refuseWithoutMemory(argument);
    return bits;
  }

  /// An empty tensor has no address, and is allowed to.
  static void refuseWithoutMemory(py::handle tensor) {
    if (py::hasattr(tensor, "numel") && tensor.attr("numel")().cast<long>() > 0)
      throw py::value_error(
          "a tensor without memory (its storage was freed or resized, or it "
          "is a wrapper without data) was given to a kernel: " +
          std::string(py::repr(py::type::of(tensor))) + " of shape " +
          std::string(py::str(tensor.attr("shape"))));
  }

  TadKernel *kernel = nullptr;
  std::vector<std::string> names;
  std::vector<Type> types;
};

} // namespace

PYBIND11_MODULE(_native, m) {
  m.doc() = "The compiler behind triton_autodiff.";
  m.def("run_pipeline", runPipeline, py::arg("ir"), py::arg("pipeline") = "",
        py::arg("file_name") = "<ttir>",
        "Run a textual MLIR pass pipeline over a module and print the result.");
  m.def("print_source", printSource, py::arg("ir"),
        py::arg("file_name") = "<ttir>",
        "Print the kernels of a TTIR module as Triton Python.");
  m.def("differentiate", differentiate, py::arg("ir"), py::arg("request"),
        py::arg("file_name") = "<ttir>",
        "Differentiate a TTIR module; request and result (the plan) are JSON.");
  m.def("compile_cpu", compileCpu, py::arg("ir"), py::arg("options"),
        py::arg("file_name") = "<ttir>",
        "Compile TTIR for this host: (relocatable object, metadata as JSON).");
  m.def(
      "load_cpu",
      [](const py::bytes &object, const std::string &symbol) {
        return std::make_unique<Kernel>(object, symbol);
      },
      py::arg("object"), py::arg("symbol"),
      "Link an object made by compile_cpu into this process.");
  m.def("version", tadVersion,
        "Release and content hash of the compiler, for cache keys.");
  m.def("rules_markdown", tadRulesMarkdown,
        "The table of differentiation rules, as Markdown.");
  addLaunchKey(m);
  py::class_<Kernel>(m, "Kernel", "A native kernel, ready to launch.")
      .def("launch", &Kernel::launch, py::arg("gx"), py::arg("gy"),
           py::arg("gz"), py::arg("args"), py::arg("threads") = 0,
           "Run the grid; a pointer argument is an address, None or an object "
           "with data_ptr().")
      .def_property_readonly("signature", &Kernel::getSignature,
                             "Types of the arguments, pointers as 'ptr'.");
}
