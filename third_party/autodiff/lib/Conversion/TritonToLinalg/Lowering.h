//===- Lowering.h - TTIR functions to loops over tensors --------*- C++ -*-===//
//
// The state shared by the files of this folder.
//
// Tiles become tensors. Most tile values never exist as a whole: an operation
// that has to produce or consume a tile (a root) evaluates the expression that
// defines it element by element, down to tiles that do exist. Placement
// decides which do; Element evaluates.
//
// Storage: i1 is kept as i8 and 8-bit floats as their bits. A tile of pointers
// is one base pointer and a tile of 64-bit byte offsets.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LOWERING_H
#define AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LOWERING_H

#include "Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>

namespace mlir::autodiff::cpu {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The type as a tile type, or null.
RankedTensorType asTile(Type type);
/// Whether this is a tile of pointers.
bool isPointerTile(Type type);
/// The type in which a scalar is computed: i8 for 8-bit floats, !llvm.ptr for
/// pointers.
Type getScalarType(Type type);
/// The type of a scalar in memory: i1 as i8.
Type getStorageType(Type type);
/// The tensor that holds a tile (of pointers: its offsets).
RankedTensorType getStorageTensor(RankedTensorType tile);
/// The types that a TTIR type is converted to.
void convertType(Type type, SmallVectorImpl<Type> &types);
/// The size in bytes of what a pointer (or every pointer of a tile) points to.
int64_t getPointeeSize(Type type);
/// The 8-bit float type that values of `type` consist of, or null.
FloatType getFloat8(Type type);

//===----------------------------------------------------------------------===//
// Element
//===----------------------------------------------------------------------===//

class Lowering;

/// Evaluates elements of tiles in one loop body. Everything it builds stays in
/// the block that the builder was in, so that results can be shared.
class Element {
public:
  Element(Lowering &lowering, OpBuilder &builder)
      : lowering(lowering), builder(builder) {}

  /// The element of a tile; a scalar's own value.
  Value get(Value tile, ArrayRef<Value> indices);
  /// The byte offset from the tile's base of an element of a pointer tile.
  Value getOffset(Value tile, ArrayRef<Value> indices);
  /// The address that an element of a pointer tile (or a scalar pointer) holds.
  Value getAddress(Value tile, ArrayRef<Value> indices);
  /// Makes reads of `tensor` at `indices` give `value`: the loop's own element
  /// of a tensor that is updated in place.
  void bind(Value tensor, ArrayRef<Value> indices, Value value);

  Value getIndex(Location loc, int64_t value);

private:
  using Key = std::pair<void *, SmallVector<void *, 4>>;
  static Key makeKey(Value tile, ArrayRef<Value> indices);

  Value compute(Value tile, ArrayRef<Value> indices);
  Value read(Location loc, Value tensor, Type elementType,
             ArrayRef<Value> indices);
  Value extend(Value tile, ArrayRef<Value> indices);
  /// The indices at which a reshaping operation reads its source.
  SmallVector<Value> mapIndices(Operation *op, ArrayRef<Value> indices);
  SmallVector<Value> mapReshape(Location loc, ArrayRef<int64_t> from,
                                ArrayRef<int64_t> to, ArrayRef<Value> indices);

  Lowering &lowering;
  OpBuilder &builder;
  std::map<Key, Value> values, offsets, bound;
  std::map<int64_t, Value> constants;
};

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

/// Choices of the lowering that depend on the target.
struct LoweringOptions {
  /// Width of vector registers, and how many there are.
  unsigned vectorBits = 256;
  unsigned vectorRegisters = 16;
  /// Copy tiles that loops carry instead of updating them in place.
  bool copyCarried = false;
};

/// Lowers one function.
class Lowering {
public:
  Lowering(triton::FuncOp source, const LoweringOptions &options)
      : source(source), options(options), builder(source.getContext()),
        placement(source) {}

  LogicalResult run();

  OpBuilder &getBuilder() { return builder; }
  const LoweringOptions &getOptions() const { return options; }

  /// A scalar's value (a pointer's as !llvm.ptr).
  Value getScalar(Value value) const { return scalars.lookup(value); }
  void setScalar(Value from, Value to) { scalars[from] = to; }
  /// The tensor of a tile that exists as a whole, or null.
  Value findTensor(Value tile) const { return tensors.lookup(tile); }
  void setTensor(Value tile, Value tensor) { tensors[tile] = tensor; }
  /// The base pointer of a pointer tile.
  Value getBase(Value tile) const { return bases.lookup(tile); }
  /// For a carried tile that only moves by scalars: its initial value, and the
  /// distance so far (null for none).
  const std::pair<Value, Value> *findMoved(Value tile) const;

