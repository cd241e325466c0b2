//===- AccessSpace.h - The addresses that an access touches -----*- C++ -*-===//
//
// Over all programs and iterations, a load or store touches the addresses
// offset + Σ stride·x. Each index x is a sum of digits times steps, as in a
// mixed-radix number. A digit counts program ids, iterations or positions in
// the tile, and a mask gives x a bound. For example, `x[pid * 64 + lane]` under
// `pid * 64 + lane < n` is the index (64·pid + lane) with stride 1 and bound n.
// All these addresses are the access's *space*.
//
// Whether they are distinct, and whether they are all elements of the tensor,
// depends on strides and bounds: the plan has a check, which the launch
// evaluates.
//
// In packed sequences, segments of rows or groups of experts, a program loads
// from memory where its range of a tensor begins. Such a space *moves*: the
// check is then about the ranges that each program touches.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_ACCESSSPACE_H
#define AUTODIFF_ANALYSIS_ACCESSSPACE_H

#include "autodiff/Analysis/Constraints.h"

namespace mlir::autodiff {

/// A digit for the plan: its step, how many values it has (null if nobody
/// knows; or its value in each program), and what it counts.
DigitAttr toDigit(MLIRContext *context, const Dimension &dimension,
                  const ScalarExpr &step, ExprAttr extent = {});
/// The same for each term of a sum.
ArrayAttr toDigits(MLIRContext *context, const LinearForm &sum);

class AccessSpaces;

class AccessSpace {
public:
  /// A loop (or none) whose iterations have the numbers 0 … count − 1 in all
  /// programs. If its start depends on program ids, the number of an iteration
  /// is the induction variable divided by `step`. What is touched is the same
  /// in all iterations of the loops `summed`, and counts once.
  struct Renumbering {
    Operation *loop;
    bool startVaries;
    ScalarExpr step;
    ExprAttr count;
    llvm::ArrayRef<scf::ForOp> summed = {};
  };

  /// The space of a load, a store or an autodiff.accumulate. None if its
  /// addresses are not of this form, or if a program touches one twice. If
  /// `from` says that memory may be read, the space may move.
  static ReasonOr<AccessSpace>
  of(Operation *access, const Renumbering *renumbering = nullptr,
     ScalarExpr::From from = ScalarExpr::From::Launch);

  /// The space of all of `accesses`, if each touches what the one before it
  /// does, moved by the same distance (halves of a row, parts of a packed
  /// tensor), or if they are rows of such accesses (the pixels of a window).
  /// None otherwise. An index's bound may move along (halves of a tile).
  static ReasonOr<AccessSpace>
  ofAll(llvm::ArrayRef<Operation *> accesses,
        ScalarExpr::From from = ScalarExpr::From::Launch,
        AccessSpaces *known = nullptr);

  /// The space of an access in a loop together with accesses in front of it,
  /// each of which is one more iteration before the loop's first: `x[0]`, then
  /// `x[1]`, `x[2]`, … in the loop. None if they are not of this kind.
  static ReasonOr<AccessSpace> ofPeeled(llvm::ArrayRef<Operation *> accesses,
                                        AccessSpaces *known = nullptr);

  /// What `ofAll` or `ofPeeled` finds; reads memory only if it has to.
  static ReasonOr<AccessSpace> findFor(llvm::ArrayRef<Operation *> accesses,
                                       AccessSpaces *known = nullptr);

  /// All addresses that an access may touch under its mask. An address may be
  /// counted twice, and there may be some that it does not touch. None if
  /// addresses are not of this form. Loops and axes on which the address does
  /// not depend count with step zero.
  static ReasonOr<AccessSpace> reachOf(Operation *access);

  const ScalarExpr &getOffset() const { return offset; }

  /// Whether both touch the same address at the same position in the tile and
  /// in the same iterations, if those are numbered alike.
  bool touchesSameAs(const AccessSpace &other) const;

  /// Whether each program touches the same addresses as through `other`, by
  /// whichever lanes and iterations.
  bool isOwnedLike(const AccessSpace &other) const;

  /// What the launch has to check so that this space, which has bounds, has the
  /// same address as `unbounded`, which has none, at the same position in the
  /// same iteration. None if they differ in more than bounds.
  ReasonOr<llvm::SmallVector<LimitAttr>>
  findLimits(const AccessSpace &unbounded) const;

  /// What the launch has to check so that each program touches the same
  /// addresses as through `run`, an access that goes along a row in one loop,
  /// if neither touches an address twice. None if the two begin differently in
  /// a program, or `run` is no such access.
  ReasonOr<llvm::SmallVector<LimitAttr>>
  findSameRun(const AccessSpace &run) const;

  /// The integers that are made of program ids and that addresses depend on.
  llvm::SmallVector<ScalarExpr> getProgramDigits() const;
  /// Those of `digits` that do not change what a program touches.
  llvm::SmallVector<ScalarExpr>
  findShared(llvm::ArrayRef<ScalarExpr> digits) const;

  /// Why `findShared` finds none.
  Reason whyUnshared(llvm::ArrayRef<ScalarExpr> digits) const;

  /// Whether the space is exact: every program performs the access in every
  /// iteration, and its mask is understood. Otherwise it is an upper bound.
  bool isExact() const { return exact; }
  /// Why it is not exact, if it is not.
  const Reason &whyInexact() const { return inexact; }

