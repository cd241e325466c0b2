//===- Descriptors.cpp - Tensor descriptors as expressions of Python ------===//
#include "Expression.h"

#include "Types.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

using Result = std::optional<Text>;

/// `[x, y]`.
static std::string listText(ValueRange values, Use use, Operand operand) {
  SmallVector<std::string> texts;
  for (Value value : values)
    texts.push_back(operand(value, use).text);
  return "[" + llvm::join(texts, ", ") + "]";
}

static Result write(tt::MakeTensorDescOp make, Operand operand) {
  // Triton accepts nothing but 1 for the last stride.
  std::optional<Attribute> last = elementOf(make.getStrides().back());
  if (!last || !cast<IntegerAttr>(*last).getValue().isOne())
    return std::nullopt;
  std::string text = "tl.make_tensor_descriptor(";
  text += operand(make.getBase(), Use::Alone).text + ", ";
  text += listText(make.getShape(), Use::Joined, operand) + ", ";
  text += listText(make.getStrides(), Use::Joined, operand) + ", ";
  text += shapeText(make.getType().getBlockType());
  if (make.getPadding() == tt::PaddingOption::PAD_NAN)
    text += ", padding_option=\"nan\"";
  return Text{text + ")"};
}

static Result write(tt::DescriptorLoadOp load, Operand operand) {
  if (load.getCache() != tt::CacheModifier::NONE ||
      load.getEvict() != tt::EvictionPolicy::NORMAL || load.getCachePolicy())
    return std::nullopt;
  std::string text = operand(load.getDesc(), Use::Alone).within(Binding::Atom);
  return Text{text + ".load(" +
              listText(load.getIndices(), Use::Alone, operand) + ")"};
}

/// The method that combines memory with a block.
static llvm::StringRef methodOf(tt::DescriptorReduceKind kind) {
  switch (kind) {
  case tt::DescriptorReduceKind::ADD:
    return "atomic_add";
  case tt::DescriptorReduceKind::MIN:
    return "atomic_min";
  case tt::DescriptorReduceKind::MAX:
    return "atomic_max";
  case tt::DescriptorReduceKind::AND:
    return "atomic_and";
  case tt::DescriptorReduceKind::OR:
    return "atomic_or";
  case tt::DescriptorReduceKind::XOR:
    return "atomic_xor";
  case tt::DescriptorReduceKind::INC:
  case tt::DescriptorReduceKind::DEC:
    return "";
  }
  return "";
}

/// `desc.method([x, y], block)`.
template <typename Store>
static Result writeStore(Store store, llvm::StringRef method, Operand operand) {
  if (method.empty())
    return std::nullopt;
  std::string text = operand(store.getDesc(), Use::Alone).within(Binding::Atom);
  text += "." + method.str() + "(" +
          listText(store.getIndices(), Use::Alone, operand);
  return Text{text + ", " + operand(store.getSrc(), Use::Alone).text + ")"};
}

static Result write(tt::DescriptorGatherOp gather, Operand operand) {
  std::string text =
      operand(gather.getDesc(), Use::Alone).within(Binding::Atom) + ".gather(";
  text += operand(gather.getXOffsets(), Use::Alone).text + ", ";
  return Text{text + operand(gather.getYOffset(), Use::Alone).text + ")"};
}

static Result write(tt::DescriptorScatterOp scatter, Operand operand) {
  std::string text =
      operand(scatter.getDesc(), Use::Alone).within(Binding::Atom) +
      ".scatter(";
  text += operand(scatter.getSrc(), Use::Alone).text + ", ";
  text += operand(scatter.getXOffsets(), Use::Alone).text + ", ";
  return Text{text + operand(scatter.getYOffset(), Use::Alone).text + ")"};
}

Result mlir::autodiff::source::descriptorText(Operation *op, Operand operand) {
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<tt::MakeTensorDescOp, tt::DescriptorLoadOp, tt::DescriptorGatherOp,
            tt::DescriptorScatterOp>(
          [&](auto access) { return write(access, operand); })
      .Case([&](tt::DescriptorStoreOp store) {
        return writeStore(store, "store", operand);
      })
      .Case([&](tt::DescriptorReduceOp reduce) {
        return writeStore(reduce, methodOf(reduce.getKind()), operand);
      })
      .Default([](Operation *) { return std::nullopt; });
}
