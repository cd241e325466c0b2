//===- UserName.cpp - What the user wrote for an operation ----------------===//
#include "autodiff/Support/UserName.h"

#include "mlir/IR/TypeUtilities.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

/// Whether an atomic operation compares the bits of floats as integers.
static bool comparesBits(triton::AtomicRMWOp op) {
  auto cast = op.getVal().getDefiningOp<triton::BitcastOp>();
  return cast && isa<FloatType>(getElementTypeOrSelf(cast.getSrc().getType()));
}

static StringRef nameOf(triton::AtomicRMWOp op) {
  switch (op.getAtomicRmwOp()) {
  case triton::RMWOp::AND:
    return "tl.atomic_and";
  case triton::RMWOp::OR:
    return "tl.atomic_or";
  case triton::RMWOp::XOR:
    return "tl.atomic_xor";
  case triton::RMWOp::ADD:
  case triton::RMWOp::FADD:
    return "tl.atomic_add";
  case triton::RMWOp::MAX:
    return "tl.atomic_max";
  case triton::RMWOp::MIN:
    return "tl.atomic_min";
  // The bits of negative floats grow as the floats fall.
  case triton::RMWOp::UMAX:
    return comparesBits(op) ? "tl.atomic_min" : "tl.atomic_max";
  case triton::RMWOp::UMIN:
    return comparesBits(op) ? "tl.atomic_max" : "tl.atomic_min";
  case triton::RMWOp::XCHG:
    return "tl.atomic_xchg";
  }
  llvm_unreachable("unknown atomic operation");
}

std::string autodiff::spellForUser(Operation *op) {
  StringRef own = op->getName().getStringRef();
  StringRef name = llvm::StringSwitch<StringRef>(own)
                       .Case("tt.atomic_cas", "tl.atomic_cas")
                       .Case("tt.cat", "tl.cat")
                       .Case("tt.clampf", "tl.clamp")
                       .Case("tt.dot", "tl.dot")
                       .Case("tt.dot_scaled", "tl.dot_scaled")
                       .Case("tt.gather", "tl.gather")
                       .Case("tt.histogram", "tl.histogram")
                       .Case("tt.load", "tl.load")
                       .Case("tt.map_elementwise", "tl.map_elementwise")
                       .Case("tt.mulhiui", "tl.umulhi")
                       .Case("tt.reduce", "tl.reduce")
                       .Case("tt.scan", "tl.associative_scan")
                       .Case("tt.store", "tl.store")
                       .Case("scf.for", "for")
                       .Case("scf.if", "if")
                       .Case("scf.while", "while")
                       .Default(own);
  if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    name = nameOf(atomic);
  return ("'" + name + "'").str();
}
