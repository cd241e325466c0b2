// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-read-cotangents

// expected-error @+1 {{no backward to schedule; run autodiff-reverse}}
module {
  tt.func @kernel() { tt.return }
}
