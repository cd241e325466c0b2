//===- AutodiffAttributes.td - Facts about a launch ---------*- tablegen -*-===//
//
// Facts about kernels that passes leave for each other, and for the plan.
// Attributes are uniqued: equal ones are the same pointer. docs/plan.md says
// what they mean, as the JSON that lib/Plan writes.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_ATTRIBUTES
#define AUTODIFF_ATTRIBUTES

include "autodiff/Dialect/AutodiffBase.td"

class Autodiff_Attr<string name, string attrMnemonic>
    : AttrDef<Autodiff_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Autodiff_OperandKind : I32EnumAttr<"OperandKind", "what a launch passes", [
  I32EnumAttrCase<"Argument", 0, "argument">,
  I32EnumAttrCase<"Cotangent", 1, "cotangent">,
  I32EnumAttrCase<"Gradient", 2, "gradient">,
  I32EnumAttrCase<"Buffer", 3, "buffer">,
  I32EnumAttrCase<"Size", 4, "size">,
  I32EnumAttrCase<"Counters", 5, "counters">,
  I32EnumAttrCase<"Begin", 6, "begin">,
  I32EnumAttrCase<"End", 7, "end">,
  I32EnumAttrCase<"Violations", 8, "violations">,
  I32EnumAttrCase<"Rounded", 9, "rounded">,
  I32EnumAttrCase<"Claims", 10, "claims">
]> {
  let cppNamespace = "::mlir::autodiff";
  let genSpecializedAttr = 0;
}

def Autodiff_OperandAttr : Autodiff_Attr<"Operand", "operand"> {
  let summary = "what the runtime passes for an argument of a derived kernel";
  let description = [{
    `argument i` is argument i of the user's kernel, and `cotangent i` the
    upstream gradient of the output passed as argument i. `gradient i` is the
    buffer that collects the gradient of argument i. `rounded i` is that
    gradient in the argument's own type, if sums are in another one. `buffer b`
    is a saved residual or a tape, and `size s` an integer that the host
    evaluates. `counters 0` is memory in which a counting kernel leaves trip
    counts.

    Two kinds are for autodiff-check-bounds: `begin k` and `end k` are the
    addresses of the memory behind the kernel's own argument k. `violations 0`
    is the buffer that accesses outside of it are noted in, and `claims k`
    cleared memory that notes which program stores to each element.
  }];
  let parameters = (ins EnumParameter<Autodiff_OperandKind>:$kind,
                        "unsigned":$index);
  let assemblyFormat = "`<` $kind $index `>`";
}

// Factors of products are sorted in this order.
def Autodiff_ExprKind : I32EnumAttr<"ExprKind", "how an integer is made", [
  I32EnumAttrCase<"Constant", 0, "const">,
  I32EnumAttrCase<"Argument", 1, "arg">,
  I32EnumAttrCase<"Grid", 2, "grid">,
  I32EnumAttrCase<"ProgramId", 3, "pid">,
  I32EnumAttrCase<"Counted", 4, "counted">,
  I32EnumAttrCase<"Extent", 5, "extent">,
  I32EnumAttrCase<"SquareRoot", 6, "isqrt">,
  I32EnumAttrCase<"Lead", 7, "lead">,
  I32EnumAttrCase<"MostOfPrograms", 8, "maxpids">,
  I32EnumAttrCase<"Pitch", 9, "pitch">,
  I32EnumAttrCase<"Processors", 10, "processors">,
  I32EnumAttrCase<"Span", 11, "span">,
  I32EnumAttrCase<"InEachProgram", 12, "each">,
  I32EnumAttrCase<"OfPrograms", 13, "pids">,
  I32EnumAttrCase<"Element", 14, "element">,
  I32EnumAttrCase<"Add", 15, "add">,
  I32EnumAttrCase<"Sub", 16, "sub">,
  I32EnumAttrCase<"Mul", 17, "mul">,
  I32EnumAttrCase<"Div", 18, "div">,
  I32EnumAttrCase<"Rem", 19, "rem">,
  I32EnumAttrCase<"CeilDiv", 20, "ceildiv">,
  I32EnumAttrCase<"Min", 21, "min">,
  I32EnumAttrCase<"Max", 22, "max">,
  I32EnumAttrCase<"Coarsest", 23, "coarsest">,
  I32EnumAttrCase<"Shared", 24, "shared">,
  I32EnumAttrCase<"Parts", 25, "parts">,
  I32EnumAttrCase<"Deterministic", 26, "deterministic">
]> {
  let cppNamespace = "::mlir::autodiff";
  let genSpecializedAttr = 0;
}

def Autodiff_ExprAttr : Autodiff_Attr<"Expr", "expr"> {
  let summary = "an integer that a launch can evaluate";
  let description = [{
    For example `#autodiff.expr<ceildiv(arg3, 128) * grid0>`. Sums, differences
    and products are written between their operands, everything else before
    them: `div`, `rem` (which truncate as in C), `ceildiv`, `min` and `max` of
    two, `isqrt` of one, `coarsest(a, b)`, the largest power of two of which a
    multiple lies from `a` to `b`, and

    * `arg3`, `grid0`, `pid0`: an argument, the grid's size, a program id;
    * `maxpids(e)`: the largest value of `e` in any program;
    * `extent(arg0)`, `span(arg0)`, `lead(arg0)`, `pitch(arg0, 32)`: of the
      tensor that is passed;
    * `element(arg0, e)`: the integer in memory at a place;
    * `counted(0)`: what a counting kernel finds;
    * `processors`: of the device;
    * `shared`, `parts`, `deterministic`: 1 or 0, whether memory that the kernel
      writes is that of other arguments, too; whether the outputs overlap or are
      parts of larger tensors; whether no gradients may meet in atomics.

    `pids(e)` and `each(e)` are no numbers but what a digit of a check runs
    through: it is `e` in each program, or below that.

    It is what it was built as: nothing is folded. ScalarExpr folds.
  }];
  let parameters = (ins "ExprKind":$kind,
                        "int64_t":$number, // the constant, argument or axis
                        "ExprAttr":$lhs, "ExprAttr":$rhs);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A constant.
    static ExprAttr get(::mlir::MLIRContext *context, int64_t number);
    /// An expression without operands.
    static ExprAttr get(::mlir::MLIRContext *context, ExprKind kind,
                        int64_t number);
    /// One with an operand, and maybe an argument's number.
    static ExprAttr get(ExprKind kind, ExprAttr operand, int64_t number = 0);
    static ExprAttr get(ExprKind kind, ExprAttr lhs, ExprAttr rhs);

    std::optional<int64_t> getConstant() const;
    bool isConstant(int64_t number) const { return getConstant() == number; }
    /// Whether this or a subexpression satisfies `isSuch`. Expressions that are
    /// the same for all programs have no subexpressions that depend on one.
    bool hasSubexpression(::llvm::function_ref<bool(ExprAttr)> isSuch) const;
    /// Adds the n of every `counted(n)` in this.
    void collectCounters(::llvm::DenseSet<int64_t> &counters) const;
    /// A total order: less than zero if this comes before `other`.
    int compare(ExprAttr other) const;
  }];
}

def Autodiff_ExprArrayAttr
    : TypedArrayAttrBase<Autodiff_ExprAttr, "expressions">;

#endif // AUTODIFF_ATTRIBUTES
