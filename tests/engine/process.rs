//! The scripted engine from a process of its own: it promises all that it promises in ours, and its
//! tools reach what the system lets them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel};
use sessionplane_core::domain::data::{Content, Data, DataPart};
use sessionplane_core::domain::ids::PrincipalId;
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::rendering::rendered;
use sessionplane_core::ports::engine::{EngineDescription, EngineEvent};
use sessionplane_server::adapters::boundary::{Access, Boundary};
use sessionplane_server::adapters::clock::OsEntropy;
use sessionplane_server::adapters::engine::apart::{ApartEngine, Manned, Room};
use sessionplane_server::adapters::engine::scripted::{SCRIPTED_VERB, ScriptedEngine};
use sessionplane_server::adapters::process_host::{Bounds, Edition, ProcessHost, Program, Where};
use tempfile::TempDir;

use crate::corpus;
use crate::scripted;
use crate::suite::bench::{Bench, within};
use crate::suite::{Patience, Promises, Prompts, Subject};

/// How long anything may take on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(60);

const BOUNDS: Bounds = Bounds {
    start: DEADLINE,
    input: Duration::from_millis(500),
    terminate: Duration::from_millis(500),
    kill: Duration::from_secs(20),
};

fn sessiond() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here
        .parent()
        .and_then(std::path::Path::parent)
        .unwrap()
        .join("sessiond");
    assert!(
        binary.exists(),
        "{} is missing: run `cargo build --workspace --bins --features sessionplane-server/failpoints`",
        binary.display()
    );
    binary
}

