//===- Request.cpp - What the caller wants differentiated -----------------===//
#include "autodiff/Plan/Plan.h"
#include "autodiff/Support/Faults.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::autodiff;

static bool readIndices(const llvm::json::Value &value,
                        SmallVector<unsigned> &indices) {
  const llvm::json::Array *array = value.getAsArray();
  if (!array)
    return false;
  for (const llvm::json::Value &element : *array) {
    std::optional<int64_t> index = element.getAsInteger();
    if (!index || *index < 0)
      return false;
    indices.push_back(*index);
  }
  return true;
}

static bool readPairs(const llvm::json::Value &value,
                      SmallVector<std::pair<unsigned, int64_t>> &pairs) {
  const llvm::json::Array *array = value.getAsArray();
  if (!array)
    return false;
  for (const llvm::json::Value &element : *array) {
    const llvm::json::Array *pair = element.getAsArray();
    if (!pair || pair->size() != 2)
      return false;
    std::optional<int64_t> index = (*pair)[0].getAsInteger(),
                           number = (*pair)[1].getAsInteger();
    if (!index || *index < 0 || !number)
      return false;
    pairs.push_back({*index, *number});
  }
  return true;
}

static bool readRules(const llvm::json::Value &value,
                      SmallVector<UserRule> &rules) {
  const llvm::json::Array *array = value.getAsArray();
  if (!array)
    return false;
  for (const llvm::json::Value &element : *array) {
    const llvm::json::Object *object = element.getAsObject();
    if (!object)
      return false;
    auto read = [&](StringRef key) {
      return object->getString(key).value_or("").str();
    };
    auto readFlag = [&](StringRef key) {
      return object->getBoolean(key).value_or(false);
    };
    UserRule rule{read("name"), read("asm"),         read("symbol"),
                  read("ttir"), readFlag("forward"), readFlag("exact")};
    if (rule.ttir.empty() || rule.assembly.empty() == rule.symbol.empty())
      return false;
    rules.push_back(std::move(rule));
  }
  return true;
}

static bool readSchedules(const llvm::json::Value &value,
                          SmallVector<Request::Schedule> &schedules) {
  const llvm::json::Array *array = value.getAsArray();
  if (!array)
    return false;
  for (const llvm::json::Value &element : *array) {
    auto schedule = llvm::StringSwitch<std::optional<Request::Schedule>>(
                        element.getAsString().value_or(""))
                        .Case("batch", Request::Schedule::Batch)
                        .Case("unravel", Request::Schedule::Unravel)
                        .Case("merge", Request::Schedule::Merge)
                        .Case("interchange", Request::Schedule::Interchange)
                        .Case("persist", Request::Schedule::Persist)
                        .Default(std::nullopt);
    if (!schedule)
      return false;
    schedules.push_back(*schedule);
  }
  return true;
}

/// The major and the minor number of a version.
static std::optional<std::pair<unsigned, unsigned>>
readVersion(StringRef version) {
  unsigned major, minor;
  if (version.consumeInteger(10, major) || !version.consume_front(".") ||
      version.consumeInteger(10, minor))
    return std::nullopt;
  return std::pair(major, minor);
}

/// Whether this version of Triton has its own barrier operation.
static std::optional<bool> readTriton(std::optional<StringRef> version) {
  auto numbers = readVersion(version.value_or(""));
  if (!numbers)
    return std::nullopt;
  auto right = readVersion(getRightVersion("missing-barriers"));
  return right && *numbers >= *right;
}

/// The most lanes that Triton allows a tile.
constexpr int64_t kMostLanes = 1 << 20;

static bool readAxes(const llvm::json::Value &value,
                     SmallVector<int64_t> &axes) {
  const llvm::json::Array *array = value.getAsArray();
  if (!array)
    return false;
  int64_t lanes = 1;
  for (const llvm::json::Value &element : *array) {
    std::optional<int64_t> length = element.getAsInteger();
    if (!length || !llvm::isPowerOf2_64(*length) ||
        *length > kMostLanes / lanes)
      return false;
    lanes *= *length;
    axes.push_back(*length);
  }
  return true;
}

