//===- BitAlgebra.cpp - Bits as functions of the bits of others -----------===//
#include "BitAlgebra.h"

#include "autodiff/Support/Elements.h"

using namespace mlir;
using namespace mlir::autodiff;

Bit BitAlgebra::add(Node node) {
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

Bit BitAlgebra::leaf(SmallVector<Atom, 1> atoms, bool one) {
  std::tuple key(std::vector<Atom>(atoms.begin(), atoms.end()), one);
  auto [it, isNew] = leaves.try_emplace(std::move(key), nodes.size());
  return isNew ? add({std::move(atoms), one}) : it->second;
}

Bit BitAlgebra::constant(bool one) { return leaf({}, one); }

Bit BitAlgebra::atom(Value source, unsigned place) {
  auto [it, isNew] =
      numbers.try_emplace(source.getAsOpaquePointer(), sources.size());
  if (isNew)
    sources.push_back(source);
  return leaf({Atom{it->second, place}}, false);
}

bool BitAlgebra::mayDecide(const Atom &atom) const {
  Type type = getElementTypeOrSelf(getSource(atom).getType());
  return type.isInteger(1) ||
         (isFloat(type) && atom.place + 1 == type.getIntOrFloatBitWidth());
}

/// Bools are decided before signs: what bools choose between then has one form.
bool BitAlgebra::comesFirst(const Atom &a, const Atom &b) const {
  bool isSign = isFloat(getSource(a).getType());
  bool isOtherSign = isFloat(getSource(b).getType());
  return isSign != isOtherSign ? isOtherSign : a < b;
}

std::optional<Atom> BitAlgebra::firstOf(std::optional<Atom> a,
                                        std::optional<Atom> b) const {
  return !b || (a && comesFirst(*a, *b)) ? a : b;
}

std::optional<Atom> BitAlgebra::findCondition(Bit bit) const {
  return nodes[bit].condition;
}

/// A condition that is one of two bits which negate one another is a term of an
/// exclusive or.
Bit BitAlgebra::decide(const Atom &condition, Bit whenOne, Bit whenZero) {
  if (whenOne == whenZero)
    return whenOne;
  if (!nodes[whenOne].condition && !nodes[whenZero].condition &&
      nodes[whenOne].atoms == nodes[whenZero].atoms)
    return exclusive(whenZero, leaf({condition}, false));
  auto [it, isNew] =
      decisions.try_emplace({condition, whenOne, whenZero}, nodes.size());
  return isNew ? add({{}, false, condition, whenOne, whenZero}) : it->second;
}

Bit BitAlgebra::given(Bit bit, const Atom &atom, bool one) {
  Node node = nodes[bit];
  if (node.condition) {
    if (*node.condition == atom)
      return one ? node.whenOne : node.whenZero;
    Bit whenOne = given(node.whenOne, atom, one);
    Bit whenZero = given(node.whenZero, atom, one);
    return decide(*node.condition, whenOne, whenZero);
  }
  auto found = llvm::find(node.atoms, atom);
  if (found == node.atoms.end())
    return bit;
  node.atoms.erase(found);
  return leaf(std::move(node.atoms), node.one ^ one);
}

Bit BitAlgebra::exclusive(Bit a, Bit b) {
  std::optional<Atom> condition = firstOf(findCondition(a), findCondition(b));
  if (condition) {
    Bit whenOne =
        exclusive(given(a, *condition, true), given(b, *condition, true));
    Bit whenZero =
        exclusive(given(a, *condition, false), given(b, *condition, false));
    return decide(*condition, whenOne, whenZero);
  }
  SmallVector<Atom, 1> atoms;
  std::set_symmetric_difference(nodes[a].atoms.begin(), nodes[a].atoms.end(),
                                nodes[b].atoms.begin(), nodes[b].atoms.end(),
                                std::back_inserter(atoms));
  return leaf(std::move(atoms), nodes[a].one ^ nodes[b].one);
}

std::optional<Bit> BitAlgebra::both(Bit a, Bit b) {
  Bit zero = constant(false), one = constant(true);
  if (a == zero || b == zero || a == negation(b))
    return zero;
  if (a == one || a == b)
    return b;
  if (b == one)
    return a;
  std::optional<Atom> condition = firstOf(findCondition(a), findCondition(b));
  if (!condition)
    for (Bit each : {a, b})
      for (const Atom &atom : nodes[each].atoms)
        if (mayDecide(atom))
          condition = firstOf(condition, atom);
  if (!condition)
    return std::nullopt;
  std::optional<Bit> whenOne =
      both(given(a, *condition, true), given(b, *condition, true));
  std::optional<Bit> whenZero =
      both(given(a, *condition, false), given(b, *condition, false));
  if (!whenOne || !whenZero)
    return std::nullopt;
  return decide(*condition, *whenOne, *whenZero);
}

std::optional<Bit> BitAlgebra::either(Bit a, Bit b) {
  std::optional<Bit> neither = both(negation(a), negation(b));
  return neither ? std::optional(negation(*neither)) : std::nullopt;
}

std::optional<Bit> BitAlgebra::choose(Bit condition, Bit a, Bit b) {
  // b ^ (condition & (a ^ b)) would combine bits that cancel elsewhere.
  std::optional<Bit> whenOne = both(condition, a);
  std::optional<Bit> whenZero = both(negation(condition), b);
  if (!whenOne || !whenZero)
    return std::nullopt;
  return exclusive(*whenOne, *whenZero);
}

std::optional<Bit> BitAlgebra::rename(Bit bit, Renaming renaming) {
  Node node = nodes[bit];
  if (node.condition) {
    std::optional<Bit> condition = renaming(*node.condition);
    std::optional<Bit> whenOne = rename(node.whenOne, renaming);
    std::optional<Bit> whenZero = rename(node.whenZero, renaming);
    if (!condition || !whenOne || !whenZero)
      return std::nullopt;
    return choose(*condition, *whenOne, *whenZero);
  }
  Bit sum = constant(node.one);
  for (const Atom &atom : node.atoms) {
    std::optional<Bit> other = renaming(atom);
    if (!other)
      return std::nullopt;
    sum = exclusive(sum, *other);
  }
  return sum;
}

std::optional<Bit> BitAlgebra::unify(Bit a, Bit b, Merging merge) {
  Node one = nodes[a], other = nodes[b];
  if (one.condition.has_value() != other.condition.has_value())
    return std::nullopt;
  if (one.condition) {
    std::optional<Bit> condition = merge(*one.condition, *other.condition);
    std::optional<Bit> whenOne = unify(one.whenOne, other.whenOne, merge);
    std::optional<Bit> whenZero = unify(one.whenZero, other.whenZero, merge);
    if (!condition || !whenOne || !whenZero)
      return std::nullopt;
    return choose(*condition, *whenOne, *whenZero);
  }
  if (one.atoms.size() != other.atoms.size() || one.one != other.one)
    return std::nullopt;
  Bit sum = constant(one.one);
  for (auto [x, y] : llvm::zip_equal(one.atoms, other.atoms)) {
    std::optional<Bit> merged = merge(x, y);
    if (!merged)
      return std::nullopt;
    sum = exclusive(sum, *merged);
  }
  return sum;
}

void BitAlgebra::visitAtoms(
    Bit bit, llvm::function_ref<void(const Atom &)> visit) const {
  const Node &node = nodes[bit];
  if (node.condition) {
    visit(*node.condition);
    visitAtoms(node.whenOne, visit);
    visitAtoms(node.whenZero, visit);
  }
  llvm::for_each(node.atoms, visit);
}

void BitAlgebra::visitConditions(
    Bit bit, llvm::function_ref<void(const Atom &)> visit) const {
  const Node &node = nodes[bit];
  if (!node.condition)
    return;
  visit(*node.condition);
  visitConditions(node.whenOne, visit);
  visitConditions(node.whenZero, visit);
}
