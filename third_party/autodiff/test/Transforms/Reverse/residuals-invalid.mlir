// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-residuals

// expected-error @+1 {{autodiff-residuals needs a backward kernel (autodiff-reverse makes it)}}
module {
  tt.func @kernel() { tt.return }
}
