//===- PlanOps.td - What to launch for a gradient -----------*- tablegen -*-===//
//
// A plan is an operation beside the kernels that it launches. docs/plan.md says
// what each item means, as the JSON that lib/Plan writes.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_PLAN_OPS
#define AUTODIFF_PLAN_OPS

include "autodiff/Dialect/PlanAttributes.td"
include "mlir/IR/SymbolInterfaces.td"

def Autodiff_PlanOp : Autodiff_Op<"plan",
    [NoTerminator, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "what to launch for a gradient, and with what memory";
  let description = [{
    A module has at most one. Its kernels are functions of the module, whose
    arguments have an attribute `autodiff.operand`. The plan describes the
    buffers, gradients and sizes among them. Passes over modules write the plan;
    passes over functions only read it.

      ```mlir
      autodiff.plan {
        autodiff.buffer 0 <saved "mean" : f32, grid0>
        autodiff.gradient <store 0 : f16 init = none>
        autodiff.launch @layer_norm_fwd
        autodiff.launch @layer_norm_bwd grid [processors, 1, 1]
      }
      ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword custom<Items>($body)";
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins)>];
  let extraClassDeclaration = [{
    /// The plan of a module; null if there is none.
    static PlanOp of(::mlir::ModuleOp module);
    /// The same; an empty one is added if there is none.
    static PlanOp getOrCreate(::mlir::ModuleOp module);

    /// The items of a kind, in order.
    template <typename ItemT> auto getItems() {
      return getBody().front().getOps<ItemT>();
    }
    /// Adds an item behind those of its kind.
    template <typename ItemT, typename... Args> ItemT add(Args &&...args) {
      ::mlir::OpBuilder builder(getContext());
      auto item = ItemT::create(builder, getLoc(), std::forward<Args>(args)...);
      insert(item);
      return item;
    }

    /// The launch of a kernel of the module, or null.
    LaunchOp findLaunch(::llvm::StringRef kernel);
    /// The same; an empty one is added if there is none. Launches have the
    /// order of their kernels.
    LaunchOp launch(::mlir::FunctionOpInterface kernel);
    /// The description of a buffer, a gradient or a size; null if there is none
    /// yet.
    ::mlir::Attribute getDescription(OperandAttr operand);
    /// Sets the description.
    void describe(OperandAttr operand, ::mlir::Attribute description);
    /// Adds a check on which kernels with this operand rely.
    void require(OperandAttr operand, CheckAttr check);

  private:
    void insert(::mlir::Operation *item);
  }];
}

class Autodiff_PlanItem<string mnemonic, list<Trait> traits = []>
    : Autodiff_Op<mnemonic, !listconcat([HasParent<"PlanOp">], traits)>;

def Autodiff_RearrangedOp : Autodiff_PlanItem<"rearranged"> {
  let summary = "the launch that the kernels are for, if it is not the user's";
  let arguments = (ins Autodiff_LaunchAttr:$launch);
  let assemblyFormat = "$launch attr-dict";
  let hasVerifier = 1;
}

def Autodiff_AssumeOp : Autodiff_PlanItem<"assume"> {
  let summary = "a number that must not be negative in any program";
  let arguments = (ins Autodiff_ExprAttr:$number);
  let assemblyFormat = "$number attr-dict";
}

def Autodiff_OfferOp : Autodiff_PlanItem<"offer"> {
  let summary = "another rearrangement of the kernel that a launch may request";
  let arguments = (ins AnyAttrOf<[Autodiff_BatchAttr,
                                  Autodiff_UnravelAttr]>:$rearrangement);
  let assemblyFormat = "$rearrangement attr-dict";
}

def Autodiff_StoredOp : Autodiff_PlanItem<"stored"> {
  let summary = "where a store of the user's kernel goes";
  let arguments = (ins Autodiff_StoredAttr:$store);
  let assemblyFormat = "$store attr-dict";
}

def Autodiff_AccessedOp : Autodiff_PlanItem<"accessed"> {
  let summary = "which elements of an argument the user's kernel touches";
  let arguments = (ins Autodiff_AccessedAttr:$accesses);
  let assemblyFormat = "$accesses attr-dict";
}

def Autodiff_LiveOp : Autodiff_PlanItem<"live"> {
  let summary = "where contributions to a gradient may be other than zero";
  let arguments = (ins Autodiff_LiveAttr:$contributions);
  let assemblyFormat = "$contributions attr-dict";
}

def Autodiff_BufferOp : Autodiff_PlanItem<"buffer"> {
  let summary = "the memory behind operand `buffer n`";
  let arguments = (ins I32Attr:$number, Autodiff_BufferAttr:$buffer);
  let assemblyFormat = "$number $buffer attr-dict";
}

def Autodiff_HostSizeOp : Autodiff_PlanItem<"host_size"> {
  let summary = "the value of operand `size n`";
  let arguments = (ins I32Attr:$number, Autodiff_ExprAttr:$value);
  let assemblyFormat = "$number $value attr-dict";
}

def Autodiff_GradientOp : Autodiff_PlanItem<"gradient"> {
  let summary = "the memory behind operand `gradient n`";
  let arguments = (ins Autodiff_GradientAttr:$gradient);
  let assemblyFormat = "$gradient attr-dict";
}

def Autodiff_CheckOp : Autodiff_PlanItem<"check"> {
  let summary = "a fact that kernels with an operand rely on";
  let description = [{
    Checks of a gradient are in its own description.
  }];
  let arguments = (ins Autodiff_OperandAttr:$operand, Autodiff_CheckAttr:$fact);
  let assemblyFormat = "$operand $fact attr-dict";
}

def Autodiff_LaunchOp : Autodiff_PlanItem<"launch",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel that is run, and how";
  let description = [{
    A kernel runs on the forward's grid and with its compile options, unless it
    has its own. With `in_place_of`, it runs instead of that kernel if `when`,
    an expression, is not zero; kernels that a gradient needs only sometimes are
    of that kind, too. `accesses` are those that the kernel checks, for
    debugging.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
      OptionalAttr<FlatSymbolRefAttr>:$in_place_of,
      OptionalAttr<Autodiff_ExprAttr>:$when,
      OptionalAttr<Autodiff_ExprArrayAttr>:$grid,
      OptionalAttr<DictionaryAttr>:$options,
      OptionalAttr<ArrayAttr>:$accesses);
  let assemblyFormat = [{
    $kernel (`in_place_of` $in_place_of^)? (`when` $when^)?
    (`grid` custom<Numbers>($grid)^)? (`options` $options^)?
    (`accesses` $accesses^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$kernel), [{
    build($_builder, $_state, FlatSymbolRefAttr::get($_builder.getContext(), kernel),
          {}, {}, {}, {}, {});
  }]>];
  let hasVerifier = 1;
}

def Autodiff_StepOp : Autodiff_PlanItem<"step"> {
  let summary = "one thing that the host does";
  let description = [{
    The steps of a stage are carried out in their order. A step is about some
    `operands`, or launches a `kernel`. The facts of a launch may leave it
    without anything to do.

      ```mlir
      autodiff.step forward launch_forward @layer_norm_fwd
      autodiff.step finish convert [#autodiff.operand<gradient 0>]
      ```
  }];
  let arguments = (ins Autodiff_HostStageAttr:$stage,
      Autodiff_StepKindAttr:$kind,
      OptionalAttr<FlatSymbolRefAttr>:$kernel,
      OptionalAttr<TypedArrayAttrBase<Autodiff_OperandAttr,
                                      "operands of kernels">>:$operands);
  let assemblyFormat = "$stage $kind ($kernel^)? ($operands^)? attr-dict";
}

def Autodiff_NextOp : Autodiff_PlanItem<"next"> {
  let summary = "what to request next if the plan does not suit a launch";
  let description = [{
    The first step with an entry that applies to a launch is taken.
  }];
  let arguments = (ins TypedArrayAttrBase<Autodiff_NextAttr, "what to ask for">:$step);
  let assemblyFormat = "$step attr-dict";
}

#endif // AUTODIFF_PLAN_OPS
