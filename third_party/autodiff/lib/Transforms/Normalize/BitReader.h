//===- BitReader.h - What the bits of an integer are made of ----*- C++ -*-===//
#ifndef AUTODIFF_TRANSFORMS_NORMALIZE_BITREADER_H
#define AUTODIFF_TRANSFORMS_NORMALIZE_BITREADER_H

#include "BitAlgebra.h"
#include "mlir/IR/Builders.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// Reads integers as functions of the bits of floats. A function goes through a
/// choice among integers (a selection, a maximum, an arg-max) and through a
/// move of elements: then it is of floats that are chosen or moved alike. These
/// are emitted where the integers are.
class BitReader {
public:
  BitAlgebra algebra;

  /// The bits of `value`, an integer or a tile of integers. Bits of which
  /// nothing is known are those of the value itself.
  BitForm read(Value value);
  /// Lets `value`, an integer, have the bits of `source`.
  void setSource(Value value, Value source);
  /// Whether any bit is that of a float.
  bool hasFloats(ArrayRef<Bit> form) const;

private:
  using MaybeForm = std::optional<BitForm>;

  BitForm asSource(Value value) { return asSource(value, widthOf(value)); }
  BitForm asSource(Value value, unsigned width);
  BitForm withoutKnown(Value value, BitForm form);
  BitForm repeat(bool one, unsigned width);
  static unsigned widthOf(Value value);

  MaybeForm compute(OpResult value);
  MaybeForm combine(Operation *op);
  MaybeForm shift(Operation *op);
  MaybeForm multiply(ArrayRef<Bit> a, ArrayRef<Bit> b);
  MaybeForm compare(arith::CmpIOp op);
  MaybeForm areEqual(ArrayRef<Bit> a, ArrayRef<Bit> b);
  MaybeForm select(arith::SelectOp op);
  MaybeForm choose(Operation *op, Value condition, ArrayRef<Bit> a,
                   ArrayRef<Bit> b);
  MaybeForm pickExtremum(Operation *op);
  MaybeForm move(OpResult result);
  MaybeForm join(triton::JoinOp op);
  MaybeForm pickLane(triton::ReduceOp op);
  MaybeForm reduce(OpResult result);
  Bit readCondition(Value condition);
  Bit collapse(Operation *op, Bit bit);
  std::optional<Bit> chooseSource(Operation *op, Value condition, const Atom &a,
                                  const Atom &b);
  MaybeForm rename(ArrayRef<Bit> form,
                   llvm::function_ref<Value(Value)> sourceOf);
  unsigned countConditions(ArrayRef<Bit> form) const;

  llvm::DenseMap<Value, BitForm> known;
  std::map<std::vector<void *>, Value> emitted;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_NORMALIZE_BITREADER_H
