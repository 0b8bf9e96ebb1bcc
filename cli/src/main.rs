//! The orthant command.

fn main() {}
