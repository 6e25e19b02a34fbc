//! One fuzz target for all parsers: `PARSER` names the one. Each is a function of bytes that panics where
//! a promise is broken; they stand in the rooms of what they parse, behind the feature `fuzzing`.

#![no_main]

use std::env;
use std::process::exit;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sessionplane_client::fuzzing::PARSERS as CLIENTS;
use sessionplane_server::fuzzing::PARSERS as SERVERS;

static PARSER: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = env::var("PARSER").unwrap_or_default();
    let all = || SERVERS.into_iter().chain(CLIENTS);
    all().find(|(name, _)| *name == wanted).map_or_else(
        || {
            // For tests/fuzz.sh, and for who has mistyped one.
            all().for_each(|(name, _)| println!("{name}"));
            exit(2)
        },
        |(_, parser)| parser,
    )
});

fuzz_target!(|bytes: &[u8]| (*PARSER)(bytes));
