// Any pass may be given any module: kernels of these tests as a user writes them and as passes
// leave them, and what is no kernel. `make fuzz-opt` does more of this, with sanitizers.
// RUN: rm -rf %t && %python %root/scripts/fuzz_passes.py --binary %build/bin/triton-autodiff-fuzz --jobs 1 --seed 0 --tries 1000 --seconds 40 --shrink 0 --out %t
