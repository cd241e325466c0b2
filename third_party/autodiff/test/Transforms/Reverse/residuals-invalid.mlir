// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-residuals

// expected-error @+1 {{no backward to improve; run autodiff-reverse}}
module {
  tt.func @kernel() { tt.return }
}
