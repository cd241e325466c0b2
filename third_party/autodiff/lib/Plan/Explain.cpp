//===- Explain.cpp - What kernels load, keep and read again ---------------===//
#include "Explain.h"

#include "PlanJson.h"
#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Target/Passes.h"

#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;

namespace {
/// Loads, stores and atomics by the argument that they go through.
using AccessesByArgument =
    llvm::MapVector<BlockArgument, SmallVector<Operation *>>;

class Explainer {
public:
  Explainer(triton::FuncOp primal, triton::FuncOp forward,
            ArrayRef<triton::FuncOp> backwards)
      : primal(primal), forward(forward), backwards(backwards) {}

  Object explain();

private:
  Array explainGradients();
  Array explainBuffers();
  Array explainReads();
  Array explainInactive();
  Array explainMiscomputed();

  triton::FuncOp primal, forward;
  ArrayRef<triton::FuncOp> backwards;
  AccessesByArgument primalAccesses, backwardAccesses;
};
} // namespace

static void collect(triton::FuncOp kernel, AccessesByArgument &accesses) {
  kernel.walk([&](Operation *op) {
    if (Value pointer = getAccessedPointer(op))
      for (BlockArgument base : getBaseArguments(pointer))
        accesses[base].push_back(op);
  });
}

static OperandAttr getOperand(BlockArgument argument) {
  auto kernel = cast<triton::FuncOp>(argument.getOwner()->getParentOp());
  return kernel.getArgAttrOfType<OperandAttr>(argument.getArgNumber(),
                                              kOperandAttr);
}

static Array positionsOf(ArrayRef<Operation *> ops) {
  std::vector<std::string> spelled;
  for (Operation *op : ops)
    if (std::string text = spellPosition(op->getLoc()); !text.empty())
      if (!llvm::is_contained(spelled, text))
        spelled.push_back(std::move(text));
  return Array(spelled);
}

static Array shapeOf(Type type) {
  Array shape;
  if (auto tile = dyn_cast<RankedTensorType>(type))
    for (int64_t size : tile.getShape())
      shape.push_back(size);
  return shape;
}

static Object describe(MLIRContext *context, const LinearForm::Term &term,
                       RankedTensorType tile) {
  Object object{{"coefficient", toJSON(context, term.coefficient)}};
  switch (const Dimension &dimension = term.dimension; dimension.kind) {
  case Dimension::Kind::Axis:
    object["kind"] = "axis";
    object["axis"] = dimension.axis;
    object["extent"] = tile ? tile.getDimSize(dimension.axis) : 1;
    break;
  case Dimension::Kind::Loop:
  case Dimension::Kind::Index:
    object["kind"] = dimension.kind == Dimension::Kind::Loop ? "loop" : "index";
    object["position"] = spellPosition(dimension.loop->getLoc());
    break;
  case Dimension::Kind::Program:
    object["kind"] = "program";
    object["number"] = toJSON(context, *dimension.digit);
    break;
  case Dimension::Kind::Place:
  case Dimension::Kind::Scalar:
  case Dimension::Kind::Site:
    break; // of derived kernels, and of forms that were asked for them
  }
  return object;
}

/// The memory that an access of the user's kernel goes to.
static Object describe(Operation *access) {
  Value pointer = getAccessedPointer(access);
  auto tile = dyn_cast<RankedTensorType>(pointer.getType());
  Object object{{"position", spellPosition(access->getLoc())},
                {"shape", shapeOf(pointer.getType())},
                {"terms", nullptr}};
  std::optional<LinearForm> form = LinearForm::of(pointer);
  if (!form)
    form = LinearForm::of(pointer, {}, ScalarExpr::From::Memory);
  if (!form)
    return object;
  Array terms;
  for (const LinearForm::Term &term : form->terms)
    terms.push_back(describe(access->getContext(), term, tile));
  object["terms"] = std::move(terms);
  object["constant"] = toJSON(access->getContext(), form->constant);
  return object;
}

