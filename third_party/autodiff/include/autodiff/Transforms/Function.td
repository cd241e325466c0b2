//===- Function.td - Device functions as kernels and back --*- tablegen -*-===//

def WrapFunction : AutodiffPass<"autodiff-wrap-function", "::mlir::ModuleOp"> {
  let summary = "make a kernel of a function, to be differentiated";
  let description = [{
    The input is a function with arguments and results, or a kernel with
    placeholders (Placeholders.h). The kernel that is made of it loads each
    argument whose gradient is wanted from a tensor of its own, and stores each
    float result to one. All other arguments stay arguments. `autodiff.function`
    keeps the function's type. It is an error if the function writes to memory,
    or if the gradient of something other than floats is asked for.
  }];
  let options = [
    ListOption<"wanted", "wanted", "unsigned",
               "arguments whose gradient is asked for">
  ];
}

def NarrowZeros : AutodiffPass<"autodiff-narrow-zeros", "::mlir::triton::FuncOp"> {
  let summary = "put zeros in place of products only where these are no numbers";
  let description = [{
    Reverse mode emits `select(g == 0, 0, g * f)` for a cotangent `g`, so that 0
    · NaN is 0. As a function of `g` that is wrong at g = 0: its derivative
    would be 0, not `f`. A derivative of the backward needs that derivative. So
    the selection now only replaces products that are NaN.
  }];
}

def UnwrapBackward : AutodiffPass<"autodiff-unwrap-backward", "::mlir::ModuleOp", LooksAtOneBackward> {
  let summary = "make a function of the backward of a wrapped one";
  let description = [{
    The result takes the function's arguments, then a cotangent for each float
    result. It returns the gradients that were asked for, in their order. With
    `ones`, all cotangents are one and are no arguments. With `values`, it also
    returns what the function returned, first. Nothing else stays in the module.
  }];
  let options = [
    ListOption<"wanted", "wanted", "unsigned",
               "arguments whose gradient is asked for">,
    Option<"name", "name", "std::string", "\"\"", "what it is called">,
    Option<"ones", "ones", "bool", "false", "let all cotangents be one">,
    Option<"withValues", "values", "bool", "false",
           "return what the function did, too">
  ];
}
