//! THE declaration: every setting, once. The file's parser, the environment, the flags, `config
//! check`, `explain` and `schema`, and `docs/configuration.md` are made from it.
//!
//! What must never enter: what a value brings about.

use super::setting::{Kind, Number, Said, Setting, Value, of};
use super::untrusted::{ON_FILE, WITHHOLD};
use super::{
    identity, identity::KINDS, issuers, sandbox::REQUIRE_SANDBOX, spaces::AGENTS, tls::CLIENT_AUTH,
};

/// The seconds of a day.
const DAY: u64 = 24 * 60 * 60;
const MIB: u64 = 1024 * 1024;
const HOUR: u64 = 60 * 60;

/// Every setting, in the order in which they are told.
pub(crate) static DECLARED: &[Setting] = &[
    Setting {
        flag: Some("listen"),
        ..text!(
            "listen",
            Kind::Text("IP:PORT, localhost:PORT or unix:/PATH"),
            listen,
            "Where the server listens. Port 0 takes a free one."
        )
    },
    Setting {
        flag: Some("health-listen"),
        ..text!(
            "health_listen",
            Kind::Text("IP:PORT or unix:/PATH"),
            health_listen,
            "A second address that answers health checks in plain text and nothing else, for probes \
             that speak no TLS; without it there is none."
        )
    },
    Setting {
        flag: Some("data-dir"),
        ..text!(
            "data_dir",
            Kind::Text("a directory's path"),
            data_dir,
            "Where the store and the owner token live; without it $XDG_STATE_HOME/sessionplane, else \
             ~/.local/state/sessionplane."
        )
    },
    text!(
        "default_agent",
        Kind::Text("the name of an agent"),
        default_agent,
        "The agent that a new session gets unless another is named; without it the first by name, \
         or `demo` where none is configured."
    ),
    Setting {
        needed: true,
        ..named!(
            "workspaces.*.root",
            Kind::Text("a directory's path"),
            workspaces,
            root,
            "The root of a directory tree that agents may see. Its name, of a-z, 0-9 and inner \
             hyphens, is how sessions tell where they work."
        )
    },
    named_switch!(
        "workspaces.*.writable",
        workspaces,
        writable,
        "Whether engines may write into it, and working trees be made in it."
    ),
    AGENTS,
    Setting {
        needed: true,
        ..named!(
            "agents.*.engine",
            Kind::OneOf(&["demo", "scripted", "scripted-process"]),
            agents,
            engine,
            "What drives the agent: `demo` searches and reads a workspace; `scripted` plays the scenario \
             in its prompt, `scripted-process` in a process of its own, kept in the workspace."
        )
    },
    named!(
        "agents.*.workspace",
        Kind::Text("the name of a workspace"),
        agents,
        workspace,
        "The workspace that the agent sees, for engines that see one: where its sessions work."
    ),
    REQUIRE_SANDBOX,
    WITHHOLD,
    ON_FILE,
    whole!(
        "fleet.stalled_after_seconds",
        1..=DAY,
        app.stalled_after,
        "A session that works and has shown nothing for so long is shown as stalled."
    ),
    text!(
        "audit.checkpoints_file",
        Kind::Text("a file's path"),
        checkpoints_file,
        "Where signed checkpoints of the audit trail are appended, a line each. Keep it, or a copy, \
         outside of this machine: who can write the data directory can write all that is in it. \
         Without it they go to `checkpoints.jsonl` in the data directory, and to the log."
    ),
    whole!(
        "audit.checkpoint_seconds",
        1..=DAY,
        checkpoint_every,
        "How often a checkpoint of each chain that has grown is written; and at the stop."
    ),
    // Who may call, over what.
    Setting {
        needed: true,
        ..named!(
            "identity.principals.*.kind",
            Kind::OneOf(KINDS),
            identity.principals,
            kind,
            "What the principal is. Tokens are made for it with `sessiond token create`."
        )
    },
    named!(
        "identity.principals.*.tenant",
        Kind::Text("a tenant's name"),
        identity.principals,
        tenant,
        "The isolation unit that it belongs to: it sees nothing of another one. Without one it is \
         `default`, the owner's."
    ),
    Setting {
        key: "identity.principals.*.groups",
        kind: Kind::List("a group"),
        flag: None,
        variable: None,
        about: "What it may do: `admin` everything, `operator` everything but administer, `observer` \
                look on, `ci` send messages to sessions labelled accepts=ci. Others are names for policies. Without any it is \
                `operator`, for an agent `observer`.",
        needed: false,
        set: |settings, name, value| {
            if let Value::List(groups) = value {
                of(&mut settings.identity.principals, name).groups = Some(groups);
            }
        },
        get: |settings, name| {
            let found = settings.identity.principals.get(name)?;
            found.groups.clone().map(Value::List)
        },
    },
    list!(
        "policy.files",
        Kind::List("a file's path"),
        policy.files,
        "Files of policies, in the Cedar language: who may do what (docs/policy.md). They are read again \
         when they change, and at SIGHUP; what is wrong with them keeps a server from starting, and a \
         running one at what it had."
    ),
    text!(
        "policy.dir",
        Kind::Text("a directory's path"),
        policy.dir,
        "A directory of which every file that ends in `.cedar` is read like those of policy.files."
    ),
    switch!(
        "policy.default_set",
        policy.default_set,
        "Whether the policies that ship with the server hold beside them: what `sessiond policy default` \
         prints. Without them nobody may do anything that no file allows, the owner included."
    ),
    identity::CERTIFICATES,
    issuers::CLAIMS,
    identity::TRUST,
    issuers::ISSUER,
    issuers::AUDIENCES,
    issuers::ALGORITHMS_OF,
    issuers::URL,
    issuers::FILE,
    issuers::CA_FILE,
    issuers::LEEWAY,
    issuers::REFRESH,
    issuers::STALE,
    list!(
        "identity.forwarded.peers",
        Kind::List("spiffe://DOMAIN/PATH, dns:NAME or subject:CN=..."),
        identity.forwarded.peers,
        "Proxies whose x-forwarded-client-cert is believed, by the names of their own certificates. \
         Nobody else's is."
    ),
    switch!(
        "identity.forwarded.loopback_only",
        identity.forwarded.loopback_only,
        "Whether that header is believed from everybody, for a server behind a sidecar that listens \
         on loopback or a unix socket; elsewhere it is refused at the start."
    ),
    text!(
        "tls.cert_file",
        Kind::Text("a PEM file's path"),
        tls.cert_file,
        "The server's certificate and those between it and its authority. With it a TCP address \
         takes TLS only. The files are read again when they change, and at SIGHUP."
    ),
    text!(
        "tls.key_file",
        Kind::Text("a PEM file's path"),
        tls.key_file,
        "Its private key. Mode 600, or 640 with a group of the server's user; a start warns if everybody can read it."
    ),
    text!(
        "tls.client_auth",
        Kind::OneOf(CLIENT_AUTH),
        tls.client_auth,
        "Whether clients show a certificate: who is requested to and shows one must show a good one. \
         It does not replace a token. Without it nobody is asked."
    ),
    text!(
        "tls.client_ca_file",
        Kind::Text("a PEM file's path"),
        tls.client_ca_file,
        "The authorities whose client certificates are accepted."
    ),
    // Sessions and runs.
    whole!(
        "limits.max_pending_inputs",
        1..=1024,
        app.limits.max_pending_inputs,
        "Most inputs that wait in one run's queue. All of them are in the session's state, which \
         must fit one message."
    ),
    whole!(
        "limits.cancel_grace_seconds",
        0..=DAY,
        app.limits.cancel_grace,
        "How long a CANCEL run waits for a rejoin after its caller vanished."
    ),
    whole!(
        "limits.rejoin_grace_seconds",
        0..=DAY,
        app.limits.rejoin_grace,
        "How long it waits when it was the server that ended the stream."
    ),
    whole!(
        "limits.abort_grace_seconds",
        1..=3600,
        app.limits.abort_grace,
        "How long an engine may take to stop after an abort before it is killed."
    ),
    whole!(
        "limits.engine_open_seconds",
        1..=600,
        app.engine_open_timeout,
        "How long an engine may take to open."
    ),
    whole!(
        "limits.idle_seconds",
        1..=DAY,
        app.idle_ttl,
        "How long a session's task stays in memory after its last activity."
    ),
    whole!(
        "limits.binding_retention_hours",
        24..=87_600,
        HOUR,
        app.binding_retention,
        "How long a request id stays bound, at least."
    ),
    // Observers.
    whole!(
        "limits.ring_events",
        16..=1_048_576,
        app.ring_events,
        "Events that a session's ring retains for observers that come back."
    ),
    whole!(
        "limits.ring_mib",
        1..=1024,
        MIB,
        app.ring_bytes,
        "Memory that a session's ring keeps at most."
    ),
    whole!(
        "limits.all_rings_mib",
        16..=65_536,
        MIB,
        app.all_rings_bytes,
        "Memory that all rings together keep at most; beyond it the largest give up their oldest."
    ),
    whole!(
        "limits.idle_channels",
        16..=1_048_576,
        app.idle_channels,
        "Dormant sessions whose newest events stay in memory."
    ),
    whole!(
        "limits.heartbeat_seconds",
        1..=20,
        app.heartbeat,
        "Time between heartbeats on a quiet event stream. Clients take a stream for dead that is \
         silent for longer than they were told."
    ),
    whole!(
        "limits.max_observers_per_session",
        1..=1_048_576,
        app.max_observers,
        "Event streams that one session has at a time. A further one is refused: LIMIT_REACHED."
    ),
    whole!(
        "limits.max_watches",
        1..=65_536,
        app.max_watches,
        "Watches of sessions at a time. A further one is refused: LIMIT_REACHED."
    ),
    whole!(
        "limits.max_watches_per_principal",
        1..=65_536,
        app.max_watches_per_principal,
        "Watches of sessions that one principal has at a time. A further one is refused: \
         LIMIT_REACHED."
    ),
    // Connections and calls.
    whole!(
        "limits.max_connections",
        1..=1_048_576,
        face.max_connections,
        "Connections at a time; fewer where the system allows fewer open files. At the limit one \
         that says nothing or rests makes room."
    ),
    whole!(
        "limits.max_streams_per_connection",
        1..=65_536,
        face.max_streams_per_connection,
        "Calls at a time on one connection; further ones wait at the client."
    ),
    whole!(
        "limits.max_request_bytes",
        2 * MIB..=64 * MIB,
        face.max_request_bytes,
        "Size of a request message, after decompression. A larger one is refused: TOO_LARGE."
    ),
    whole!(
        "limits.max_header_bytes",
        4096..=262_144,
        face.max_header_bytes,
        "Size of a request's headers, names and values and 32 for each. A request with more is \
         refused: TOO_LARGE. One with more than four times as much, and than 256 KiB, is refused by \
         a bare HTTP 431, or its connection is closed."
    ),
    whole!(
        "limits.max_calls",
        1..=65_536,
        face.max_calls,
        "Calls at a time that are not answered yet, health and waits apart; of one principal three \
         quarters. A further one costs nothing and is refused: OVERLOADED, to come back."
    ),
    whole!(
        "limits.max_waits",
        1..=1_048_576,
        face.max_waits,
        "Calls of WaitRun at a time of one principal. A further one is refused: OVERLOADED."
    ),
    whole!(
        "limits.blocking_threads",
        4..=512,
        blocking_threads,
        "Reads of the store at a time, each on a thread. What waits is part of a call in work, a run \
         or an observer, each bounded. What else blocks (artifacts, workspaces, backups, files of \
         TLS) has its own threads, so that a disk that hangs takes none of these."
    ),
    whole!(
        "limits.handshake_seconds",
        1..=600,
        face.handshake_within,
        "How long a TLS handshake may take."
    ),
    whole!(
        "limits.first_request_seconds",
        1..=3600,
        face.first_request_within,
        "A connection without a call for so long after its start is closed."
    ),
    whole!(
        "limits.rest_seconds",
        1..=3600,
        face.rest_after,
        "A connection without a call for so long rests: at the limit it makes room."
    ),
    whole!(
        "limits.message_seconds",
        1..=3600,
        face.message_within,
        "A request message that has not arrived whole by then is given up."
    ),
    whole!(
        "limits.unread_seconds",
        1..=DAY,
        face.unread_within,
        "A stream, or a long answer, of which its reader takes nothing for so long, though there is \
         something, is ended; its caller resumes, or asks again."
    ),
    whole!(
        "limits.keepalive_interval_seconds",
        1..=7200,
        face.keepalive_interval,
        "How often a silent peer is asked whether it is there."
    ),
    whole!(
        "limits.keepalive_timeout_seconds",
        1..=600,
        face.keepalive_timeout,
        "How long its answer may take before it counts as gone."
    ),
    whole!(
        "limits.max_connection_age_seconds",
        0..=7 * DAY,
        face.max_connection_age,
        "Age at which a connection is closed, give or take a tenth, so that load spreads to new \
         servers. 0: never, the best choice behind a mesh."
    ),
    whole!(
        "limits.max_connection_age_grace_seconds",
        1..=DAY,
        face.max_connection_age_grace,
        "How long calls may go on over a connection that is closed for its age."
    ),
    switch!(
        "limits.beyond_ranges",
        beyond_ranges,
        "Takes values of this section above their ranges, up to 4294967295, for measurements: memory \
         is then not bounded any more."
    ),
    // The end.
    whole!(
        "drain.lame_duck_seconds",
        0..=600,
        face.lame_duck,
        "On a stop: how long everything is still taken while health says NOT_SERVING, so that load \
         balancers notice."
    ),
    whole!(
        "drain.deadline_seconds",
        0..=3600,
        face.drain_within,
        "On a stop, after that: how long runs that are active may take to settle. New ones are \
         refused meanwhile; at the end those left are settled as interrupted."
    ),
    whole!(
        "drain.close_seconds",
        1..=60,
        close_within,
        "On a stop, after that: how long the rest may take. Then it is gone, whatever hangs."
    ),
    switch!(
        "edge.open_reflection",
        face.open_reflection,
        "Whether reflection answers callers that have not said who they are."
    ),
    list!(
        "edge.web_origins",
        Kind::List("http://HOST, https://HOST:PORT, or HOST:* for any port"),
        face.web_origins,
        "Where pages are from that may call by gRPC-Web. A page from elsewhere is refused."
    ),
    whole!(
        "store.cache_mib",
        16..=65_536,
        MIB,
        cache_bytes,
        "The store's page cache."
    ),
    switch!(
        "log.json",
        log_json,
        "One JSON object a line instead of text."
    ),
    Setting {
        variable: Some("SESSIONPLANE_LOG"),
        ..text!(
            "log.filter",
            Kind::Text("a filter of the tracing crate, like info or sessionplane_server=debug"),
            log_filter,
            "What is logged."
        )
    },
];
