//===- Debug.cpp - Assertions and printing --------------------------------===//

#include "Lowering.h"
#include "Numerics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

Value Lowering::callExternal(OpBuilder &b, Location loc, StringRef name,
                             Type result, ValueRange operands) {
  auto module = source->getParentOfType<ModuleOp>();
  SmallVector<Type> results;
  if (result)
    results.push_back(result);
  Operation *known = module.lookupSymbol(name);
  if (known &&
      !(isa<func::FuncOp>(known) && cast<func::FuncOp>(known).isDeclaration()))
    fail(source, "with the name of a function that is called, '" + name +
                     "'; give it another one");
  if (!known) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    auto function = func::FuncOp::create(
        top, loc, name,
        FunctionType::get(b.getContext(), operands.getTypes(), results));
    function.setPrivate();
  }
  auto call = func::CallOp::create(b, loc, name, results, operands);
  return result ? call.getResult(0) : Value();
}

Value Lowering::getString(OpBuilder &b, Location loc, StringRef text) {
  auto module = source->getParentOfType<ModuleOp>();
  std::string data = text.str();
  data.push_back('\0');
  std::string name;
  for (unsigned i = 0; name.empty() || module.lookupSymbol(name); ++i)
    name = "__text" + std::to_string(i);
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), data.size());
  auto global = LLVM::GlobalOp::create(top, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal, name,
                                       b.getStringAttr(data));
  return LLVM::AddressOfOp::create(b, loc, global);
}

/// The file position where an operation was written, for messages.
static std::string describe(Location loc) {
  std::string text;
  loc->walk([&](Location inner) {
    auto position = dyn_cast<FileLineColLoc>(inner);
    if (!position)
      return WalkResult::advance();
    text = (position.getFilename().getValue() + ":" +
            Twine(position.getLine()) + ": ")
               .str();
    return WalkResult::interrupt();
  });
  return text;
}

void Lowering::lowerAssert(tt::AssertOp op) {
  Location loc = op.getLoc();
  Value text = getString(
      builder, loc,
      describe(loc) + "device assertion failed: " + op.getMessage().str());
  RankedTensorType tile = asTile(op.getCondition().getType());
  auto body = [&](OpBuilder &b, ArrayRef<Value> indices) {
    Element element(*this, b);
    Value holds = element.get(op.getCondition(), indices);
    Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    Value fails =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, holds, no);
    scf::IfOp::create(b, loc, fails, [&](OpBuilder &b, Location loc) {
      callExternal(b, loc, "tad_cpu_assert", {}, {context, text});
      scf::YieldOp::create(b, loc);
    });
  };
  forEach(loc, tile ? tile.getShape() : ArrayRef<int64_t>(), body);
}

/// One line per element: the runtime gets the operand's number, the element's
/// position and its value as f64 or i64.
void Lowering::lowerPrint(tt::PrintOp op) {
  Location loc = op.getLoc();
  Value prefix = getString(builder, loc, op.getPrefix());
  Value isHex =
      arith::ConstantOp::create(builder, loc, builder.getBoolAttr(op.getHex()));
  if (op.getArgs().empty()) {
    callExternal(builder, loc, "tad_cpu_print_text", {}, {context, prefix});
    return;
  }
  for (unsigned number = 0; number < op.getArgs().size(); ++number) {
    Value arg = op.getArgs()[number];
    RankedTensorType tile = asTile(arg.getType());
    bool isSigned = op.getIsSigned()[number];
    auto body = [&](OpBuilder &b, ArrayRef<Value> indices) {
      Element element(*this, b);
      Value position = element.getIndex(loc, 0);
      for (auto [index, size] :
           llvm::zip(indices, tile ? tile.getShape() : ArrayRef<int64_t>()))
        position = arith::AddIOp::create(
            b, loc,
            arith::MulIOp::create(b, loc, position,
                                  element.getIndex(loc, size)),
            index);
      position = arith::IndexCastOp::create(b, loc, b.getI64Type(), position);
      Value value = element.get(arg, indices);
      Value operand =
          arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(number));
      auto real = dyn_cast<FloatType>(getElementTypeOrSelf(arg.getType()));
      if (real) {
        value = convertFloat(b, loc, value, real, b.getF64Type());
        callExternal(b, loc, "tad_cpu_print_float", {},
                     {context, prefix, operand, position, value});
        return;
      }
      if (isa<LLVM::LLVMPointerType>(value.getType()))
        value = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), value);
      else if (!value.getType().isInteger(64))
        value = isSigned && !value.getType().isInteger(1)
                    ? arith::ExtSIOp::create(b, loc, b.getI64Type(), value)
                          .getResult()
                    : arith::ExtUIOp::create(b, loc, b.getI64Type(), value)
                          .getResult();
      Value signedness =
          arith::ConstantOp::create(b, loc, b.getBoolAttr(isSigned));
      callExternal(
          b, loc, "tad_cpu_print_int", {},
          {context, prefix, operand, position, value, signedness, isHex});
    };
    forEach(loc, tile ? tile.getShape() : ArrayRef<int64_t>(), body);
  }
}
