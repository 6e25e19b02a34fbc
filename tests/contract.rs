//! The contract conformance suite, twice: in process over a memory store, and through the Rust client
//! over a real server and a durable store. Local and remote are isomorphic.
#![cfg(test)]

#[path = "contract/agents.rs"]
mod agents;
#[path = "contract/aging.rs"]
mod aging;
#[path = "contract/audit.rs"]
mod audit;
#[path = "contract/bursts.rs"]
mod bursts;
#[path = "contract/compactions.rs"]
mod compactions;
#[path = "../server/core/src/domain/rendering/tests/corpus.rs"]
mod corpus;
#[path = "contract/cuts.rs"]
mod cuts;
#[path = "contract/durability.rs"]
mod durability;
#[path = "contract/fleet.rs"]
mod fleet;
#[path = "contract/gate.rs"]
mod gate;
#[path = "contract/heartbeats.rs"]
mod heartbeats;
#[path = "contract/hostile.rs"]
mod hostile;
#[path = "contract/house.rs"]
mod house;
#[path = "contract/leases.rs"]
mod leases;
#[path = "contract/losses.rs"]
mod losses;
#[path = "contract/observers.rs"]
mod observers;
#[path = "contract/proxies.rs"]
mod proxies;
#[path = "contract/questions.rs"]
mod questions;
#[path = "contract/reading.rs"]
mod reading;
#[path = "contract/relay.rs"]
mod relay;
#[path = "contract/remote.rs"]
mod remote;
#[path = "contract/renderings.rs"]
mod renderings;
#[path = "contract/replays.rs"]
mod replays;
#[path = "contract/slow.rs"]
mod slow;
#[path = "contract/spills.rs"]
mod spills;
#[path = "contract/stops.rs"]
mod stops;
#[path = "conformance/contract.rs"]
mod suite;
#[path = "contract/transcripts.rs"]
mod transcripts;
#[path = "contract/workspaces.rs"]
mod workspaces;

use house::InProcess;
use remote::OverTheWire;

contract_conformance!(in_process, InProcess);
contract_conformance!(over_the_wire, OverTheWire);
fleet_conformance!(fleet_in_process, InProcess);
fleet_conformance!(fleet_over_the_wire, OverTheWire);
