//! An exported audit trail: a line of JSON that says whose it is, a line a record, and a last line that
//! says where it ends. Records have the field names of the API, and are hashed as they stand.
//!
//! What must never enter: where the lines come from.

use serde_json::{Map, Value, json};
use sessionplane_core::contract::audit::AuditItem;
use sessionplane_core::domain::audit::{ChainRecord, Link, Sealed};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::provenance::Digest;

/// What an export calls itself.
const NAME: &str = "sessionplane-audit";
/// The version of its lines.
const VERSION: u64 = 1;

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) tenant: String,
    /// What stands for the hash before the chain's first record.
    pub(super) genesis: Digest,
    /// Records up to this number are left out.
    pub(super) after: u64,
}

impl Header {
    pub(super) fn json(&self) -> Value {
        json!({
            "export": NAME,
            "version": VERSION,
            "tenant": self.tenant,
            "genesis": self.genesis.to_string(),
            "after_seq": self.after,
        })
    }

    pub(super) fn read(line: &Value) -> Result<Self, String> {
        if line["export"] != NAME {
            return Err("it is not the first line of an export of an audit trail".to_owned());
        }
        if line["version"] != VERSION {
            return Err(format!(
                "its version is {}; this program reads {VERSION}: use the newer one",
                line["version"]
            ));
        }
        Ok(Self {
            tenant: text(line, "tenant")?,
            genesis: digest(line, "genesis")?,
            after: number(line, "after_seq")?,
        })
    }
}

/// The last line.
pub(super) fn end_json(end: Link) -> Value {
    json!({"end_seq": end.seq, "end_hash": end.hash.to_string()})
}

/// The last line; none if it is another.
pub(super) fn read_end(line: &Value) -> Result<Option<Link>, String> {
    if line.get("end_seq").is_none() {
        return Ok(None);
    }
    Ok(Some(Link {
        seq: number(line, "end_seq")?,
        hash: digest(line, "end_hash")?,
    }))
}

/// A record's line. What cannot be read says why.
pub(super) fn record_json(item: &AuditItem) -> Value {
    let mut line = match &item.record {
        Ok(record) => fields(record),
        Err(problem) => {
            let mut line = Map::new();
            line.insert("seq".to_owned(), item.seq.into());
            line.insert("damage".to_owned(), problem.as_str().into());
            line
        }
    };
    line.insert("prev_hash".to_owned(), item.previous.to_string().into());
    line.insert("hash".to_owned(), item.hash.to_string().into());
    Value::Object(line)
}

fn fields(record: &ChainRecord) -> Map<String, Value> {
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            line.insert(name.to_owned(), value);
        }
    };
    let message = record.message.map(|id| RunId::from_bytes(id).to_string());
    put("seq", record.seq.into());
    put("time_ms", record.time_ms.into());
    put("tenant", record.tenant.as_str().into());
    put("principal", record.principal.clone().into());
    put("credential", record.credential.clone().into());
    put("via", record.via.clone().into());
    put("action", record.action.as_str().into());
    put("session_id", record.session.map(|id| id.to_string()).into());
    put("decision", record.decision.as_str().into());
    put("policies", record.policies.clone().into());
    put(
        "request_digest",
        record.request_digest.map(|it| it.to_string()).into(),
    );
    put("bytes", record.bytes.into());
    put("request_id", record.request_id.clone().into());
    put("trace_id", record.trace_id.clone().into());
    put("outcome", record.outcome.as_str().into());
    put("run_id", record.run.map(|id| id.to_string()).into());
    put("entries", record.entries.clone().into());
    put("message_id", message.into());
    put("series", record.series.clone().into());
    put("ordinal", record.ordinal.into());
    put("sandbox", record.sandbox.clone().into());
    put("peer", record.peer.clone().into());
    put("reason", record.reason.clone().into());
    put("count", record.count.into());
    put("last_time_ms", record.last_time_ms.into());
    line
}