/// The field that a key sets to true or false; null for other keys.
static bool Request::*findFlag(StringRef key) {
  return llvm::StringSwitch<bool Request::*>(key)
      .Case("save", &Request::save)
      .Case("reload", &Request::reload)
      .Case("check", &Request::check)
      .Case("assume", &Request::assume)
      .Case("checkpoint", &Request::checkpoint)
      .Case("deterministic", &Request::deterministic)
      .Case("scheduled", &Request::scheduled)
      .Case("anyOrder", &Request::anyOrder)
      .Case("explain", &Request::explain)
      .Case("again", &Request::again)
      .Case("ample", &Request::ample)
      .Case("last", &Request::last)
      .Case("later", &Request::later)
      .Case("settle", &Request::settle)
      .Default(nullptr);
}

/// The field that a key sets to a list of arguments; null for other keys.
static SmallVector<unsigned> Request::*findIndices(StringRef key) {
  return llvm::StringSwitch<SmallVector<unsigned> Request::*>(key)
      .Case("atomic", &Request::atomic)
      .Case("repeated", &Request::repeated)
      .Case("confine", &Request::confine)
      .Case("aligned", &Request::aligned)
      .Case("unread", &Request::unread)
      .Case("left", &Request::left)
      .Case("taken", &Request::taken)
      .Default(nullptr);
}

/// The field that a key sets to a list of arguments, or leaves without one;
/// null for other keys.
static std::optional<SmallVector<unsigned>> Request::*findSome(StringRef key) {
  return llvm::StringSwitch<std::optional<SmallVector<unsigned>> Request::*>(
             key)
      .Case("wanted", &Request::wanted)
      .Case("cotangents", &Request::cotangents)
      .Case("tangents", &Request::tangents)
      .Default(nullptr);
}

FailureOr<Request> Request::parse(llvm::StringRef json, Location loc) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return emitError(loc) << "malformed request: "
                          << llvm::toString(value.takeError());
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return emitError(loc, "malformed request: expected an object");

  Request request;
  for (const auto &[key, entry] : *object) {
    bool valid = true;
    if (std::optional<SmallVector<unsigned>> Request::*some = findSome(key)) {
      if (!entry.getAsNull())
        valid = readIndices(entry, (request.*some).emplace());
    } else if (SmallVector<unsigned> Request::*indices = findIndices(key)) {
      valid = readIndices(entry, request.*indices);
    } else if (key == "known" || key == "same") {
      valid = readPairs(entry, key == "known" ? request.known : request.same);
    } else if (key == "widen") {
      std::optional<int64_t> factor = entry.getAsInteger();
      valid = factor && *factor >= 1 && *factor <= 64;
      request.widen = factor.value_or(1);
    } else if (key == "target") {
      request.target = Target::find(entry.getAsString().value_or(""));
      valid = request.target;
    } else if (key == "triton") {
      std::optional<bool> own = readTriton(entry.getAsString());
      valid = own.has_value();
      request.ownBarriers = own.value_or(false);
    } else if (key == "axes") {
      request.declinesAxes = entry.getAsNull().has_value();
      valid = request.declinesAxes || readAxes(entry, request.axes);
    } else if (key == "schedules") {
      valid = readSchedules(entry, request.schedules.emplace());
    } else if (key == "rules") {
      valid = readRules(entry, request.rules);
    } else if (bool Request::*flag = findFlag(key)) {
      std::optional<bool> value = entry.getAsBoolean();
      valid = value.has_value();
      request.*flag = value.value_or(false);
    } else {
      valid = false;
    }
    if (!valid)
      return emitError(loc)
             << "malformed request: bad entry '" << StringRef(key) << "'";
  }
  return request;
}
