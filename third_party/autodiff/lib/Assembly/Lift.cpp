//===- Lift.cpp - Inline assembly as arithmetic ---------------------------===//
//
// Triton packs elements of fewer than 32 bits into registers, and does not say
// which elements of a tile share one. So assembly only has a meaning if each
// element of a result depends on the operands' elements at the same position,
// and in the same way. Here all packed elements are one SSA value, a tile. That
// no element depends on its neighbours is shown bit by bit.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Assembly/Lift.h"

#include "autodiff/Assembly/Machine.h"
#include "autodiff/Assembly/SharedRegisters.h"
#include "autodiff/Support/Mutation.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::ptx;
using llvm::Error;
using llvm::Expected;

/// How many elements `Lanes` can tell apart.
constexpr unsigned kMostPacked = 32;

namespace {
/// The registers that an operand or a result is in.
struct Packing {
  unsigned bits;
  /// How many elements are in one register.
  unsigned perRegister;
  unsigned registers;
};
} // namespace

static Expected<Packing> getPacking(Type type, unsigned packed) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isIntOrFloat() ||
      !llvm::is_contained({8u, 16u, 32u, 64u}, element.getIntOrFloatBitWidth()))
    return makeError("operands or results of type " + llvm::to_string(element));
  unsigned bits = element.getIntOrFloatBitWidth();
  unsigned perRegister = std::min(std::max(32 / bits, 1u), packed);
  if (packed % perRegister)
    return makeError("registers that are not full");
  return Packing{bits, perRegister, packed / perRegister};
}

static Expected<SmallVector<Packing>> getPackings(TypeRange types,
                                                  unsigned packed) {
  SmallVector<Packing> packings;
  for (Type type : types) {
    Expected<Packing> packing = getPacking(type, packed);
    if (!packing)
      return packing.takeError();
    packings.push_back(*packing);
  }
  return packings;
}

/// Reads "=r,=&r,f,0,~{memory}".
static Expected<SmallVector<Constraint>>
parseConstraints(StringRef text, unsigned results, unsigned operands) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  SmallVector<Constraint> constraints;
  for (StringRef part : parts) {
    part = part.trim();
    if (part.starts_with("~"))
      continue;
    bool isResult = part.consume_front("=");
    bool isEarly = part.consume_front("&");
    if (isResult != (constraints.size() < results))
      return makeError("constraints that are not one for each register");
    Constraint constraint{0, std::nullopt, isEarly};
    unsigned number;
    if (!isResult && !part.getAsInteger(10, number) && number < results) {
      constraint = {constraints[number].width, number, isEarly};
    } else if (part == "r" || part == "f") {
      constraint.width = 32;
    } else if (part == "h" || part == "c") {
      constraint.width = 16;
    } else if (part == "l" || part == "d") {
      constraint.width = 64;
    } else {
      return makeError("constraint '" + part + "'");
    }
    constraints.push_back(constraint);
  }
  if (constraints.size() != results + operands)
    return makeError("constraints that are not one for each register");
  return constraints;
}

static unsigned countRegisters(ArrayRef<Packing> packings) {
  unsigned count = 0;
  for (const Packing &packing : packings)
    count += packing.registers;
  return count;
}

/// The contents of a register that holds elements of a tile from `first` on.
static Expected<Fields> packElements(Value tile, const Packing &packing,
                                     unsigned first, unsigned width) {
  Fields fields;
  unsigned used = packing.bits * packing.perRegister;
  if (used > width)
    return makeError("a register that is narrower than what it holds");
  for (unsigned i = 0; i < packing.perRegister; ++i)
    fields.push_back(makeField(tile, packing.bits, Lanes(1) << (first + i)));
  if (used < width)
    fields.push_back(makeField(Value(), width - used, 0));
  return fields;
}

/// Puts the operands into registers.
static Error initialize(Machine &machine, triton::ElementwiseInlineAsmOp op,
                        ArrayRef<Packing> packings,
                        ArrayRef<Constraint> constraints, unsigned results) {
  unsigned index = results;
  for (auto [operand, packing] : llvm::zip_equal(op.getArgs(), packings))
    for (unsigned i = 0; i < packing.registers; ++i, ++index) {
      Expected<Fields> fields = packElements(
          operand, packing, i * packing.perRegister, constraints[index].width);
      if (!fields)
        return fields.takeError();
      if (constraints[index].tied)
        machine.initialize(*constraints[index].tied, *fields);
      machine.initialize(index, std::move(*fields));
    }
  return Error::success();
}

/// The result whose elements are in registers from `index` on.
static Expected<Value> readResult(Machine &machine,
                                  triton::ElementwiseInlineAsmOp op, Type type,
                                  const Packing &packing, unsigned index) {
  Value result;
  Value leaf = op->getNumOperands() == 1 ? op->getOperand(0) : Value();
  for (unsigned i = 0; i < op.getPackedElement(); ++i) {
    Expected<Field> field = machine.readBits(
        index + i / packing.perRegister,
        packing.bits * (i % packing.perRegister), packing.bits);
    if (!field)
      return field.takeError();
    if ((field->all() & ~(Lanes(1) << i)) &&
        !mutation::isMade("assembly:elements that depend on one another"))
      return makeError("elements that are packed side by side depend on one "
                       "another, and Triton leaves open which these are");
    Type element = getElementTypeOrSelf(type);
    Value value =
        isa<FloatType>(element)
            ? machine.e.toFloat(field->value, cast<FloatType>(element))
            : machine.e.toInteger(field->value);
    if (!result)
      result = value;
    else if (!machine.e.areEqual(result, value, leaf) &&
             !mutation::isMade("assembly:elements that are treated apart"))
      return makeError("elements that are packed side by side are not treated "
                       "alike, and Triton leaves open which these are");
  }
  return result;
}

