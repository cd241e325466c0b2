// RUN: triton-autodiff-opt -split-input-file -verify-diagnostics %s

tt.func @word() {
  // expected-error @below {{'rows' is no number of a launch}}
  %0 = autodiff.size <rows * 4>
  tt.return
}

// -----

tt.func @axis() {
  // expected-error @below {{a grid has no axis 3}}
  %0 = autodiff.size <grid3>
  tt.return
}

// -----

tt.func @nothing() {
  // expected-error @below {{expected a number, as in 'arg0 * 4'}}
  %0 = autodiff.size <arg0 + >
  tt.return
}

// -----

tt.func @argument() {
  // expected-error @below {{expected an argument, as in 'arg0'}}
  %0 = autodiff.size <extent(3)>
  tt.return
}

// -----

tt.func @operands() {
  // expected-error @below {{expected ','}}
  %0 = autodiff.size <max(arg0)>
  tt.return
}

// -----

tt.func @pitch() {
  // expected-error @below {{'pitch' takes a constant}}
  %0 = autodiff.size <pitch(arg0, arg1)>
  tt.return
}

// -----

// The values that a digit runs through are no number.
tt.func @values() {
  // expected-error @below {{'pids' is no number}}
  %0 = autodiff.size <1 + pids(pid0)>
  tt.return
}

// -----

// expected-error @below {{expected 'axis', 'loop' or 'program'}}
module attributes {test.reach = #autodiff.reach<0 [<1 x [<1 x 8 of lane 0>]>]>} {
}

// -----

// expected-error @below {{'autodiff.operand' of an argument cannot be "f32"}}
tt.func @operand(%x: !tt.ptr<f32> {autodiff.operand = "f32"}) {
  tt.return
}

// -----

tt.func @size() {
  // expected-error @below {{is of a number that programs differ in}}
  %0 = autodiff.size <maxpids(pid0) + pid1>
  tt.return
}

// -----

tt.func @extents() {
  // expected-error @below {{needs an extent for each number}}
  %0:2 = autodiff.programs [#autodiff.expr<4>] : i32, i32
  tt.return
}

// -----

// expected-error @below {{'gradient' is of an argument}}
module attributes {autodiff.next = [[#autodiff.next<atomic [0] fails = gradient>]]} {
}

// -----

// expected-error @below {{'assume' is 0 or 1}}
module attributes {autodiff.next = [[#autodiff.next<assume [arg0]>]]} {
}

// -----

// expected-error @below {{'confine' is a list of arguments}}
module attributes {autodiff.next = [[#autodiff.next<confine [arg0]>]]} {
}
