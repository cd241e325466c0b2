// RUN: triton-autodiff-opt '--autodiff-verify-target=target=sm_120 shared-memory=101376' %s
// RUN: not triton-autodiff-opt '--autodiff-verify-target=target=sm_120 shared-memory=101377' %s 2>&1 | FileCheck %s -DNAME=sm_120 -DMOST=101376
// RUN: not triton-autodiff-opt '--autodiff-verify-target=target=sm_86 shared-memory=101377' %s 2>&1 | FileCheck %s -DNAME=sm_89 -DMOST=101376
// RUN: triton-autodiff-opt '--autodiff-verify-target=shared-memory=101377' %s
// RUN: not triton-autodiff-opt '--autodiff-verify-target=target=gfx942 shared-memory=101377' %s 2>&1 | FileCheck %s -DNAME=gfx942 -DMOST=65536

// CHECK: internal error: a derived kernel is beyond the limits of [[NAME]]: 101377 bytes of shared memory, and at most [[MOST]] are allowed
module {}
