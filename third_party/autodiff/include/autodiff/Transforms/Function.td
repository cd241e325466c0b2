//===- Function.td - Device functions as kernels and back --*- tablegen -*-===//

def WrapFunction : AutodiffPass<"autodiff-wrap-function", "::mlir::ModuleOp"> {
  let summary = "make a kernel of a function, to be differentiated";
  let description = [{
    The function is one with arguments and results, or a kernel with
    placeholders (Placeholders.h). Its kernel loads each argument whose gradient
    is wanted from a tensor of its own, and stores each float result to one.
    What else it takes stays an argument. `autodiff.function` keeps the
    function's type. Writing to memory is an error, and so is asking for the
    gradient of what is no float.
  }];
  let options = [
    ListOption<"wanted", "wanted", "unsigned",
               "arguments whose gradient is asked for">
  ];
}

def NarrowZeros : AutodiffPass<"autodiff-narrow-zeros", "::mlir::triton::FuncOp"> {
  let summary = "put zeros in place of products only where these are no numbers";
  let description = [{
    An adjoint is taken as zero where its cotangent is, whatever it is multiplied
    with. As a value that is right, but not as a function of the cotangent, which
    a derivative of the backward asks for. So the product stays where it is a
    number.
  }];
}

def UnwrapBackward : AutodiffPass<"autodiff-unwrap-backward", "::mlir::ModuleOp", LooksAtOneBackward> {
  let summary = "make a function of the backward of a wrapped one";
  let description = [{
    It takes the function's arguments, then a cotangent for each float result,
    and returns the gradients that were asked for, in their order. With `ones`,
    all cotangents are one, and no arguments; with `values`, what the function
    returned comes first. Nothing else stays in the module.
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
