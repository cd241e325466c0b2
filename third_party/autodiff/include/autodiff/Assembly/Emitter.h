//===- Emitter.h - Elementwise arithmetic, each once ------------*- C++ -*-===//
#ifndef AUTODIFF_ASSEMBLY_EMITTER_H
#define AUTODIFF_ASSEMBLY_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/KnownBits.h"

namespace mlir::autodiff::ptx {

/// Emits operations on tiles of one shape, or on scalars. Operations are
/// folded, and common subexpressions are shared: equal values are the same
/// `Value`.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, Type shape)
      : builder(builder), location(loc), shape(shape) {}

  MLIRContext *context() const { return builder.getContext(); }
  FloatType f16() { return builder.getF16Type(); }
  FloatType bf16() { return builder.getBF16Type(); }
  FloatType f32() { return builder.getF32Type(); }
  FloatType f64() { return builder.getF64Type(); }
  IntegerType integer(unsigned width) { return builder.getIntegerType(width); }
  static Type elementOf(Value value);
  static unsigned widthOf(Value value);
  static bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

  Value constant(const APInt &bits);
  Value constant(unsigned width, uint64_t bits) {
    return constant(APInt(width, bits, /*isSigned=*/false,
                          /*implicitTrunc=*/true));
  }
  Value constant(FloatType type, APFloat number);
  Value constant(FloatType type, double number) {
    return constant(type, APFloat(number));
  }
  /// The bits of a constant, of an integer or a float.
  static std::optional<APInt> getConstant(Value value);

  template <typename OpT>
  Value make(Type element, ValueRange operands,
             ArrayRef<NamedAttribute> attributes = {}) {
    return create(OpT::getOperationName(), element, operands, attributes);
  }
  /// An operation whose result has the type of its first operand.
  template <typename OpT, typename... Operands>
  Value map(Value first, Operands... others) {
    return make<OpT>(elementOf(first), {first, Value(others)...});
  }
  Value create(StringRef operation, Type element, ValueRange operands,
               ArrayRef<NamedAttribute> attributes = {});

  // Integer operations.
  Value andi(Value a, Value b) { return map<arith::AndIOp>(a, b); }
  Value ori(Value a, Value b) { return map<arith::OrIOp>(a, b); }
  Value xori(Value a, Value b) { return map<arith::XOrIOp>(a, b); }
  Value noti(Value a) {
    return xori(a, constant(APInt::getAllOnes(widthOf(a))));
  }
  Value add(Value a, Value b) { return map<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return map<arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return map<arith::MulIOp>(a, b); }
  /// Shifts by a constant; zero if that is the whole width.
  Value shl(Value a, unsigned bits);
  Value shrUnsigned(Value a, unsigned bits);
  Value shrSigned(Value a, unsigned bits);
  /// Zero-extends, sign-extends or truncates.
  Value resize(Value a, unsigned width, bool isSigned = false);
  Value compare(arith::CmpIPredicate predicate, Value a, Value b);

  // Float operations.
  Value compare(arith::CmpFPredicate predicate, Value a, Value b);
  Value select(Value condition, Value a, Value b);

  /// Bitcasts.
  Value toInteger(Value value);
  Value toFloat(Value value, FloatType type);

  /// The bits of an integer that are known.
  llvm::KnownBits known(Value value);

  /// Whether two values that depend on nothing but `leaf`, which has few bits,
  /// are equal for each value of `leaf`.
  bool areEqual(Value a, Value b, Value leaf);

  /// Removes unused operations; returns the others, in order.
  SmallVector<Operation *> removeUnused();

private:
  Value simplify(Value value);
  llvm::KnownBits compute(Value value);
  std::optional<APInt> getBoundOf(Value floating);

  OpBuilder &builder;
  Location location;
  Type shape;
  llvm::SetVector<Operation *> emitted;
  llvm::DenseMap<unsigned, SmallVector<Operation *, 1>> byHash;
  llvm::DenseMap<Value, llvm::KnownBits> knownBits;
};

} // namespace mlir::autodiff::ptx

#endif // AUTODIFF_ASSEMBLY_EMITTER_H
