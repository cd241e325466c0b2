//===- AccessSpace.h - The addresses that an access touches -----*- C++ -*-===//
//
// Over all programs and iterations, a load or store touches the addresses
// offset + Σ stride·x, where each index x is a mixed-radix number whose digits
// are program ids, iterations and positions in the tile, cut off by a mask.
// Whether these are distinct, and whether they are all elements of the tensor,
// depends on strides and bounds: the plan carries the question as a check.
//
// Where programs load from memory where in a tensor their part begins (packed
// sequences, segments of rows, groups of experts), the space moves: the check
// is then about the ranges that each program touches.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_ACCESSSPACE_H
#define AUTODIFF_ANALYSIS_ACCESSSPACE_H

#include "autodiff/Analysis/Constraints.h"

namespace mlir::autodiff {

/// A number of a reach: the steps in which it counts, how many there are (null
/// if nobody knows; or its value in each program), and what it counts.
DigitAttr toDigit(MLIRContext *context, const Dimension &dimension,
                  const ScalarExpr &step, ExprAttr extent = {});
/// A sum of numbers: an array of such.
ArrayAttr toDigits(MLIRContext *context, const LinearForm &sum);

class AccessSpaces;

class AccessSpace {
public:
  /// A loop whose iterations are numbered alike in all programs, by numbers
  /// 0 … count − 1: if its start depends on program ids, the number of an
  /// iteration is the induction variable over `step`.
  struct Renumbering {
    Operation *loop;
    bool startVaries;
    ScalarExpr step;
    ExprAttr count;
  };

  /// The space of a load, a store or an autodiff.accumulate; none if its
  /// addresses are not of this form or it repeats within a program. `from`
  /// memory it is one that moves.
  static ReasonOr<AccessSpace>
  of(Operation *access, const Renumbering *renumbering = nullptr,
     ScalarExpr::From from = ScalarExpr::From::Launch);

  /// The space of all of `accesses`, of which each touches what the one before
  /// it does but moved by the same distance (halves of a row, parts of a packed
  /// tensor), or rows of such ones (the pixels of a window); none if they are
  /// not of this kind. What bounds an index may move with it (halves of a
  /// tile).
  static ReasonOr<AccessSpace>
  ofAll(llvm::ArrayRef<Operation *> accesses,
        ScalarExpr::From from = ScalarExpr::From::Launch,
        AccessSpaces *known = nullptr);

  /// The space of accesses in a loop and in front of it, of which each one
  /// there is an iteration that the loop does not begin with (x[0], then x[1],
  /// x[2], … in the loop); none if they are not of this kind.
  static ReasonOr<AccessSpace> ofPeeled(llvm::ArrayRef<Operation *> accesses,
                                        AccessSpaces *known = nullptr);

  /// One or the other, if need be from memory.
  static ReasonOr<AccessSpace> findFor(llvm::ArrayRef<Operation *> accesses,
                                       AccessSpaces *known = nullptr);

  /// All addresses that an access may touch under its mask, maybe more than
  /// once, and maybe among others; none if they are not of this form. Loops and
  /// axes that do not move the address count steps of zero.
  static ReasonOr<AccessSpace> reachOf(Operation *access);

  const ScalarExpr &getOffset() const { return offset; }

  /// Whether both touch the same address at the same position and in the same
  /// iterations, if those are numbered alike.
  bool touchesSameAs(const AccessSpace &other) const;

  /// Whether each program touches the same addresses as through `other`, by
  /// whatever lanes and iterations.
  bool isOwnedLike(const AccessSpace &other) const;

  /// What must hold so that this, which has bounds, touches what `unbounded`,
  /// which has none, touches at the same position in the same iteration. None
  /// if they differ in more than bounds.
  ReasonOr<llvm::SmallVector<LimitAttr>>
  findLimits(const AccessSpace &unbounded) const;

  /// What must hold so that each program touches the same addresses as through
  /// `run`, an access that goes along a row in one loop, if none of them
  /// touches one twice. None if what programs touch does not begin alike, or
  /// the one is no such run.
  ReasonOr<llvm::SmallVector<LimitAttr>>
  findSameRun(const AccessSpace &run) const;

  /// The numbers that program ids determine in the addresses.
  llvm::SmallVector<ScalarExpr> getProgramDigits() const;
  /// Those of `digits` on which it does not depend what a program touches.
  llvm::SmallVector<ScalarExpr>
  findShared(llvm::ArrayRef<ScalarExpr> digits) const;