namespace {
/// Parsed assembly, with the registers that results and operands are in.
struct Assembly {
  SmallVector<Packing> results, operands;
  SmallVector<Constraint> constraints;
  Program program;
};
} // namespace

static Expected<Assembly> readAssembly(triton::ElementwiseInlineAsmOp op) {
  unsigned packed = op.getPackedElement();
  if (packed > kMostPacked)
    return makeError("more than " + Twine(kMostPacked) + " packed elements");
  Expected<SmallVector<Packing>> results =
      getPackings(op->getResultTypes(), packed);
  if (!results)
    return results.takeError();
  Expected<SmallVector<Packing>> operands =
      getPackings(op.getArgs().getTypes(), packed);
  if (!operands)
    return operands.takeError();
  Expected<SmallVector<Constraint>> constraints = parseConstraints(
      op.getConstraints(), countRegisters(*results), countRegisters(*operands));
  if (!constraints)
    return constraints.takeError();
  SmallVector<unsigned> widths = llvm::map_to_vector(
      *constraints, [](const Constraint &c) { return c.width; });
  Expected<Program> program = parseProgram(op.getAsmString(), widths);
  if (!program)
    return program.takeError();
  tieRegisters(*program, *constraints);
  return Assembly{std::move(*results), std::move(*operands),
                  std::move(*constraints), std::move(*program)};
}

/// Emits the results of the assembly in front of it.
static Expected<SmallVector<Value>> emit(Emitter &emitter,
                                         triton::ElementwiseInlineAsmOp op) {
  Expected<Assembly> assembly = readAssembly(op);
  if (!assembly)
    return assembly.takeError();
  Machine machine(assembly->program, emitter);
  if (Error error =
          initialize(machine, op, assembly->operands, assembly->constraints,
                     countRegisters(assembly->results)))
    return std::move(error);
  if (Error error = machine.run())
    return std::move(error);
  SmallVector<Value> values;
  unsigned index = 0;
  for (auto [result, packing] :
       llvm::zip_equal(op->getResults(), assembly->results)) {
    // Assembly without results has a dummy one, which it does not write.
    if (result.use_empty()) {
      values.push_back(Value());
    } else {
      Expected<Value> value =
          readResult(machine, op, result.getType(), packing, index);
      if (!value)
        return value.takeError();
      values.push_back(*value);
    }
    index += packing.registers;
  }
  return values;
}

Error mlir::autodiff::checkRegisters(triton::ElementwiseInlineAsmOp op,
                                     const Copies &copies) {
  Expected<Assembly> assembly = readAssembly(op);
  if (!assembly)
    return assembly.takeError();
  SmallVector<Value> values;
  for (auto [result, packing] :
       llvm::zip_equal(op->getResults(), assembly->results))
    values.append(packing.registers, result);
  unsigned results = values.size();
  for (auto [operand, packing] :
       llvm::zip_equal(op.getArgs(), assembly->operands))
    values.append(packing.registers, operand);
  return ptx::checkRegisters(assembly->program, assembly->constraints, results,
                             [&](unsigned result, unsigned operand) {
                               return copies.areConnected(values[result],
                                                          values[operand]);
                             });
}

StringRef mlir::autodiff::getMarker(Operation *op) {
  auto assembly = dyn_cast<triton::ElementwiseInlineAsmOp>(op);
  if (!assembly)
    return "";
  StringRef text = assembly.getAsmString().trim();
  if (!text.consume_front("//") && !text.consume_front(";"))
    return "";
  text = text.trim();
  return text.consume_front("autodiff.") ? text : "";
}

/// Whether all types are tiles of one shape, or scalars.
static bool haveOneShape(triton::ElementwiseInlineAsmOp op) {
  auto shapeOf = [](Type type) -> std::optional<ArrayRef<int64_t>> {
    if (auto tile = dyn_cast<RankedTensorType>(type))
      return tile.getShape();
    return std::nullopt;
  };
  Type first = op->getResult(0).getType();
  auto tile = dyn_cast<RankedTensorType>(first);
  if (tile && !tile.hasStaticShape())
    return false;
  auto isAlike = [&](Type type) { return shapeOf(type) == shapeOf(first); };
  return llvm::all_of(op->getResultTypes(), isAlike) &&
         llvm::all_of(op->getOperandTypes(), isAlike);
}

Error mlir::autodiff::liftAssembly(triton::ElementwiseInlineAsmOp op,
                                   SmallVectorImpl<Operation *> *emitted) {
  if (op->getNumResults() == 0 || !haveOneShape(op))
    return makeError("operands and results of different shapes");
  OpBuilder builder(op);
  Emitter emitter(builder, op.getLoc(), op->getResult(0).getType());
  Expected<SmallVector<Value>> values = emit(emitter, op);
  if (values) {
    for (auto [result, value] : llvm::zip_equal(op->getResults(), *values))
      if (value)
        result.replaceAllUsesWith(value);
    op->erase();
  }
  SmallVector<Operation *> used = emitter.removeUnused();
  if (values && emitted)
    llvm::append_range(*emitted, used);
  return values ? Error::success() : values.takeError();
}
