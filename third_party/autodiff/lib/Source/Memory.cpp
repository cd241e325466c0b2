//===- Memory.cpp - Loads, stores and atomics as expressions of Python ----===//
#include "Expression.h"
#include "Types.h"
#include "autodiff/Support/Mutation.h"

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

using Result = std::optional<Text>;

template <typename Access> static std::string hintsOf(Access access) {
  std::string hints;
  if (access.getCache() != tt::CacheModifier::NONE)
    hints += ", cache_modifier=\"." +
             tt::stringifyCacheModifier(access.getCache()).str() + "\"";
  if (access.getEvict() != tt::EvictionPolicy::NORMAL)
    hints += ", eviction_policy=\"" +
             tt::stringifyEvictionPolicy(access.getEvict()).str() + "\"";
  return hints;
}

static llvm::StringRef functionOf(tt::RMWOp kind) {
  switch (kind) {
  case tt::RMWOp::ADD:
  case tt::RMWOp::FADD:
    return "add";
  case tt::RMWOp::MAX:
  case tt::RMWOp::UMAX:
    return "max";
  case tt::RMWOp::MIN:
  case tt::RMWOp::UMIN:
    return "min";
  case tt::RMWOp::AND:
    return "and";
  case tt::RMWOp::OR:
    return "or";
  case tt::RMWOp::XOR:
    return "xor";
  case tt::RMWOp::XCHG:
    return "xchg";
  }
  return "";
}

template <typename Atomic> static std::string orderOf(Atomic atomic) {
  std::string order;
  if (atomic.getSem() != tt::MemSemantic::ACQUIRE_RELEASE &&
      !autodiff::mutation::isMade("source:one order of atomics"))
    order +=
        ", sem=\"" + tt::stringifyMemSemantic(atomic.getSem()).str() + "\"";
  if (atomic.getScope() != tt::MemSyncScope::GPU)
    order += ", scope=\"" + tt::stringifyMemSyncScope(atomic.getScope()).str() +
             "\"";
  return order;
}

Result mlir::autodiff::source::memoryText(Operation *op, Operand operand) {
  auto text = [&](Value value, Use use = Use::Alone) {
    return operand(value, use).text;
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](tt::LoadOp load) -> Result {
        std::string written = "tl.load(" + text(load.getPtr());
        if (load.getMask() &&
            !autodiff::mutation::isMade("source:loads without masks"))
          written += ", " + text(load.getMask());
        if (load.getOther())
          written += ", " + text(load.getOther(), Use::Stored);
        written += hintsOf(load);
        return Text{written +
                    (load.getIsVolatile() && !autodiff::mutation::isMade(
                                                 "source:no load is volatile")
                         ? ", volatile=True)"
                         : ")")};
      })
      .Case([&](tt::StoreOp store) -> Result {
        std::string written = "tl.store(" + text(store.getPtr());
        written += ", " + text(store.getValue(), Use::Stored);
        if (store.getMask() &&
            !autodiff::mutation::isMade("source:stores without masks"))
          written += ", " + text(store.getMask());
        return Text{written + hintsOf(store) + ")"};
      })
      .Case([&](tt::AtomicRMWOp atomic) -> Result {
        bool isUnsigned = llvm::is_contained({tt::RMWOp::UMAX, tt::RMWOp::UMIN},
                                             atomic.getAtomicRmwOp());
        Type element = getElementTypeOrSelf(atomic.getVal().getType());
        std::string type = typeText(element, isUnsigned);
        auto as = [&](Value value, const std::string &type) {
          return operand(value, Use::Object).within(Binding::Atom) + ".to(" +
                 type + ")";
        };
        std::string written =
            "tl.atomic_" + functionOf(atomic.getAtomicRmwOp()).str() + "(";
        if (isUnsigned)
          written += as(atomic.getPtr(), "tl.pointer_type(" + type + ")") +
                     ", " + as(atomic.getVal(), type);
        else
          written +=
              text(atomic.getPtr()) + ", " + text(atomic.getVal(), Use::Stored);
        if (atomic.getMask())
          written += ", " + text(atomic.getMask());
        written += orderOf(atomic) + ")";
        if (isUnsigned && !atomic->use_empty())
          written += ".to(" + typeText(element) + ")";
        return Text{written};
      })
      .Case([&](tt::AtomicCASOp atomic) -> Result {
        std::string written = "tl.atomic_cas(" + text(atomic.getPtr());
        written += ", " + text(atomic.getCmp());
        written += ", " + text(atomic.getVal());
        return Text{written + orderOf(atomic) + ")"};
      })
      .Default([](Operation *) { return std::nullopt; });
}
