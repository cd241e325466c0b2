; RUN: triton-autodiff-opt --cpu-optimize-llvm %s | FileCheck %s

; A variable that is read as a whole and whose parts are stored from the last to
; the first, each behind what it stores. SROA of LLVM 22 would use the first part
; before it is loaded, so that the code were invalid: the variable stays.
; CHECK-LABEL: @descending(
; CHECK: alloca
; CHECK: %[[HIGH:.*]] = load <4 x double>
; CHECK: store <4 x double> %[[HIGH]]
; CHECK: %[[LOW:.*]] = load <4 x double>
; CHECK: store <4 x double> %[[LOW]]
; CHECK: load <8 x double>
define void @descending(ptr noalias %from, ptr noalias %to) {
  %variable = alloca [8 x double], align 64
  %high.from = getelementptr double, ptr %from, i64 4
  %high.to = getelementptr double, ptr %variable, i64 4
  %high = load <4 x double>, ptr %high.from, align 8
  store <4 x double> %high, ptr %high.to, align 32
  %low = load <4 x double>, ptr %from, align 8
  store <4 x double> %low, ptr %variable, align 64
  %whole = load <8 x double>, ptr %variable, align 64
  store <8 x double> %whole, ptr %to, align 8
  ret void
}

; In the order of their addresses there is no variable left.
; CHECK-LABEL: @ascending(
; CHECK-NOT: alloca
; CHECK: ret void
define void @ascending(ptr noalias %from, ptr noalias %to) {
  %variable = alloca [8 x double], align 64
  %low = load <4 x double>, ptr %from, align 8
  store <4 x double> %low, ptr %variable, align 64
  %high.from = getelementptr double, ptr %from, i64 4
  %high.to = getelementptr double, ptr %variable, i64 4
  %high = load <4 x double>, ptr %high.from, align 8
  store <4 x double> %high, ptr %high.to, align 32
  %whole = load <8 x double>, ptr %variable, align 64
  store <8 x double> %whole, ptr %to, align 8
  ret void
}

; Nor where parts are read, too, which SROA does not put together in that way.
; CHECK-LABEL: @read_twice(
; CHECK-NOT: alloca
; CHECK: ret void
define void @read_twice(ptr noalias %from, ptr noalias %to) {
  %variable = alloca [8 x double], align 64
  %high.from = getelementptr double, ptr %from, i64 4
  %high.to = getelementptr double, ptr %variable, i64 4
  %high = load <4 x double>, ptr %high.from, align 8
  store <4 x double> %high, ptr %high.to, align 32
  %low = load <4 x double>, ptr %from, align 8
  store <4 x double> %low, ptr %variable, align 64
  %whole = load <8 x double>, ptr %variable, align 64
  %again = load <4 x double>, ptr %variable, align 64
  %twice = fadd <4 x double> %again, %again
  store <8 x double> %whole, ptr %to, align 8
  store <4 x double> %twice, ptr %from, align 8
  ret void
}
