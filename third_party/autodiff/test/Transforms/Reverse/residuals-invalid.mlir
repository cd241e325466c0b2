// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-choose-residuals

// expected-error @+1 {{autodiff-choose-residuals needs a backward kernel (autodiff-reverse makes it)}}
module {
  tt.func @kernel() { tt.return }
}
