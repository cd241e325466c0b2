//===- IndexVisitor.h - What arithmetic makes of indices --------*- C++ -*-===//
//
// Several analyses follow an index, or a pointer counted in elements, through
// the arithmetic that makes it: each wants to know something else of it (its
// terms, its least value, its step). Which operation does what is said here.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_INDEXVISITOR_H
#define AUTODIFF_ANALYSIS_INDEXVISITOR_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::autodiff {

/// Asks `Asker` about the result of an operation: `ofSum(a, b)`,
/// `ofDifference(a, b)`, `ofProduct(a, b)`, `ofSame(a)` of the same number in
/// another width, `ofMoved(a, map)` of a tile with other axes, `ofRange(op)` of
/// the numbers of lanes, and `ofOther(op)` of everything else.
template <typename Asker, typename Answer> struct IndexVisitor {
  Answer visit(Operation *op) {
    auto &asker = static_cast<Asker &>(*this);
    using Switch = llvm::TypeSwitch<Operation *, Answer>;
    return Switch(op)
        .template Case<arith::AddIOp, triton::AddPtrOp>([&](Operation *) {
          return asker.ofSum(op->getOperand(0), op->getOperand(1));
        })
        .template Case<arith::SubIOp>([&](Operation *) {
          return asker.ofDifference(op->getOperand(0), op->getOperand(1));
        })
        .template Case<arith::MulIOp>([&](Operation *) {
          return asker.ofProduct(op->getOperand(0), op->getOperand(1));
        })
        .template Case<arith::ExtSIOp, arith::IndexCastOp, HeldOp>(
            [&](Operation *) { return asker.ofSame(op->getOperand(0)); })
        .template Case<triton::MakeRangeOp>(
            [&](triton::MakeRangeOp range) { return asker.ofRange(range); })
        .Default([&](Operation *) -> Answer {
          if (auto map = triton::AxisMap::ofMove(op))
            return asker.ofMoved(op->getOperand(0), *map);
          return asker.ofOther(op);
        });
  }
};

/// Whether that is anything else than another operation.
bool isIndexArithmetic(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_INDEXVISITOR_H
