//! `sessionctl`, the Sessionplane command line client. Only wires: its rooms are in
//! `sessionplane_client::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sessionplane_client::cli::main()
}
