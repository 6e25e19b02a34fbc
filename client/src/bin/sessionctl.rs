//! `sessionctl`, the Sessionplane command line client.

fn main() {}
