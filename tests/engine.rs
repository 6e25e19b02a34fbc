//! Every engine of the server runs the engine conformance suite.
#![cfg(test)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::capabilities::Capabilities;
use sessionplane_core::domain::interaction::InteractionKind;
use sessionplane_server::adapters::engine::hostile::{
    AbortManner, FollowUpManner, HostileEngine, HostileOptions, LabelManner,
};

#[path = "../server/core/src/domain/rendering/tests/corpus.rs"]
mod corpus;
#[path = "conformance/engine.rs"]
mod suite;

#[path = "engine/asking.rs"]
mod asking;
#[path = "engine/demo.rs"]
mod demo;
#[cfg(target_os = "linux")]
#[path = "engine/process.rs"]
mod process;
#[path = "engine/scripted.rs"]
mod scripted;

use suite::{Patience, Promises, Prompts, Subject};

engine_conformance!(scripted_engine, scripted::subject());
engine_conformance!(demo_engine, demo::subject());
#[cfg(target_os = "linux")]
engine_conformance!(scripted_process, process::subject(), in real time);

/// A hostile engine whose options go wrong in some ways, with the promises that these ways leave.
fn hostile(options: HostileOptions) -> Subject {
    let quiet = HostileOptions::tame(options.seed);
    let orderly = (
        options.repeats,
        options.reorders,
        options.strays,
        options.labels,
    ) == (quiet.repeats, quiet.reorders, quiet.strays, quiet.labels);
    let lives = options.dies == 0;
    let stops_within = match options.abort {
        AbortManner::Prompt => Some(Duration::from_secs(1)),
        AbortManner::Late(delay) => Some(delay + Duration::from_secs(1)),
        AbortManner::Never => None,
    };
    Subject {
        factory: Box::new(move |clock, spawner| {
            Arc::new(HostileEngine::new(options, clock, spawner))
        }),
        capabilities: Capabilities {
            steering: None,
            follow_up: true,
            tool_progress: true,
            usage: true,
            interactions: if options.asks > 0 {
                InteractionKind::ALL.into()
            } else {
                BTreeSet::new()
            },
            ..Capabilities::default()
        },
        prompts: Prompts {
            plain: "anything",
            long_text: Some("anything"),
            overflows: None,
            too_long: None,
            long_tool: Some("anything"),
            crash: (options.dies >= 100).then_some("anything"),
            asks: (options.asks > 0).then_some("anything"),
            withdraws: (options.asks > 0 && options.ignores == 0).then_some("anything"),
            ..Prompts::default()
        },
        promises: Promises {
            orderly: orderly
                && lives
                && stops_within.is_some()
                && options.follow_up == FollowUpManner::Shown,
            shows_follow_ups: options.follow_up == FollowUpManner::Shown,
            stops_within,
            lives,
        },
        patience: Patience::VIRTUAL,
    }
}

fn tame() -> HostileOptions {
    HostileOptions::tame(11)
}

engine_conformance!(hostile_but_tame, hostile(tame()));
engine_conformance!(
    hostile_spends_follow_ups,
    hostile(HostileOptions {
        follow_up: FollowUpManner::Spent,
        ..tame()
    })
);
engine_conformance!(
    hostile_loses_follow_ups,
    hostile(HostileOptions {
        follow_up: FollowUpManner::Lost,
        ..tame()
    })
);
engine_conformance!(
    hostile_aborts_late,
    hostile(HostileOptions {
        abort: AbortManner::Late(Duration::from_secs(7)),
        ..tame()
    })
);
engine_conformance!(
    hostile_never_aborts,
    hostile(HostileOptions {
        abort: AbortManner::Never,
        ..tame()
    })
);
engine_conformance!(
    hostile_repeats_and_reorders,
    hostile(HostileOptions {
        repeats: 40,
        reorders: 40,
        ..tame()
    })
);
engine_conformance!(
    hostile_makes_no_sense,
    hostile(HostileOptions {
        strays: 60,
        ..tame()
    })
);
engine_conformance!(
    hostile_has_no_names,
    hostile(HostileOptions {
        labels: LabelManner::Empty,
        ..tame()
    })
);
engine_conformance!(
    hostile_has_huge_names,
    hostile(HostileOptions {
        labels: LabelManner::Huge,
        ..tame()
    })
);
engine_conformance!(
    hostile_dies_sometimes,
    hostile(HostileOptions { dies: 4, ..tame() })
);
engine_conformance!(
    hostile_dies_at_once,
    hostile(HostileOptions {
        dies: 100,
        ..tame()
    })
);
engine_conformance!(hostile_asks, hostile(HostileOptions { asks: 30, ..tame() }));
engine_conformance!(
    hostile_asks_and_does_not_listen,
    hostile(HostileOptions {
        asks: 30,
        ignores: 100,
        ..tame()
    })
);
engine_conformance!(
    hostile_asks_out_of_turn,
    hostile(HostileOptions {
        asks: 40,
        ignores: 30,
        repeats: 40,
        reorders: 40,
        strays: 40,
        ..tame()
    })
);
engine_conformance!(
    hostile_compacts,
    hostile(HostileOptions {
        compacts: 40,
        ..tame()
    })
);
engine_conformance!(
    hostile_compacts_out_of_turn,
    hostile(HostileOptions {
        compacts: 40,
        repeats: 40,
        reorders: 40,
        strays: 40,
        ..tame()
    })
);
engine_conformance!(hostile_wild_1, hostile(HostileOptions::wild(1)));
engine_conformance!(hostile_wild_2, hostile(HostileOptions::wild(2)));
engine_conformance!(hostile_wild_3, hostile(HostileOptions::wild(3)));
