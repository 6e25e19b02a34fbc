//! Verifying a chain, live or from a file, against itself and against checkpoints.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use sessionplane_core::contract::audit::{AuditFilter, AuditItem};
use sessionplane_core::domain::audit::{
    Broken, Checkpoint, CheckpointBody, Flaw, Link, Sealed, Verifier, witness,
};
use sessionplane_core::domain::provenance::Digest;

use super::{PAGE, page};
use crate::cli::args::VerifyArgs;
use crate::cli::audit_file::{Header, digest, number, read_end, read_record, text};
use crate::cli::context::{Context, IMPATIENCE};
use crate::cli::exit::{Exit, Stop};
use crate::cli::screen::Screen;
use crate::clock::now;

/// What the outside world says of a chain.
#[derive(Default)]
struct Witnesses {
    seen: Vec<Link>,
    /// Hashes of the records that checkpoints saw.
    found: HashMap<u64, Digest>,
    /// Checkpoints of other tenants, which say nothing here.
    others: usize,
}

/// The chain while it is read.
struct Checking {
    tenant: String,
    after: u64,
    verifier: Verifier,
    witnesses: Witnesses,
    records: u64,
    broken: Option<Broken>,
}

impl Checking {
    fn new(tenant: &str, genesis: Digest, after: u64, witnesses: Witnesses) -> Self {
        let verifier = if after == 0 {
            let hash = genesis;
            Verifier::after(tenant, Link { seq: 0, hash })
        } else {
            Verifier::unanchored(tenant, after)
        };
        Self {
            tenant: tenant.to_owned(),
            after,
            verifier,
            witnesses,
            records: 0,
            broken: None,
        }
    }

    /// The next record; tells whether it is good. Nothing is read after the first that is not.
    fn next(&mut self, record: Result<Sealed, (u64, String)>) -> bool {
        self.records += 1;
        let judged = match record {
            Ok(sealed) => self.verifier.next(&sealed).map(|()| {
                if self
                    .witnesses
                    .seen
                    .iter()
                    .any(|it| it.seq == sealed.record.seq)
                {
                    self.witnesses.found.insert(sealed.record.seq, sealed.hash);
                }
            }),
            Err((seq, problem)) => Err(Broken {
                seq,
                flaw: Flaw::Unreadable(problem),
            }),
        };
        self.broken = judged.err();
        self.broken.is_none()
    }

    fn ends(&mut self, end: Option<Link>) {
        if self.broken.is_some() || self.records == 0 {
            return;
        }
        self.broken = end.and_then(|end| self.verifier.ends(end).err());
    }

