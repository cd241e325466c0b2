//===- Costs.cpp - What moving and computing values costs -----------------===//
#include "Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::autodiff;

// Measured on an H100 (docs/performance.md): a thread with twice as many
// registers leaves a processor too few warps to hide what they wait for. Each
// thread needs some for addresses, and every program adds sums to the others'.
constexpr double kRegistersPerThread = 128, kRegistersOfProcessor = 64 * 1024;
constexpr int kMostWarps = 32, kUsualWarps = 4, kMostPrograms = 4,
              kAddressesPerThread = 8;
// A row of 128 elements, 65536 of them: 25 µs with 8 programs of one warp, 33
// with 4 and 57 with 2.
constexpr int kFewestPrograms = 2, kFewestWarps = 8;

int mlir::autodiff::warpsFor(double registers) {
  int warps = 1;
  while (warps < kMostWarps && registers > 32 * warps * kRegistersPerThread)
    warps *= 2;
  return warps;
}

double mlir::autodiff::registersOfWarpsFor(double registers) {
  return 32 * std::max(warpsFor(registers), kUsualWarps) * kRegistersPerThread;
}

ProgramRange mlir::autodiff::programsFor(double registers) {
  int warps = warpsFor(registers);
  double threads = 32 * std::max(warps, kUsualWarps);
  int least = std::max(kFewestPrograms, kFewestWarps / warps);
  int most =
      std::clamp(static_cast<int>(kRegistersOfProcessor /
                                  (registers + kAddressesPerThread * threads)),
                 1, std::max(kMostPrograms, least));
  return {std::min(least, most), most};
}

double mlir::autodiff::bytesOfProduct(triton::DotOp dot) {
  // A Hopper or Ampere GPU does about 150 multiply-adds per byte.
  auto lhs = cast<RankedTensorType>(dot.getA().getType());
  return cast<RankedTensorType>(dot.getType()).getNumElements() *
         lhs.getShape().back() / 150.0;
}

double mlir::autodiff::bytesOfArithmetic(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1 ||
      op->getNumRegions() != 0 || !op->hasTrait<OpTrait::Elementwise>() ||
      !isMemoryEffectFree(op))
    return 0;
  // An H100 does about 8 operations on float32 in the time that it moves a
  // byte, 4 on integers, one exponential. Kernels that do little else than move
  // memory hide arithmetic behind it, so that a quarter is felt.
  constexpr double kFloats = 4 * 8, kIntegers = 4 * 4, kSpecial = 4;
  Type type = op->getOperandTypes().front();
  double perByte = isFloat(type) ? kFloats : kIntegers;
  if (isa<math::MathDialect>(op->getDialect()) ||
      isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
          arith::RemUIOp, triton::ExternElementwiseOp>(op))
    perByte = kSpecial;
  return elementsOf(op->getResult(0).getType()) / perByte;
}

/// Adds up the tiles that are loaded for `value` in the loop and before it.
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

/// What the instructions of a product of so many rows and columns read for a
/// step along the axis that they sum over. One of Hopper multiplies 64 rows by
/// up to 256 columns.
static double readFor(int64_t rows, int64_t columns) {
  constexpr int64_t kRows = 64, kColumns = 256;
  double down = llvm::divideCeil(rows, kRows);
  double across = llvm::divideCeil(columns, kColumns);
  return across * rows + down * columns;
}

static ProductCosts costsOf(scf::ForOp loop) {
  ProductCosts costs;
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
    costs.read += readFor(rows, columns);
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
  ProductCosts most;
  kernel.walk([&](scf::ForOp loop) {
    ProductCosts costs = costsOf(loop);
    if (costs.work * costs.getLive() > most.work * most.getLive())
      most = costs;
  });
  return most;
}

// Measured on an H100 (docs/performance.md): of 255 registers a thread, some
// 190 can hold elements; half of the shared memory lets a second group of
// warps fill in.
constexpr double kElementsPerThread = 192, kThreadsPerWarp = 32;
constexpr double kHalfOfSharedMemory = 108 * 1024;

std::optional<int> ProductCosts::getWarps() const {
  double four = 4 * kThreadsPerWarp * kElementsPerThread;
  if (getLive() <= four)
    return 4;
  // A group of four warps takes 64 rows.
  if (getLive() <= 2 * four && rows >= 128)
    return 8;
  return std::nullopt;
}

int ProductCosts::getStages(double sharedMemory) const {
  auto fit = [&](double memory) {
    return static_cast<int>((memory - kept) / std::max(loaded, 1.0));
  };
  int stages =
      getWarps() == 4 ? fit(std::min(kHalfOfSharedMemory, sharedMemory)) : 0;
  if (stages < 2)
    stages = fit(sharedMemory);
  return std::clamp(stages, 1, 3);
}
