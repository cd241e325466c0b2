//===- Dialect.cpp - registration, constants, inlining --------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::triton;

#include "triton/Dialect/Triton/IR/Dialect.cpp.inc"
#include "triton/Dialect/Triton/IR/OpsEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "triton/Dialect/Triton/IR/Attrs.cpp.inc"

#define GET_OP_CLASSES
#include "triton/Dialect/Triton/IR/Ops.cpp.inc"

namespace {
/// Device functions may be inlined anywhere that has room for their blocks.
struct TritonInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *call, Operation *callable,
                       bool wouldBeCloned) const final {
    auto function = dyn_cast<FuncOp>(callable);
    return function && !function.isExternal() &&
           (function.getBody().hasOneBlock() ||
            isa<FunctionOpInterface>(call->getParentOp()));
  }
  bool isLegalToInline(Region *dest, Region *src, bool wouldBeCloned,
                       IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  void handleTerminator(Operation *op, Block *newDest) const final {
    if (auto returnOp = dyn_cast<ReturnOp>(op)) {
      OpBuilder builder(op);
      cf::BranchOp::create(builder, op->getLoc(), newDest,
                           returnOp.getOperands());
      op->erase();
    }
  }
  void handleTerminator(Operation *op, ValueRange valuesToReplace) const final {
    for (auto [old, operand] :
         llvm::zip_equal(valuesToReplace, op->getOperands()))
      old.replaceAllUsesWith(operand);
  }
};
} // namespace

void TritonDialect::initialize() {
  registerTypes();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "triton/Dialect/Triton/IR/Attrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "triton/Dialect/Triton/IR/Ops.cpp.inc"
      >();
  addInterfaces<TritonInlinerInterface>();
}

Operation *TritonDialect::materializeConstant(OpBuilder &builder,
                                              Attribute value, Type type,
                                              Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
