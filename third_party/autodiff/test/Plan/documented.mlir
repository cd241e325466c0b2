// The pages about the passes say what the compiler does.
// RUN: %python %root/scripts/check_passes.py --build %build