    /// Says how it ended.
    fn told(self, json: bool, screen: &mut Screen) -> Result<Exit, Stop> {
        let end = self.verifier.at();
        let mut problems = Vec::new();
        if let Some(Broken { seq, flaw }) = &self.broken {
            problems.push((*seq, flaw.to_string()));
        } else {
            // What comes before the first record of a part cannot be compared.
            let seen = self.witnesses.seen.iter().filter(|it| it.seq > self.after);
            for seen in seen {
                let hash = self.witnesses.found.get(&seen.seq).copied();
                if let Err(flaw) = witness(*seen, hash, end.seq) {
                    problems.push((seen.seq, flaw.to_string()));
                }
            }
        }
        let witnessed = self.witnesses.found.len();
        if json {
            let bad: Vec<Value> = problems
                .iter()
                .map(|(seq, problem)| json!({"seq": seq, "problem": problem}))
                .collect();
            screen.json(&json!({
                "tenant": self.tenant,
                "verified": problems.is_empty(),
                "after_seq": self.after,
                "end_seq": end.seq,
                "end_hash": end.hash.to_string(),
                "checkpoints": witnessed,
                "bad": bad,
            }))?;
        } else if problems.is_empty() {
            let from = self.after + 1;
            screen.line(&format!(
                "verified: records {from} to {} of {}, to {}",
                end.seq, self.tenant, end.hash
            ))?;
            let said = match (self.witnesses.seen.len(), self.witnesses.others) {
                (0, _) => {
                    "no checkpoint was given: that nothing is missing at the end is not proven"
                        .to_owned()
                }
                (_, 0) => format!("{witnessed} checkpoints fit"),
                (_, others) => {
                    format!("{witnessed} checkpoints fit; {others} are of other tenants")
                }
            };
            screen.aside(&said)?;
        } else {
            for (seq, problem) in &problems {
                screen.error(&format!("record {seq} of {}: {problem}", self.tenant))?;
            }
        }
        Ok(if problems.is_empty() {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

/// Verifies the server's chain: every record is hashed here.
pub(super) async fn live(
    args: &VerifyArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let first = page(u64::MAX, 1, AuditFilter::default(), context, screen).await?;
    let witnesses = Witnesses::read(args, &first.tenant)?;
    let mut checking = Checking::new(&first.tenant, first.genesis, 0, witnesses);
    let (began, mut after) = (now(), 0);
    // What is written meanwhile is not waited for.
    let end = first.end;
    'pages: while after < end.seq {
        let found = page(after, PAGE, AuditFilter::default(), context, screen).await?;
        for item in found.items {
            after = item.seq;
            if item.seq > end.seq || !checking.next(sealed(item)) {
                break 'pages;
            }
        }
        if now().since(began) > IMPATIENCE {
            screen.status(&format!("verified {after} of {}", end.seq))?;
        }
        if found.next.is_none() {
            break;
        }
    }
    checking.ends(Some(end));
    checking.told(context.globals.json, screen)
}

fn sealed(item: AuditItem) -> Result<Sealed, (u64, String)> {
    match item.record {
        Ok(record) => Ok(Sealed {
            record,
            previous: item.previous,
            hash: item.hash,
        }),
        Err(problem) => Err((item.seq, problem)),
    }
}

/// Verifies an export.
pub(super) fn file(
    path: &Path,
    args: &VerifyArgs,
    json: bool,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let unreadable = |line: usize, problem: String| {
        Stop::usage(format!("{}: line {line}: {problem}", path.display()))
    };
    let mut lines = lines(path)?.enumerate().map(|(at, line)| (at + 1, line));
    let (at, first) = lines
        .next()
        .ok_or_else(|| unreadable(1, "it is empty".to_owned()))?;
    let first = first.map_err(|problem| unreadable(at, problem))?;
    let header = Header::read(&first).map_err(|problem| unreadable(at, problem))?;
    let witnesses = Witnesses::read(args, &header.tenant)?;
    let mut checking = Checking::new(&header.tenant, header.genesis, header.after, witnesses);
    let began = now();
    let mut end = None;
    for (at, line) in lines {
        let line = line.map_err(|problem| unreadable(at, problem))?;
        if let Some(told) = read_end(&line).map_err(|problem| unreadable(at, problem))? {
            end = Some(told);
            break;
        }
        let record = read_record(&line).map_err(|problem| unreadable(at, problem))?;
        if !checking.next(record) {
            return checking.told(json, screen);
        }
        if at.is_multiple_of(10_000) && now().since(began) > IMPATIENCE {
            screen.status(&format!("verified {} records", checking.records))?;
        }
    }
    if end.is_none() {
        let seq = checking.verifier.at().seq + 1;
        checking.broken = Some(Broken {
            seq,
            flaw: Flaw::CutOff,
        });
    }
    checking.ends(end);
    checking.told(json, screen)
}

fn lines(path: &Path) -> Result<impl Iterator<Item = Result<Value, String>>, Stop> {
    let file = File::open(path)
        .map_err(|error| Stop::usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(BufReader::new(file).lines().map(|line| {
        let line = line.map_err(|error| error.to_string())?;
        serde_json::from_str(&line).map_err(|error| error.to_string())
    }))
}

impl Witnesses {
    /// Reads checkpoints, each with a good signature.
    fn read(args: &VerifyArgs, tenant: &str) -> Result<Self, Stop> {
        let (Some(path), Some(key)) = (&args.checkpoints, &args.public_key) else {
            return Ok(Self::default());
        };
        let key = std::fs::read_to_string(key)
            .map_err(|error| Stop::usage(format!("cannot read {}: {error}", key.display())))?;
        let key = Digest::parse(key.trim())
            .ok_or_else(|| Stop::usage("the public key is not 64 hexadecimal digits"))?;
        let mut witnesses = Self::default();
        for (at, line) in lines(path)?.enumerate() {
            let wrong =
                |problem| Stop::usage(format!("{}: line {}: {problem}", path.display(), at + 1));
            let checkpoint = line.and_then(|line| checkpoint(&line)).map_err(wrong)?;
            let signed = checkpoint.body.signed();
            let signature = UnparsedPublicKey::new(&ED25519, key.0);
            if signature.verify(&signed, &checkpoint.signature).is_err() {
                let problem = "its signature is not of this key".to_owned();
                return Err(Stop::failed(
                    Exit::Failed,
                    format!("{}: line {}: {problem}", path.display(), at + 1),
                ));
            }
            if checkpoint.body.tenant == tenant {
                witnesses.seen.push(Link {
                    seq: checkpoint.body.seq,
                    hash: checkpoint.body.hash,
                });
            } else {
                witnesses.others += 1;
            }
        }
        Ok(witnesses)
    }
}

fn checkpoint(line: &Value) -> Result<Checkpoint, String> {
    let signature = text(line, "signature")?;
    let halves = signature.split_at_checked(64);
    let halves = halves.and_then(|(a, b)| Some((Digest::parse(a)?, Digest::parse(b)?)));
    let (first, second) = halves.ok_or("signature is not 128 hexadecimal digits")?;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&first.0);
    signature[32..].copy_from_slice(&second.0);
    Ok(Checkpoint {
        body: CheckpointBody {
            tenant: text(line, "tenant")?,
            seq: number(line, "seq")?,
            hash: digest(line, "hash")?,
            time_ms: number(line, "time_ms")?,
            key_id: text(line, "key_id")?,
        },
        signature,
    })
}
