//! Sessions found among a million at rest: by name, key and id against a thousand, and a page of a
//! search against a bare unary call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sessionplane::v1 as wire;
use sessionplane::v1::fleet_client::FleetClient;
use sessionplane::v1::session_ref::Ref;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels};
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::ports::clock::Clock as _;
use sessionplane_server::adapters::clock::TokioClock;

use super::session::by_id;
use super::{Pair, unary};
use crate::load::{Sample, Target, closed_loop};
use crate::process::{Home, Server, Wire};
use crate::report::{Goal, Line, Report, median};
use crate::script::{Script, session_id};
use crate::settings::Settings;
use crate::{Outcome, fill};

const FEW: usize = 1000;
const MANY: usize = 1_000_000;
/// Sessions that carry the label which is looked for.
const OF_A_TEAM: u64 = 1000;
const PAGE: i32 = 100;
/// Most time of what 99 of 100 resolutions among the many take, in that of the few.
const FLAT: f64 = 2.0;
/// Most time of half of the pages, in bare unary calls.
const PAGES: f64 = 10.0;

/// Searches of which a page is read: by each index, and by none.
const SEARCHES: [(&str, &str); 5] = [
    ("labels.team = t0", ""),
    ("agent = coder", ""),
    ("name = \"dormant-7*\"", "name"),
    ("phase = DORMANT", ""),
    ("", "attention"),
];

/// A server whose sessions are all at rest.
struct Rested {
    server: Server,
    target: Target,
    sessions: u64,
    /// The session that was asked for last, in whatever round.
    asked: Arc<AtomicU64>,
    _home: Home,
}

impl Rested {
    async fn start(sessions: usize) -> Outcome<Self> {
        let sessions = u64::try_from(sessions)?;
        let home = Home::new(Wire::Plain)?;
        // Makes the directory, with its keys.
        drop(home.start()?);
        let store = home.data().join("store");
        // Of now: request bindings of long ago would be forgotten while sessions are looked for.
        let now = TokioClock::start().now().as_millis();
        fill::at_rest(&store, sessions, move |number| {
            member(number, sessions, now)
        })
        .await;
        let server = home.start()?;
        let target = Target::connect(&server, 1).await?;
        Ok(Self {
            server,
            target,
            sessions,
            asked: Arc::default(),
            _home: home,
        })
    }
}

/// A session of the owner's tenant with a name, a key and a label, that ran at `now`, in milliseconds
/// since the epoch.
fn member(number: u64, sessions: u64, now: u64) -> Script {
    let mut script = Script::new(number)
        .tenant("default")
        .named(&format!("dormant-{number}"))
        .keyed(&format!("ticket-{number}"));
    script.now = now;
    let team = format!("t{}", number % sessions.div_ceil(OF_A_TEAM));
    let label = LabelKey::parse("team")
        .ok()
        .zip(LabelValue::parse(&team).ok());
    script.record.metadata.labels = Labels::of(label).unwrap_or_default();
    script
}

/// Measures the rows.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let few = Rested::start(settings.size(FEW, 100)).await?;
    let many = Rested::start(settings.size(MANY, 2000)).await?;
    for (by, reference) in REFERENCES {
        let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
        for _ in 0..settings.rounds {
            of_few.push(resolved(settings, &few, reference).await?);
            of_many.push(resolved(settings, &many, reference).await?);
        }
        let p50 = |samples: &[Sample]| samples.iter().map(|it| it.p50_us).collect::<Vec<_>>();
        let p99 = |samples: &[Sample]| samples.iter().map(|it| it.p99_us).collect::<Vec<_>>();
        let name = format!(
            "GetSession by {by} of {}, to {}",
            many.sessions, few.sessions
        );
        let line = |what, few: &[f64], many: &[f64], goal| {
            Line::paired(format!("{name}: {what}"), few, many, "us", goal)
        };
        report.add(line("p50", &p50(&of_few), &p50(&of_many), Goal::None));
        let goal = Goal::AtMost(FLAT);
        report.add(line("p99", &p99(&of_few), &p99(&of_many), goal));
    }
    pages(settings, &many, report).await
}

type Reference = fn(u64) -> wire::SessionRef;

const REFERENCES: [(&str, Reference); 3] = [
    ("id", |number| by_id(&id(number).to_string())),
    ("name", |number| wire::SessionRef {
        r#ref: Some(Ref::Name(format!("dormant-{number}"))),
    }),
    ("key", |number| wire::SessionRef {
        r#ref: Some(Ref::ExternalKey(format!("ticket-{number}"))),
    }),
];

fn id(number: u64) -> SessionId {
    session_id(number)
}

/// One caller that asks for sessions from all over the fleet, and goes on where the last one ended: what
/// a round asked for is in no cache for it.
async fn resolved(settings: &Settings, fleet: &Rested, reference: Reference) -> Outcome<Sample> {
    let sessions = fleet.sessions;
    closed_loop(Some(&fleet.server), 1, settings.round, |_| {
        let target = fleet.target.clone();
        let client = FleetClient::new(target.channel(0));
        let asked = Arc::clone(&fleet.asked);
        move || {
            // Far from the one before, and each in its turn.
            let number = (asked.load(Ordering::Relaxed) + sessions * 5 / 8 + 1) % sessions;
            asked.store(number, Ordering::Relaxed);
            let request = target.request(wire::GetSessionRequest {
                session: Some(reference(number)),
            });
            let mut client = client.clone();
            async move { client.get_session(request).await.map(drop) }
        }
    })
    .await
}

async fn pages(settings: &Settings, many: &Rested, report: &mut Report) -> Outcome<()> {
    let pair = Pair::start().await?;
    let floor_target = Target::connect(&pair.floor, 1).await?;
    for (filter, order) in SEARCHES {
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..settings.rounds {
            let session = &pair.session;
            let bare = unary::round(settings, &pair.floor, &floor_target, session, 1).await?;
            floor.push(bare.p50_us);
            ours.push(listed(settings, many, filter, order).await?.p50_us);
        }
        let what = if filter.is_empty() { "all" } else { filter };
        let by = if order.is_empty() { "id" } else { order };
        let goal = Goal::AtMost(PAGES);
        let name = format!("ListSessions, {PAGE} of {what}, by {by}: p50");
        report.add(Line::paired(name, &floor, &ours, "us", goal));
        // The median of no figures is none: a round that read no page is not told as a fast one.
        if median(&ours) == 0.0 {
            return Err("no page was read".into());
        }
    }
    Ok(())
}

/// One caller that reads first pages of a search.
async fn listed(
    settings: &Settings,
    many: &Rested,
    filter: &'static str,
    order: &'static str,
) -> Outcome<Sample> {
    closed_loop(Some(&many.server), 1, settings.round, |_| {
        let target = many.target.clone();
        let client = FleetClient::new(target.channel(0));
        move || {
            let request = target.request(wire::ListSessionsRequest {
                page_size: PAGE,
                filter: filter.to_owned(),
                order_by: order.to_owned(),
                ..Default::default()
            });
            let mut client = client.clone();
            async move {
                let found = client
                    .list_sessions(request)
                    .await?
                    .into_inner()
                    .sessions
                    .len();
                if i32::try_from(found) == Ok(PAGE) {
                    return Ok(());
                }
                let problem = format!("{filter}: a page of {found}");
                Err(tonic::Status::internal(problem))
            }
        }
    })
    .await
}
