//===- triton-autodiff-fuzz.cpp - The C interface behind a pipe -----------===//
//
// scripts/fuzz_opt.py feeds this program mangled TTIR. A request on the
// standard input is a line "differentiate SIZE", "compile SIZE" or "parse SIZE"
// and that many bytes of text; the answer is a line "ok SIZE" or "error SIZE"
// and that many bytes. The library must answer whatever it is given.
//
//===----------------------------------------------------------------------===//

#include "autodiff-c/Autodiff.h"

#include <cstdio>
#include <iostream>
#include <string>

static void keep(const char *data, size_t size, void *text) {
  static_cast<std::string *>(text)->assign(data, size);
}

static bool run(const std::string &step, const std::string &ir,
                std::string &answer) {
  if (step == "differentiate")
    return tadDifferentiate(ir.data(), ir.size(), "fuzz", "{}", keep, keep,
                            &answer);
  const char *pipeline = step == "compile" ? "triton-to-llvm" : "";
  return tadRunPipeline(ir.data(), ir.size(), "fuzz", pipeline, keep, keep,
                        &answer);
}

int main() {
  std::string step;
  for (size_t size; std::cin >> step >> size;) {
    std::cin.get();
    std::string ir(size, '\0'), answer;
    std::cin.read(ir.data(), size);
    bool succeeded = run(step, ir, answer);
    std::cout << (succeeded ? "ok " : "error ") << answer.size() << "\n"
              << answer << std::flush;
  }
}