/// A record from its line. `Ok(Err(..))` is one that could not be read when it was exported.
pub(super) fn read_record(line: &Value) -> Result<Result<Sealed, (u64, String)>, String> {
    let seq = number(line, "seq")?;
    if let Some(problem) = line["damage"].as_str() {
        return Ok(Err((seq, problem.to_owned())));
    }
    let list = |name: &str| line[name].as_array().cloned().unwrap_or_default();
    let policies = list("policies").into_iter().map(|it| {
        let text = it.as_str().map(str::to_owned);
        text.ok_or_else(|| "policies has something that is no text".to_owned())
    });
    let entries = list("entries").into_iter().map(|it| {
        it.as_u64()
            .ok_or_else(|| "entries has something that is no number".to_owned())
    });
    let record = ChainRecord {
        seq,
        time_ms: number(line, "time_ms")?,
        tenant: text(line, "tenant")?,
        principal: maybe_text(line, "principal"),
        credential: maybe_text(line, "credential"),
        via: maybe_text(line, "via"),
        action: text(line, "action")?,
        session: maybe_id(line, "session_id")?,
        decision: text(line, "decision")?,
        policies: policies.collect::<Result<_, _>>()?,
        request_digest: match line.get("request_digest") {
            None => None,
            Some(_) => Some(digest(line, "request_digest")?),
        },
        bytes: number(line, "bytes")?,
        request_id: maybe_text(line, "request_id"),
        trace_id: maybe_text(line, "trace_id"),
        outcome: text(line, "outcome")?,
        run: maybe_id(line, "run_id")?,
        entries: entries.collect::<Result<_, _>>()?,
        message: maybe_id::<RunId>(line, "message_id")?.map(RunId::to_bytes),
        series: maybe_text(line, "series"),
        ordinal: line["ordinal"].as_u64(),
        sandbox: maybe_text(line, "sandbox"),
        peer: maybe_text(line, "peer"),
        reason: maybe_text(line, "reason"),
        count: line["count"].as_u64(),
        last_time_ms: line["last_time_ms"].as_u64(),
    };
    Ok(Ok(Sealed {
        record,
        previous: digest(line, "prev_hash")?,
        hash: digest(line, "hash")?,
    }))
}

pub(super) fn number(line: &Value, name: &str) -> Result<u64, String> {
    line[name]
        .as_u64()
        .ok_or_else(|| format!("{name} is no number"))
}

pub(super) fn text(line: &Value, name: &str) -> Result<String, String> {
    maybe_text(line, name).ok_or_else(|| format!("{name} is no text"))
}

fn maybe_text(line: &Value, name: &str) -> Option<String> {
    line[name].as_str().map(str::to_owned)
}

fn maybe_id<T: std::str::FromStr>(line: &Value, name: &str) -> Result<Option<T>, String> {
    let text = line[name].as_str();
    text.map(|text| text.parse().map_err(|_| format!("{name} is no id")))
        .transpose()
}

pub(super) fn digest(line: &Value, name: &str) -> Result<Digest, String> {
    let found = line[name].as_str().and_then(Digest::parse);
    found.ok_or_else(|| format!("{name} is not 64 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::audit::seal;

    use super::*;

    /// The documented vectors are lines of an export.
    #[test]
    fn c56_a_record_reads_back_from_its_line_as_it_was_sealed() {
        let page: Value =
            serde_json::from_str(include_str!("../../../docs/audit-vectors.json")).unwrap();
        for vector in page["records"].as_array().unwrap() {
            let mut line = vector["record"].clone();
            line["prev_hash"] = vector["prev_hash"].clone();
            line["hash"] = vector["hash"].clone();
            let sealed = read_record(&line).unwrap().unwrap();
            assert_eq!(seal(sealed.previous, &sealed.record), sealed.hash);
            let item = AuditItem {
                seq: sealed.record.seq,
                previous: sealed.previous,
                hash: sealed.hash,
                record: Ok(sealed.record),
            };
            assert_eq!(record_json(&item), line);
        }
    }

    #[test]
    fn c56_a_line_that_is_no_record_says_what_is_wrong_with_it() {
        let line = json!({"seq": 1, "time_ms": "soon"});
        assert_eq!(read_record(&line).unwrap_err(), "time_ms is no number");
        let damaged = json!({"seq": 7, "damage": "it is missing"});
        let told = read_record(&damaged).unwrap().unwrap_err();
        assert_eq!(told, (7, "it is missing".to_owned()));
        let header = json!({"export": NAME, "version": 2});
        assert!(Header::read(&header).unwrap_err().contains("newer"));
    }
}
