// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-read-cotangents

// expected-error @+1 {{autodiff-read-cotangents needs a backward kernel (autodiff-reverse makes it)}}
module {
  tt.func @kernel() { tt.return }
}
