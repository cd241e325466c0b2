//===- Costs.cpp - What moving and computing values costs -----------------===//
#include "autodiff/Analysis/Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::autodiff;

int mlir::autodiff::warpsFor(const Target &target, double registers) {
  int warps = 1;
  while (warps < target.getMostWarps() &&
         registers > target.warpSize * warps * Target::kRegistersPerThread)
    warps *= 2;
  return warps;
}

/// The threads of a program that needs so many registers; it has at least
/// Triton's usual number of warps.
static double threadsFor(const Target &target, double registers) {
  return target.warpSize *
         std::max<int64_t>(warpsFor(target, registers), Target::kUsualWarps);
}

double mlir::autodiff::registersOfWarpsFor(const Target &target,
                                           double registers) {
  return threadsFor(target, registers) * Target::kRegistersPerThread;
}

ProgramRange mlir::autodiff::programsFor(const Target &target,
                                         double registers) {
  // Each thread needs some registers for addresses.
  double each =
      registers + Target::kAddressesPerThread * threadsFor(target, registers);
  int64_t least = std::max(Target::kFewestPrograms,
                           Target::kFewestWarps / warpsFor(target, registers));
  int64_t most =
      std::clamp(static_cast<int64_t>(target.processor.registers / each),
                 int64_t(1), std::max(Target::kMostPrograms, least));
  return {std::min(least, most), most};
}

double mlir::autodiff::bytesOfProduct(triton::DotOp dot) {
  auto lhs = cast<RankedTensorType>(dot.getA().getType());
  return cast<RankedTensorType>(dot.getType()).getNumElements() *
         lhs.getShape().back() / Target::of(dot).rates.multiplyAdds;
}

double mlir::autodiff::bytesOfArithmetic(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1 ||
      op->getNumRegions() != 0 || !op->hasTrait<OpTrait::Elementwise>() ||
      !isMemoryEffectFree(op))
    return 0;
  const Rates &rates = Target::of(op).rates;
  Type type = op->getOperandTypes().front();
  double perByte = isFloat(type) ? rates.floats : rates.integers;
  if (isa<math::MathDialect>(op->getDialect()) ||
      isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
          arith::RemUIOp, triton::ExternElementwiseOp>(op))
    perByte = rates.specials;
  return elementsOf(op->getResult(0).getType()) /
         (Target::kHiddenArithmetic * perByte);
}

/// Adds up the tiles that are loaded for `value`, in the loop and before it.
static void collectLoads(Value value, scf::ForOp loop, ProductCosts &costs,
                         llvm::DenseSet<Value> &visited) {
  Operation *op = value.getDefiningOp();
  if (!op || !visited.insert(value).second)
    return;
  bool isInside = loop->isProperAncestor(op);
  if (isa<triton::LoadOp>(op)) {
    (isInside ? costs.loaded : costs.kept) +=
        bytesOf(op->getResult(0).getType());
    return;
  }
  if (isInside || isa<triton::TransOp>(op) || op->getNumOperands() == 1)
    for (Value operand : op->getOperands())
      collectLoads(operand, loop, costs, visited);
}

/// The elements that the matrix instructions of a product with these rows and
/// columns read, for a step along the summed axis.
static double readFor(const MatrixUnit &unit, int64_t rows, int64_t columns) {
  double down = llvm::divideCeil(rows, unit.rows);
  double across = llvm::divideCeil(columns, unit.columns);
  return across * rows + down * columns;
}

static ProductCosts costsOf(scf::ForOp loop) {
  ProductCosts costs(Target::of(loop));
  llvm::DenseSet<Value> visited;
  auto yield = loop.getYieldedValues();
  for (auto dot : loop.getBody()->getOps<triton::DotOp>()) {
    auto type = cast<RankedTensorType>(dot.getType());
    auto lhs = cast<RankedTensorType>(dot.getA().getType());
    costs.work +=
        static_cast<double>(type.getNumElements()) * lhs.getShape().back();
    int64_t rows = lhs.getDimSize(lhs.getRank() - 2);
    int64_t columns = type.getShape().back();
    costs.rows = std::max(costs.rows, rows);
    costs.columns = std::max(costs.columns, columns);
    costs.read += readFor(costs.target->matrixUnit, rows, columns);
    if (!llvm::is_contained(yield, dot.getResult()))
      costs.between += type.getNumElements();
    for (Value operand : {dot.getA(), dot.getB()})
      if (operand.getDefiningOp<triton::TransOp>())
        costs.transposed += elementsOf(operand.getType());
    collectLoads(dot.getA(), loop, costs, visited);
    collectLoads(dot.getB(), loop, costs, visited);
  }
  if (costs.work == 0)
    return costs;
  for (Type type : loop.getResultTypes())
    if (isFloat(type))
      costs.carried += elementsOf(type);
  return costs;
}

ProductCosts ProductCosts::of(triton::FuncOp kernel) {
  ProductCosts most(Target::of(kernel));
  kernel.walk([&](scf::ForOp loop) {
    ProductCosts costs = costsOf(loop);
    if (costs.work * costs.getLive() > most.work * most.getLive())
      most = costs;
  });
  return most;
}

std::optional<int> ProductCosts::getWarps() const {
  if (getLive() <= target->getElementsOf(4))
    return 4;
  if (getLive() <= target->getElementsOf(8) &&
      rows >= 2 * target->matrixUnit.rowsOfFourWarps)
    return 8;
  return std::nullopt;
}

int ProductCosts::getStages() const {
  auto fit = [&](double memory) {
    int held = static_cast<int>((memory - kept) / std::max(loaded, 1.0));
    return held + (held > 0 && target->matrixUnit.takesRegisters);
  };
  double all = target->getSharedMemoryOfProducts();
  double half = target->getSharedMemoryOfTwo();
  int stages = getWarps() == 4 ? fit(std::min(half, all)) : 0;
  if (stages < 2)
    stages = fit(all);
  return std::clamp(stages, 1, Target::kMostStagesOfProducts);
}
