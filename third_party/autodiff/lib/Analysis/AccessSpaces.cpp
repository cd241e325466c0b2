//===- AccessSpaces.cpp - Access spaces that several passes ask for -------===//
#include "autodiff/Analysis/AccessSpaces.h"

#include "autodiff/Support/State.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

ReasonOr<AccessSpace>
AccessSpaces::find(Operation *access, Kind kind,
                   llvm::function_ref<ReasonOr<AccessSpace>()> compute) {
  Operation *kernel = access->getParentOfType<triton::FuncOp>();
  if (current.insert(kernel).second) {
    llvm::hash_code state = hashState(kernel);
    auto known = versions.find(kernel);
    if (known == versions.end() || known->second.state != state)
      versions[kernel] = {state};
  }
  assert(versions[kernel].state == hashState(kernel) &&
         "a pass has changed a kernel whose spaces it asks for");
  auto &spaces = versions[kernel].spaces;
  std::pair<Operation *, int> key(access, static_cast<int>(kind));
  auto known = spaces.find(key);
  if (known == spaces.end())
    known = spaces.try_emplace(key, compute()).first;
  return known->second;
}

ReasonOr<AccessSpace> AccessSpaces::of(Operation *access, From from) {
  return find(access, from == From::Memory ? Kind::Memory : Kind::Launch,
              [&] { return AccessSpace::of(access, nullptr, from); });
}

ReasonOr<AccessSpace> AccessSpaces::reachOf(Operation *access) {
  return find(access, Kind::Reach,
              [&] { return AccessSpace::reachOf(access); });
}