  /// Why there are none of these.
  Reason whyUnshared(llvm::ArrayRef<ScalarExpr> digits) const;

  /// Whether every program performs the access in every iteration, and its mask
  /// is understood: then the space is exact, else an upper bound.
  bool isExact() const { return exact; }
  /// Why it is not exact, if it is not.
  const Reason &whyInexact() const { return inexact; }

  /// Whether a mask says in which iterations an address is accessed.
  bool boundsIterations() const;

  /// A number 0 … size − 1 that part of an address is, each once in a program,
  /// or in one of several:
  /// the sum of dimensions times how many they count for.
  struct Run {
    llvm::SmallVector<std::pair<Dimension, int64_t>> digits;
    ExprAttr size;
  };

  /// The number x with which the address is `known` + stride · x, where a mask
  /// with `limits` lets `known` through: then the access touches every x that
  /// its check allows for. Axes of `known` and of `limits` are this access's.
  /// Programs along `axis` may share the numbers among them.
  ReasonOr<Run> findRun(const LinearForm &known, const ScalarExpr &stride,
                        llvm::ArrayRef<Constraint> limits,
                        std::optional<unsigned> axis = {}) const;

  /// The check that the addresses are distinct ("distinct") or, in addition,
  /// exactly the elements of the tensor ("bijective").
  CheckAttr toCheck(CheckKind kind, unsigned argument) const;

  /// The check that the addresses are exactly the elements of the tensor, each
  /// touched once for every choice of the digits `summed`, which they do not
  /// depend on; `staying` are the other ones.
  CheckAttr toSummedCheck(unsigned argument, llvm::ArrayRef<ScalarExpr> summed,
                          llvm::ArrayRef<ScalarExpr> staying) const;

  /// What `reachOf` has found.
  ReachAttr toReach() const;

private:
  struct Digit {
    ScalarExpr stride;
    Dimension dimension;
    /// None for Program digits; null where only a bound says how far a reach
    /// goes.
    std::optional<ExprAttr> extent;

    /// The extent, if it is known.
    std::optional<int64_t> getLength() const {
      return extent && *extent ? extent->getConstant() : std::nullopt;
    }
  };
  /// The number that the first digits of an index make up, with a bound of its
  /// own: the place in a chunk, where the index is that in all of them.
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
  /// Whether two numbers are seen to be equal.
  static bool areEqual(const ScalarExpr &a, const ScalarExpr &b);
  /// How many addresses a program touches, and how far the last one is.
  struct Local;
  /// The steps in which addresses are touched, by whatever lanes and
  /// iterations, and which of them programs choose; in an order of their own.
  struct Footprint {
    using Step = std::tuple<int64_t, const void *, const void *>;
    ScalarExpr start;
    llvm::SmallVector<llvm::SmallVector<Step>> indices;
  };

  /// What digits of iterations and positions make up; adds what must hold for
  /// bounds to be reached. None if programs are counted by the same indices.
  std::optional<Local>
  findLocal(llvm::SmallVectorImpl<LimitAttr> &limits) const;
  Footprint findFootprint() const;
  /// Whether something about an index is not that it is less than its bound:
  /// it has chunks, or it starts behind zero.
  bool hasChunksOrStarts() const;
  /// The digit of another space for the same dimension, in steps as long.
  static const Digit *findSame(const Index &index, const Digit &digit,
                               const AccessSpace &other);
  /// Whether this is `other` but for the offset, and maybe for bounds.
  bool hasSameShapeAs(const AccessSpace &other, bool sameBounds = true) const;
  /// Lets the index that all of `spaces` bound, each closer by the same than
  /// the one before it, count the sites of this, the first one. False if they
  /// do not.
  bool joinBounded(llvm::ArrayRef<AccessSpace> spaces);
  /// Lets `loop` begin with one more iteration, what `other` touches. False if
  /// that is something else.
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
  /// Of a reach, what else must hold: each a choice of constraints.
  llvm::SmallVector<Alternatives, 0> guards;
  bool exact = true;
  Reason inexact;                         ///< why it is not exact
  llvm::SmallVector<ScalarExpr, 0> trips; ///< of loops, where programs differ
  bool moves = false;                     ///< from program to program
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ACCESSSPACE_H
