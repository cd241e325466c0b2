// RUN: triton-autodiff-opt %s -verify-diagnostics -autodiff-reverse

// expected-error @+1 {{expected a kernel of one block; run autodiff-normalize first}}
module {
  tt.func @early(%c: i1) {
    cf.cond_br %c, ^exit, ^body
  ^exit:
    tt.return
  ^body:
    tt.return
  }
}
