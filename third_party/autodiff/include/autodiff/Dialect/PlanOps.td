//===- PlanOps.td - What to launch for a gradient -----------*- tablegen -*-===//
//
// A plan is an operation beside the kernels that it is about. docs/plan.md says
// what each part means, as the JSON that lib/Plan writes of it.
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
    There is one in a module. Its kernels are functions of the module, whose
    arguments say what they are (`autodiff.operand`); what buffers, gradients
    and sizes these are is in the plan. Passes over modules write it; those over
    functions only read it.

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
    /// The same, at first an empty one.
    static PlanOp getOrCreate(::mlir::ModuleOp module);

    /// The parts of a kind, in their order.
    template <typename ItemT> auto getItems() {
      return getBody().front().getOps<ItemT>();
    }
    /// Adds a part behind those of its kind.
    template <typename ItemT, typename... Args> ItemT add(Args &&...args) {
      ::mlir::OpBuilder builder(getContext());
      auto item = ItemT::create(builder, getLoc(), std::forward<Args>(args)...);
      insert(item);
      return item;
    }

    /// The launch of a kernel of the module, or null.
    LaunchOp findLaunch(::llvm::StringRef kernel);
    /// The same, at first one with nothing of its own. Launches have the order
    /// of their kernels.
    LaunchOp launch(::mlir::FunctionOpInterface kernel);
    /// What a buffer, a gradient or a size is; null if nobody has said so.
    ::mlir::Attribute getDescription(OperandAttr operand);
    /// Says so.
    void describe(OperandAttr operand, ::mlir::Attribute description);
    /// Requires a fact of what kernels do with an operand.
    void require(OperandAttr operand, CheckAttr check);

  private:
    void insert(::mlir::Operation *item);
  }];
}

class Autodiff_PlanItem<string mnemonic, list<Trait> traits = []>
    : Autodiff_Op<mnemonic, !listconcat([HasParent<"PlanOp">], traits)>;

def Autodiff_RearrangedOp : Autodiff_PlanItem<"rearranged"> {
  let summary = "the launch that the kernels are for, if not the user's";
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
  let summary = "what a launch may ask for instead";
  let arguments = (ins AnyAttrOf<[Autodiff_BatchAttr,
                                  Autodiff_UnravelAttr]>:$rearrangement);
  let assemblyFormat = "$rearrangement attr-dict";
}

def Autodiff_StoredOp : Autodiff_PlanItem<"stored"> {
  let summary = "where a store of the user's kernel goes";
  let arguments = (ins Autodiff_StoredAttr:$store);
  let assemblyFormat = "$store attr-dict";
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
    Checks of gradients are parts of these.
  }];
  let arguments = (ins Autodiff_OperandAttr:$operand, Autodiff_CheckAttr:$fact);
  let assemblyFormat = "$operand $fact attr-dict";
}

def Autodiff_LaunchOp : Autodiff_PlanItem<"launch",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel that is run, and how";
  let description = [{
    On the forward's grid, or one of its own, and with the forward's compile
    options, or some of its own. One `in_place_of` another kernel runs where
    that would, `when` an expression is not zero; so it is with kernels that a
    gradient needs only then. `accesses` are those that a kernel checks.
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

def Autodiff_NextOp : Autodiff_PlanItem<"next"> {
  let summary = "a step of what to ask for where the plan does not do";
  let description = [{
    The first step counts of which an entry holds at a launch.
  }];
  let arguments = (ins TypedArrayAttrBase<Autodiff_NextAttr, "what to ask for">:$step);
  let assemblyFormat = "$step attr-dict";
}

#endif // AUTODIFF_PLAN_OPS
