//===- BitAlgebra.h - Bits as functions of the bits of others ---*- C++ -*-===//
//
// Kernels select, negate, round and pack floats by arithmetic on their bits.
// Such arithmetic is a function of bits, whatever it is written with. Here a
// bit is a decision diagram over conditions. At its leaves are exclusive ors of
// bits of *sources*, values that are not looked into: floats, conditions, and
// integers of other origin. Two bits are the same function if they are the same
// number.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_TRANSFORMS_NORMALIZE_BITALGEBRA_H
#define AUTODIFF_TRANSFORMS_NORMALIZE_BITALGEBRA_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <optional>
#include <vector>

namespace mlir::autodiff {

/// A bit of a source. The order of sources is that in which they were named.
struct Atom {
  unsigned source, place;

  auto key() const { return std::pair(source, place); }
  bool operator==(const Atom &other) const { return key() == other.key(); }
  bool operator<(const Atom &other) const { return key() < other.key(); }
};

/// A function of atoms, by its number.
using Bit = unsigned;
/// The bits of an integer, the lowest first.
using BitForm = SmallVector<Bit, 32>;

class BitAlgebra {
public:
  /// What a bit is made of. Without a condition, it is the exclusive or of
  /// `atoms` and `one`; with one, it is one of two others.
  struct Node {
    SmallVector<Atom, 1> atoms;
    bool one = false;
    std::optional<Atom> condition = std::nullopt;
    Bit whenOne = 0, whenZero = 0;
  };

  const Node &operator[](Bit bit) const { return nodes[bit]; }
  Value getSource(const Atom &atom) const { return sources[atom.source]; }

  Bit constant(bool one);
  Bit atom(Value source, unsigned place);
  Bit exclusive(Bit a, Bit b);
  Bit negation(Bit a) { return exclusive(a, constant(true)); }
  /// None where bits of floats are combined that are not conditions.
  std::optional<Bit> both(Bit a, Bit b);
  std::optional<Bit> either(Bit a, Bit b);
  std::optional<Bit> choose(Bit condition, Bit a, Bit b);
  /// The bit where an atom is known.
  Bit given(Bit bit, const Atom &atom, bool one);

  /// The condition to decide first, if there is one.
  std::optional<Atom> findCondition(Bit bit) const;
  /// Whether an atom may be a condition: a bool, or the sign of a float.
  bool mayDecide(const Atom &atom) const;

  /// The same function of other atoms; none where that is too much.
  using Renaming = llvm::function_ref<std::optional<Bit>(const Atom &)>;
  std::optional<Bit> rename(Bit bit, Renaming renaming);
  /// The function of which `a` and `b` are values, and whose atoms `merge`
  /// gives for each pair of theirs. None if they are different functions.
  using Merging =
      llvm::function_ref<std::optional<Bit>(const Atom &, const Atom &)>;
  std::optional<Bit> unify(Bit a, Bit b, Merging merge);

  void visitAtoms(Bit bit, llvm::function_ref<void(const Atom &)> visit) const;
  void visitConditions(Bit bit,
                       llvm::function_ref<void(const Atom &)> visit) const;

private:
  Bit add(Node node);
  Bit leaf(SmallVector<Atom, 1> atoms, bool one);
  Bit decide(const Atom &condition, Bit whenOne, Bit whenZero);
  bool comesFirst(const Atom &a, const Atom &b) const;
  std::optional<Atom> firstOf(std::optional<Atom> a,
                              std::optional<Atom> b) const;

  std::vector<Node> nodes;
  std::vector<Value> sources;
  std::map<void *, unsigned> numbers;
  std::map<std::tuple<std::vector<Atom>, bool>, Bit> leaves;
  std::map<std::tuple<Atom, Bit, Bit>, Bit> decisions;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_NORMALIZE_BITALGEBRA_H
