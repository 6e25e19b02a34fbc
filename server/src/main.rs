//! `sessiond`, the Sessionplane server.

fn main() {}