  /// The tensor of a tile, built here unless it exists.
  Value getTensor(Value tile, Value destination = {});
  /// The tile as a tensor of `elementType`, converted from its own.
  Value getTensorAs(Value tile, Type elementType, Value destination = {});

  /// One loop per dimension of `shape` that runs `body`; no results.
  void forEach(Location loc, ArrayRef<int64_t> shape,
               llvm::function_ref<void(OpBuilder &, ArrayRef<Value>)> body);
  /// Tensors of `types`, every element computed by `body` from its indices and
  /// the elements of `destinations` (new tensors by default) there.
  SmallVector<Value>
  generate(Location loc, ArrayRef<RankedTensorType> types,
           ValueRange destinations,
           llvm::function_ref<SmallVector<Value>(OpBuilder &, ArrayRef<Value>,
                                                 ValueRange)>
               body);

  /// Lowers a scalar operation, or one element of an elementwise one.
  Value lowerScalar(OpBuilder &b, Operation *op, ValueRange operands);
  /// Inlines a combining region for two tuples of elements.
  SmallVector<Value> combine(OpBuilder &b, Region &region, ValueRange lhs,
                             ValueRange rhs);
  /// The value of a load that is done where its result is used.
  Value lowerDeferredLoad(OpBuilder &b, triton::LoadOp op, Element &element,
                          ArrayRef<Value> indices);
  /// The value of an expression that is the same in every element.
  Value getUniform(Value tile);

  /// Reports `op` as unsupported and keeps going, so that all are reported.
  void fail(Operation *op, const Twine &reason = "");
  /// A placeholder after a failure.
  Value getPoison(OpBuilder &b, Location loc, Type type);

  // The launch context.
  Value getContextField(OpBuilder &b, Location loc, unsigned index);
  Value getOpaqueNull(OpBuilder &b, Location loc);
  /// The address of a zero-terminated string constant.
  Value getString(OpBuilder &b, Location loc, StringRef text);
  /// Calls a function of the runtime or the C library.
  Value callExternal(OpBuilder &b, Location loc, StringRef name, Type result,
                     ValueRange operands);

private:
  friend class Element;

  // ScalarCode.cpp
  void setScalars(ValueRange from, ValueRange to);
  void inlineScalar(OpBuilder &b, Operation *op);
  /// Inlines a block of scalar code whose arguments are set; returns its
  /// results.
  SmallVector<Value> inlineScalars(OpBuilder &b, Block &block);

  void lowerMap(triton::MapElementwiseOp op);

  // Control.cpp
  void lowerBlock(Block &block);
  void lowerFor(scf::ForOp op);
  void lowerIf(scf::IfOp op);
  void lowerWhile(scf::WhileOp op);
  void lowerBranch(Operation *op);
  void lowerCall(triton::CallOp op);
  void lowerReturn(triton::ReturnOp op);
  void bindArguments(ValueRange from, Block::BlockArgListType to);
  void bindResults(ValueRange from, ValueRange to, size_t first = 0);
  void appendOperands(ValueRange values, SmallVectorImpl<Value> &operands);
  void moveInto(MutableArrayRef<Value> values, ArrayRef<Value> destinations);
  Value copyTensor(Value tensor);
  Value getOffsetTensor(Value tile, Value destination = {});

  // Lowering.cpp
  void lower(Operation *op);
  void lowerTile(Operation *op);
  void lowerPointerTile(Operation *op);
  Value findDestination(Value tile);
  bool readsLater(BlockArgument carried, Operation *op);
  bool dependsOn(Value tile, Value other);

  // Memory.cpp
  void lowerLoad(triton::LoadOp op);
  void lowerStore(triton::StoreOp op);
  void lowerAtomicRMW(triton::AtomicRMWOp op);
  void lowerAtomicCAS(triton::AtomicCASOp op);
  void lowerAtomic(Operation *op, Value ptr, Value mask,
                   llvm::function_ref<Value(OpBuilder &, Value address,
                                            Element &, ArrayRef<Value>)>
                       body);

  // Reduce.cpp
  void lowerReduce(triton::ReduceOp op);
  void lowerScan(triton::ScanOp op);
  void lowerHistogram(triton::HistogramOp op);

  // Dot.cpp
  void lowerDot(triton::DotOp op);

  // Debug.cpp
  void lowerAssert(triton::AssertOp op);
  void lowerPrint(triton::PrintOp op);

  triton::FuncOp source;
  const LoweringOptions &options;
  OpBuilder builder;
  Placement placement;
  Value context;
  /// Operations that cannot be compiled; each is reported once.
  llvm::SmallPtrSet<Operation *, 4> unsupported;
  llvm::DenseMap<Block *, Block *> blocks;
  llvm::DenseMap<Value, Value> scalars, tensors, bases;
  llvm::DenseMap<Value, std::pair<Value, Value>> moved;
};

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LOWERING_H