Array Explainer::explainGradients() {
  Array gradients;
  for (auto &[base, ops] : backwardAccesses) {
    OperandAttr operand = getOperand(base);
    if (operand.getKind() != OperandKind::Gradient)
      continue;
    Array loads;
    for (Operation *op :
         primalAccesses.lookup(primal.getArgument(operand.getIndex())))
      if (isa<triton::LoadOp>(op))
        loads.push_back(describe(op));
    gradients.push_back(
        Object{{"argument", operand.getIndex()}, {"loads", std::move(loads)}});
  }
  return gradients;
}

/// The name of a value's computation, looking through conversions and changes
/// of shape.
static StringRef findSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    bool passes =
        isa<arith::ExtUIOp, arith::ExtFOp, arith::TruncFOp, ResidualOp>(op);
    if (!passes && !triton::isMove(op))
      return op->getName().getStringRef();
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  return argument.getOwner()->getParentOp()->getName().getStringRef();
}

Array Explainer::explainBuffers() {
  std::map<unsigned, Object> buffers;
  AccessesByArgument forwardAccesses;
  if (forward)
    collect(forward, forwardAccesses);
  for (auto *accesses : {&forwardAccesses, &backwardAccesses})
    for (auto &[base, ops] : *accesses) {
      OperandAttr operand = getOperand(base);
      if (operand.getKind() != OperandKind::Buffer)
        continue;
      for (Operation *op : ops)
        if (auto store = dyn_cast<triton::StoreOp>(op)) {
          Value value = store.getValue();
          Location loc =
              isa<BlockArgument>(value) ? value.getLoc() : op->getLoc();
          buffers.try_emplace(operand.getIndex(),
                              Object{{"buffer", operand.getIndex()},
                                     {"position", spellPosition(op->getLoc())},
                                     {"variable", findVariable(loc)},
                                     {"shape", shapeOf(value.getType())},
                                     {"source", findSource(value)}});
        }
    }
  Array list;
  for (auto &[index, buffer] : buffers)
    list.push_back(std::move(buffer));
  return list;
}

Array Explainer::explainReads() {
  std::map<unsigned, SmallVector<Operation *>> byArgument;
  for (auto &[base, ops] : backwardAccesses) {
    OperandAttr operand = getOperand(base);
    if (operand.getKind() == OperandKind::Argument)
      byArgument[operand.getIndex()].append(ops);
  }
  Array reads;
  for (auto &[argument, ops] : byArgument)
    reads.push_back(
        Object{{"argument", argument}, {"positions", positionsOf(ops)}});
  return reads;
}

Array Explainer::explainInactive() {
  llvm::DenseSet<unsigned> wanted, active;
  for (triton::FuncOp backward : backwards)
    for (BlockArgument argument : backward.getArguments()) {
      OperandAttr operand = getOperand(argument);
      if (operand.getKind() == OperandKind::Gradient)
        active.insert(operand.getIndex());
      if (backward.getArgAttr(argument.getArgNumber(), kWantedAttr))
        wanted.insert(operand.getIndex());
    }
  Array inactive;
  for (auto &[argument, ops] : primalAccesses) {
    unsigned index = argument.getArgNumber();
    if (!llvm::any_of(ops, llvm::IsaPred<triton::LoadOp>) ||
        active.contains(index))
      continue;
    bool isFloat = isa<FloatType>(getPointee(argument.getType()));
    inactive.push_back(
        Object{{"argument", index},
               {"reason", !isFloat                 ? "integer"
                          : wanted.contains(index) ? "independent"
                                                   : "unwanted"}});
  }
  return inactive;
}

/// Products that Triton computes wrongly in the user's kernel, but not in the
/// derived forward.
Array Explainer::explainMiscomputed() {
  Array products;
  primal.walk([&](triton::DotOp dot) {
    if (dot->hasAttr(kMiscomputedAttr))
      products.push_back(spellPosition(dot.getLoc()));
  });
  return products;
}

Object Explainer::explain() {
  collect(primal, primalAccesses);
  for (triton::FuncOp backward : backwards)
    collect(backward, backwardAccesses);
  return Object{{"gradients", explainGradients()},
                {"buffers", explainBuffers()},
                {"reads", explainReads()},
                {"inactive", explainInactive()},
                {"miscomputed", explainMiscomputed()}};
}

Object mlir::autodiff::explain(triton::FuncOp primal, triton::FuncOp forward,
                               ArrayRef<triton::FuncOp> backwards) {
  return Explainer(primal, forward, backwards).explain();
}
