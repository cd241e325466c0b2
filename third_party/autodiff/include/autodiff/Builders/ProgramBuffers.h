//===- ProgramBuffers.h - Memory that belongs to one program ----*- C++ -*-===//
//
// Tapes, saved residuals and what is handed over live in buffers with a slot
// for every program of the grid. The layout is [entry][program][element of the
// tile], so that the number of entries need not be known inside the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_BUILDERS_PROGRAMBUFFERS_H
#define AUTODIFF_BUILDERS_PROGRAMBUFFERS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Builders.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The element type that memory holds for a value of this type (i1 takes a
/// byte).
Type getStoredElement(Type value);

/// The number of this program's slot of `entry` (an integer, null for 0).
Value slotOfProgram(OpBuilder &builder, Location loc, Value entry = {});

/// The same by the digits of the program ids: also for kernels whose programs
/// are numbered by these, where the launch is known to give each program a
/// place of its own in the box of their values.
Value slotOfDigits(OpBuilder &builder, Location loc, triton::FuncOp kernel,
                   llvm::ArrayRef<ScalarExpr> digits);

/// Pointers to a value of this type, whose elements are in memory one after the
/// other from `base` on.
Value pointersFrom(OpBuilder &builder, Location loc, Value base, Type type);

/// Stores `value` as memory holds it.
void storeTo(OpBuilder &builder, Location loc, Value pointers, Value value);

/// Loads a value of this type, where `mask` (null: everywhere) lets it.
Value loadFrom(OpBuilder &builder, Location loc, Value pointers, Value mask,
               Type type);

/// Stores `value` into a slot.
void storeToSlot(OpBuilder &builder, Location loc, Value buffer, Value slot,
                 Value value);

/// Loads a value of this type from a slot.
Value loadFromSlot(OpBuilder &builder, Location loc, Value buffer, Value slot,
                   Type type);

/// The number of buffers that `kernel` takes.
unsigned countBuffers(triton::FuncOp kernel);

/// A number that no buffer of the module's derived kernels has.
unsigned nextBuffer(ModuleOp module);

/// An argument of `kernel` for buffer `index`, with slots of a value of this
/// type.
BlockArgument appendBuffer(triton::FuncOp kernel, unsigned index, Type value,
                           BufferAttr description);

/// Calls a buffer in printed kernels by what it holds: `saved_x`.
void nameBuffer(BlockArgument buffer, BufferKind kind, Value held);

/// A buffer of so many elements of values of this type.
BufferAttr describeMemory(BufferKind kind, llvm::StringRef name, Type value,
                          ExprAttr elements);

/// A buffer with `entries` slots of a value of this type for every program.
BufferAttr describeBuffer(BufferKind kind, llvm::StringRef name, Type value,
                          ExprOperand entries);

/// Stores `value` of a forward where `atSave` is, into a new buffer `name`, and
/// loads it where `atLoad` is in the backward.
Value saveForBackward(OpBuilder &atSave, Value value, OpBuilder &atLoad,
                      llvm::StringRef name);

/// Stores what `push` records into the buffer `written`, and loads it from
/// `read`, the same buffer, at each of `pops`.
void lowerRecord(PushOp push, Value written, ArrayRef<PopOp> pops, Value read);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_PROGRAMBUFFERS_H