pub(crate) fn subject() -> Subject {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["data", "work", "tmp"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    fs::write(dir.path().join("data/owner.token"), "secret").unwrap();
    fs::write(dir.path().join("work/file"), "ours").unwrap();
    over(dir, Access::Writable)
}

fn over(dir: TempDir, access: Access) -> Subject {
    let tame = scripted::subject();
    Subject {
        factory: Box::new(move |_clock, spawner| {
            let place = Where {
                binary: sessiond(),
                data_dir: dir.path().join("data"),
                temporary: dir.path().join("tmp"),
                edition: Edition::NEWEST,
                filtered: true,
            };
            let host = ProcessHost::open(place, BOUNDS, Arc::new(OsEntropy)).unwrap();
            let room = Room {
                folder: Boundary::open(&dir.path().join("work"), access).unwrap(),
                beside: Vec::new(),
            };
            let rooms = Arc::new(move |_: Option<&_>| Ok(room.clone()));
            Arc::new(ApartEngine::new(manned(), rooms, host, spawner))
        }),
        capabilities: Capabilities {
            sandbox: SandboxLevel::Enforced,
            ..tame.capabilities
        },
        prompts: Prompts {
            long_text: Some("think \"hm\"\nsay-words 40 every 20ms\nusage in=1"),
            overflows: Some("say-words 20000"),
            long_tool: Some("tool build {\"a\":1} progress 10 every 50ms\ntool test fail"),
            steerable: Some("wait 200ms\nturn\nwait 200ms\nturn\nwait 200ms\nturn\nsay \"end\""),
            withdraws: Some(
                "ask one confirm \"1?\"\nwithdraw one\nwait 100ms\nwait-answers\nsay \"end\"",
            ),
            ..tame.prompts
        },
        promises: Promises {
            // Of a machine that is busy with other tests.
            stops_within: Some(DEADLINE),
            ..Promises::ALL
        },
        patience: Patience::REAL,
    }
}

fn manned() -> Manned {
    Manned {
        description: EngineDescription {
            name: "scripted-process".to_owned(),
            ..ScriptedEngine::description()
        },
        program: Program::Own,
        arguments: vec![SCRIPTED_VERB.to_owned()],
    }
}

/// What the tools of a scenario gave back, and whether each failed.
async fn tools(scenario: &str) -> Vec<(String, bool)> {
    let bench = Bench::new(subject());
    let mut opened = within(DEADLINE, "open", bench.open()).await;
    opened.prompt(scenario).await;
    let read = opened.read_to_stop().await;
    let finished = |event: EngineEvent| match event {
        EngineEvent::ToolFinished { output, failed, .. } => Some((output, failed)),
        _ => None,
    };
    read.into_iter().filter_map(finished).collect()
}

#[tokio::test]
async fn its_tools_read_and_write_the_folder_and_run_commands_in_it() {
    let told = tools(
        "read-file \"file\"\nwrite-file \"new\" \"text\"\nread-file \"new\"\nsh \"ls; false\"\n\
         sh \"echo one; echo two >&2; echo three\"",
    )
    .await;
    let expected = [
        ("ours", false),
        ("ok", false),
        ("text", false),
        ("file\nnew\n", true),
        ("one\ntwo\nthree\n", false),
    ];
    let expected = expected.map(|(output, failed)| (output.to_owned(), failed));
    assert_eq!(told, expected);
}

#[tokio::test]
async fn c57_the_system_keeps_its_tools_from_everything_else() {
    let told = tools(
        "read-file \"../data/owner.token\"\nread-file \"/etc/shadow\"\n\
         write-file \"../data/new\" \"x\"\nsh \"cat ../data/owner.token\"\n\
         read-file \"/proc/self/root/etc/shadow\"",
    )
    .await;
    assert_eq!(told.len(), 5, "{told:?}");
    for (output, failed) in told {
        assert!(failed && output.contains("ermission denied"), "{output}");
    }
}

/// Real engines do not see to what their tools start, either.
#[tokio::test]
async fn c42_what_a_tool_started_ends_with_the_connection() {
    let bench = Bench::new(subject());
    let mut opened = within(DEADLINE, "open", bench.open()).await;
    let command = "(setsid sh -c 'trap \\\"\\\" TERM; exec sleep 1000' > /dev/null 2>&1 & echo $!)";
    opened.prompt(&format!("sh \"{command}\"\nhang")).await;
    let read = opened
        .read_to(|event| matches!(event, EngineEvent::ToolFinished { .. }))
        .await;
    let Some(EngineEvent::ToolFinished { output, .. }) = read.last() else {
        panic!("{read:?}");
    };
    let path = PathBuf::from(format!("/proc/{}", output.trim()));
    assert!(path.join("stat").exists(), "{output:?}");
    drop(opened);
    bench.tasks_end().await;
    assert!(!path.join("stat").exists());
}

#[tokio::test]
async fn an_engine_without_a_process_of_its_own_touches_nothing() {
    for scenario in ["read-file \"x\"", "write-file \"x\" \"y\"", "sh \"true\""] {
        let mut opened = Bench::new(scripted::subject()).open().await;
        opened.prompt(scenario).await;
        let read = opened.read_to_stop().await;
        let told = format!("{:?}", read.last());
        assert!(
            told.contains("bad_scenario") && told.contains("scripted-process"),
            "{told}"
        );
    }
}

/// Each shape of the corpus as data below an instruction, on the way to an engine and back.
async fn all_arrive(subject: Subject) {
    let bench = Bench::new(subject);
    let mut opened = within(DEADLINE, "open", bench.open()).await;
    let shapes = corpus::SHAPES.iter();
    let shapes = shapes.map(|(kind, text)| (*kind, (*text).to_owned()));
    for (kind, shape) in shapes.chain(corpus::long()) {
        let part = DataPart {
            name: kind.into(),
            media_type: "text/plain".into(),
            bytes: shape.len() as u64,
            sha256: Digest([0; 32]),
            content: Content::Whole(shape.as_bytes().into()),
        };
        let data = Data::new(vec![part], None, 1);
        let origin = Origin {
            principal: PrincipalId::parse("ci").unwrap(),
            kind: PrincipalKind::Service,
            channel: Channel::Invoke,
            trust: Trust::Relayed,
            digest: Digest([0; 32]),
            request_id: None,
        };
        let given = rendered(&"received".into(), &origin, data.as_ref());
        opened.prompt(&given).await;
        let read = opened.read_to_stop().await;
        let said = read.into_iter().filter_map(|event| match event {
            EngineEvent::MessageDelta { text, .. } => Some(text),
            _ => None,
        });
        assert_eq!(said.collect::<String>(), *given, "{kind}");
    }
}

#[tokio::test]
async fn c58_every_shape_of_the_corpus_arrives_in_another_process_byte_for_byte() {
    all_arrive(subject()).await;
}

#[tokio::test]
async fn c58_every_shape_of_the_corpus_arrives_in_our_process_byte_for_byte() {
    all_arrive(scripted::subject()).await;
}
