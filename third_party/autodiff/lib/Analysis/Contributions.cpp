//===- Contributions.cpp - What kernels add to gradients ------------------===//
#include "autodiff/Analysis/Contributions.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Support/State.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// One contribution
//===----------------------------------------------------------------------===//

scf::ForOp Contribution::getPrimalLoop() const {
  return dyn_cast<scf::ForOp>(load->getParentOp());
}

ReasonOr<AccessSpace> Contribution::getSpace() const {
  return spaces->of(load);
}

ReasonOr<AccessSpace> Contribution::getExactSpace() const {
  return exactly(getSpace());
}

bool Contribution::isOuter() const {
  return isa<triton::FuncOp>((*this)->getParentOp());
}

scf::ForOp Contribution::getLoop() const {
  return dyn_cast<scf::ForOp>((*this)->getParentOp());
}

std::optional<LoopNest> Contribution::getNest() const {
  LoopNest nest;
  Operation *parent = (*this)->getParentOp();
  for (; !isa<triton::FuncOp>(parent); parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop || !loop->hasAttr(kParallelAttr))
      return std::nullopt;
    nest.push_back(loop);
  }
  std::reverse(nest.begin(), nest.end());
  return nest;
}

SmallVector<scf::IfOp> Contribution::getBranches() const {
  SmallVector<scf::IfOp> branches;
  for (Operation *parent = (*this)->getParentOp(); !isa<triton::FuncOp>(parent);
       parent = parent->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(parent))
      branches.push_back(branch);
  return branches;
}

ReasonOr<LinearForm> Contribution::getForm() const {
  return LinearForm::of(AccumulateOp(*this).getPtr());
}

Obstacle Contribution::findOwner() const {
  AccumulateOp op = *this;
  if (op.getWhole())
    return because(op, "each element's whole sum is made in one place");
  return std::nullopt;
}

ReasonOr<AccessSpace> mlir::autodiff::exactly(ReasonOr<AccessSpace> space) {
  if (!space || space->isExact())
    return space;
  return space->whyInexact();
}

//===----------------------------------------------------------------------===//
// All of a module
//===----------------------------------------------------------------------===//

Contributions::Contributions(Operation *module, AnalysisManager &manager)
    : module(cast<ModuleOp>(module)),
      spaces(manager.getAnalysis<AccessSpaces>()) {}

void Contributions::update() {
  triton::FuncOp differentiated = getDifferentiated(module);
  assert((!isCurrent || kernel == differentiated) && "a copy came meanwhile");
  if (isCurrent)
    return;
  isCurrent = true;
  llvm::hash_code now = hashState(differentiated);
  if (kernel == differentiated && state == now)
    return;
  std::tie(kernel, state) = std::pair(differentiated, now);
  sites = collectSites(kernel);
  digits.reset();
}

static bool isRemainder(const GradientUse &use) {
  return use.upstreams.empty() &&
         llvm::all_of(use.contributions,
                      [](Contribution op) { return op.getRemainder(); });
}

GradientUses Contributions::in(triton::FuncOp backward) {
  update();
  GradientUses uses;
  backward.walk([&](Operation *op) {
    if (auto upstream = dyn_cast<UpstreamOp>(op))
      uses[upstream.getArgument()].upstreams.push_back(upstream);
    else if (auto sum = dyn_cast<AccumulateOp>(op)) {
      GradientUse &use = uses[sum.getArgument()];
      (sum.getMoved() ? use.alternatives : use.contributions)
          .emplace_back(sum, cast<triton::LoadOp>(sites.at(sum.getSite())),
                        spaces);
    }
  });
  return uses;
}

GradientUses Contributions::ownedBy(triton::FuncOp backward) {
  GradientUses own;
  for (auto &[argument, use] : in(backward))
    if (!isRemainder(use))
      own.try_emplace(argument, use);
  for (triton::FuncOp other : getBackwards(module))
    if (other != backward)
      for (auto &[argument, use] : in(other))
        if (!isRemainder(use))
          own.erase(argument);
  return own;
}

SmallVector<Operation *>
Contributions::getStores(ArrayRef<UpstreamOp> upstreams) {
  update();
  return llvm::map_to_vector(
      upstreams, [&](UpstreamOp op) { return sites.at(op.getSite()); });
}

ArrayRef<ScalarExpr> Contributions::getDigits() {
  update();
  if (!digits)
    digits = findProgramDigits(kernel);
  return *digits;
}

Obstacle Contributions::findSharing(const AccessSpace &space,
                                    Operation *access) {
  SmallVector<ScalarExpr> shared =
      findUnmentioned(getDigits(), space.getProgramDigits());
  if (shared.empty())
    return std::nullopt;
  return because(access,
                 "programs that differ in {0} load the same elements at {1}",
                 shared, access);
}

static SmallVector<Operation *> getLoads(ArrayRef<Contribution> contributions) {
  return llvm::map_to_vector(
      contributions,
      [](const Contribution &each) -> Operation * { return each.getLoad(); });
}

ReasonOr<AccessSpace>
Contributions::ofAll(ArrayRef<Contribution> contributions) {
  return spaces.ofAll(getLoads(contributions));
}

ReasonOr<AccessSpace>
Contributions::findFor(ArrayRef<Contribution> contributions) {
  return spaces.findFor(getLoads(contributions));
}

ReasonOr<AccessSpace> Contributions::findFor(ArrayRef<UpstreamOp> upstreams) {
  return spaces.findFor(getStores(upstreams));
}

SmallVector<ReachAttr>
Contributions::findReaches(ArrayRef<Contribution> contributions) {
  SmallVector<ReachAttr> reaches;
  llvm::DenseSet<Operation *> seen;
  for (Operation *load : getLoads(contributions)) {
    if (!seen.insert(load).second)
      continue;
    std::optional<AccessSpace> space = spaces.reachOf(load);
    reaches.push_back(space ? space->toReach() : ReachAttr());
  }
  return reaches;
}

SmallVector<triton::FuncOp> mlir::autodiff::getUnscheduled(ModuleOp module) {
  SmallVector<triton::FuncOp> kernels = getBackwards(module);
  llvm::erase_if(
      kernels, [](triton::FuncOp kernel) { return !getGrid(kernel).empty(); });
  return kernels;
}

llvm::DenseMap<unsigned, Operation *>
mlir::autodiff::collectSites(triton::FuncOp primal) {
  llvm::DenseMap<unsigned, Operation *> sites;
  primal.walk([&](Operation *op) {
    if (auto site = op->getAttrOfType<IntegerAttr>(kSiteAttr))
      sites[site.getInt()] = op;
  });
  return sites;
}
