//! Every engine of the server runs the engine conformance suite.
#![cfg(test)]

use std::sync::Arc;

use sessionplane_core::domain::capabilities::{Capabilities, Steering};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;

#[path = "conformance/engine.rs"]
mod suite;

use suite::{Promises, Prompts, Subject};

fn scripted() -> Subject {
    Subject {
        factory: Box::new(|clock, spawner| Arc::new(ScriptedEngine::new(clock, spawner))),
        capabilities: Capabilities {
            steering: Some(Steering {
                after_tools: true,
                preempts_text: false,
            }),
            follow_up: true,
            tool_progress: true,
            usage: true,
        },
        prompts: Prompts {
            plain: "Say this back to me, please.",
            long_text: Some("think \"hm\"\nsay-words 200 every 20ms\nusage in=1"),
            long_tool: Some("tool build {\"a\":1} progress 40 every 100ms\ntool test fail"),
            retry: Some("retry 1 of 3 after 10m \"rate limited\"\nsay \"never\""),
            hang: Some("say \"x\"\nhang"),
            crash: Some("say \"x\"\ncrash"),
            steerable: Some("wait 1s\nturn\nwait 1s\nturn\nwait 1s\nturn\nsay \"end\""),
            steer: "look elsewhere",
        },
        promises: Promises::ALL,
    }
}

engine_conformance!(scripted_engine, scripted());