  /// Whether every index that counts iterations has a bound.
  bool boundsIterations() const;

  /// A number 0 … size − 1 that a part of the address counts, each value once
  /// in a program or in one of several programs. It is the sum of the
  /// dimensions times their factors.
  struct Run {
    llvm::SmallVector<std::pair<Dimension, int64_t>> digits;
    ExprAttr size;
  };

  /// Writes the address as `known` + stride · x and finds x, where a mask with
  /// `limits` admits `known`. The access then touches every x that its check
  /// allows. Axes of `known` and of `limits` are this access's. Programs along
  /// `axis` may divide the numbers among themselves.
  ReasonOr<Run> findRun(const LinearForm &known, const ScalarExpr &stride,
                        llvm::ArrayRef<Constraint> limits,
                        std::optional<unsigned> axis = {}) const;

  /// The check that the addresses are distinct ("distinct") or, in addition,
  /// exactly the elements of the tensor ("bijective").
  CheckAttr toCheck(CheckKind kind, unsigned argument) const;

  /// The check that the addresses are exactly the elements of the tensor, and
  /// that each is touched once for every value of the digits `summed`, on which
  /// no address depends. `staying` are the other digits.
  CheckAttr toSummedCheck(unsigned argument, llvm::ArrayRef<ScalarExpr> summed,
                          llvm::ArrayRef<ScalarExpr> staying) const;

  /// What `reachOf` has found, for the plan.
  ReachAttr toReach() const;

private:
  struct Digit {
    ScalarExpr stride;
    Dimension dimension;
    /// How many values the digit has. No value for the digits of a program id;
    /// a null attribute where only a bound limits them.
    std::optional<ExprAttr> extent;

    /// The extent, if it is a constant.
    std::optional<int64_t> getLength() const {
      return extent && *extent ? extent->getConstant() : std::nullopt;
    }
  };
  /// The first digits of an index, if they have a bound of their own: the place
  /// in a chunk of a sequence, where the index is the place in the whole one.
  struct Chunk {
    size_t digits;
    ScalarExpr bound;
    bool operator==(const Chunk &other) const {
      return digits == other.digits && bound == other.bound;
    }
  };
  struct Index {
    ScalarExpr stride;
    llvm::SmallVector<Digit> digits;
    std::optional<ScalarExpr> bound;
    std::optional<Chunk> chunk = std::nullopt;
    std::optional<ScalarExpr> start = std::nullopt; ///< the least of its values
  };
  struct Builder;
  /// Whether two numbers are recognised as equal.
  static bool areEqual(const ScalarExpr &a, const ScalarExpr &b);
  /// How many addresses a program touches, and how far apart the first and last
  /// are.
  struct Local;
  /// The steps of all digits, sorted, and which of them are chosen by the
  /// program. Two accesses with the same footprint touch the same addresses,
  /// maybe in different lanes and iterations.
  struct Footprint {
    using Step = std::tuple<int64_t, const void *, const void *>;
    ScalarExpr start;
    llvm::SmallVector<llvm::SmallVector<Step>> indices;
  };

  /// The part of the space that iterations and positions make up in one
  /// program. Adds to `limits` what has to hold so that bounds are reached.
  /// None if an index also counts programs.
  std::optional<Local>
  findLocal(llvm::SmallVectorImpl<LimitAttr> &limits) const;
  Footprint findFootprint() const;
  /// Whether an index is restricted by more than a bound: it has a chunk, or
  /// does not start at zero.
  bool hasChunksOrStarts() const;
  /// The digit of `other` that counts the same, with the same step.
  static const Digit *findSame(const Index &index, const Digit &digit,
                               const AccessSpace &other);
  /// Whether this is the same space as `other`, but for the offset, and if
  /// `sameBounds` is false for bounds.
  bool hasSameShapeAs(const AccessSpace &other, bool sameBounds = true) const;
  /// Makes one space of several that differ only in the bound of one index,
  /// which changes by the same amount from each to the next. That index of this
  /// one, the first, then counts the accesses, too. False if they are not so.
  bool joinBounded(llvm::ArrayRef<AccessSpace> spaces);
  /// Adds to `loop` one more iteration at its beginning, which touches what
  /// `other` does. False if `other` touches something else.
  bool addIteration(Operation *loop, const AccessSpace &other);
  ExprAttr toExpr(const ScalarExpr &number) const {
    return number.get(context);
  }
  llvm::SmallVector<ExprAttr> toExprs(llvm::ArrayRef<ScalarExpr> numbers) const;
  DimensionAttr toDimension(const Index &index,
                            llvm::ArrayRef<DigitAttr> digits) const;
  llvm::SmallVector<DimensionAttr>
  toDimensions(llvm::function_ref<DigitAttr(const Digit &)> toDigit) const;

  MLIRContext *context = nullptr;
  ScalarExpr offset = ScalarExpr::constant(0);
  llvm::SmallVector<Index, 0> indices;
  llvm::SmallVector<ScalarExpr, 0> notNegative; ///< for masks to hold
  /// Of a reach, other conditions: one of each list of alternatives holds.
  llvm::SmallVector<Alternatives, 0> guards;
  bool exact = true;
  Reason inexact;                         ///< why it is not exact
  llvm::SmallVector<ScalarExpr, 0> trips; ///< of loops, where programs differ
  bool moves = false;                     ///< from program to program
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ACCESSSPACE_H
