//===- StoreOrder.cpp - Code that LLVM's SROA breaks ----------------------===//
//
// LLVM's SROA turns a variable into shuffles, if one block writes vectors to
// parts of it and one load reads it as a whole. LLVM 22 inserts the shuffles
// where the part with the highest address is stored, though a part that is
// stored later may not be computed yet. (Later releases insert them behind all
// stores.)
//
//===----------------------------------------------------------------------===//

#include "StoreOrder.h"

#include "autodiff/Support/Mutation.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PassInstrumentation.h"

using namespace llvm;

namespace {
/// A vector load or store in a variable; offsets in bytes.
struct Access {
  Instruction *instruction;
  int64_t begin, end;

  bool overlaps(const Access &other) const {
    return begin < other.end && other.begin < end;
  }
};
/// The accesses of a variable, in program order within each block.
struct Accesses {
  std::vector<Access> loads, stores;
};
} // namespace

static DenseMap<const Value *, Accesses> findAccesses(Function &function) {
  const DataLayout &layout = function.getDataLayout();
  DenseMap<const Value *, Accesses> result;
  for (Instruction &instruction : instructions(function)) {
    const Value *pointer = getLoadStorePointerOperand(&instruction);
    if (!pointer)
      continue;
    Type *type = getLoadStoreType(&instruction);
    if (!isa<FixedVectorType>(type))
      continue;
    APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    const Value *variable = pointer->stripAndAccumulateConstantOffsets(
        layout, offset, /*AllowNonInbounds=*/true);
    if (!isa<AllocaInst>(variable))
      continue;
    int64_t begin = offset.getSExtValue();
    Access access{&instruction, begin,
                  begin + int64_t(layout.getTypeStoreSize(type))};
    Accesses &of = result[variable];
    (isa<LoadInst>(instruction) ? of.loads : of.stores).push_back(access);
  }
  return result;
}

/// Whether the parts that a load combines are not stored in the order of their
/// addresses.
static bool isOutOfOrder(const Access &whole, const Accesses &accesses) {
  if (count_if(accesses.loads,
               [&](const Access &load) { return load.overlaps(whole); }) > 1)
    return false;
  const Access *last = nullptr;
  for (const Access &store : accesses.stores) {
    if (!store.overlaps(whole))
      continue;
    if (last && last->begin > store.begin &&
        last->instruction->getParent() == store.instruction->getParent())
      return true;
    last = &store;
  }
  return false;
}

void mlir::autodiff::cpu::skipUnsoundSROA(
    PassInstrumentationCallbacks &callbacks) {
  callbacks.registerShouldRunOptionalPassCallback([](StringRef pass, Any unit) {
    auto *function = llvm::any_cast<const Function *>(&unit);
    if (pass != "SROAPass" || !function ||
        mutation::isMade("cpu-stores:in any order"))
      return true;
    return none_of(findAccesses(const_cast<Function &>(**function)),
                   [](const auto &variable) {
                     return any_of(variable.second.loads,
                                   [&](const Access &load) {
                                     return isOutOfOrder(load, variable.second);
                                   });
                   });
  });
}
