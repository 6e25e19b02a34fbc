//! The contract conformance suite in process: the application over a memory store.
#![cfg(test)]

#[path = "contract/agents.rs"]
mod agents;
#[path = "contract/gate.rs"]
mod gate;
#[path = "contract/house.rs"]
mod house;
#[path = "conformance/contract.rs"]
mod suite;

use house::InProcess;

contract_conformance!(in_process, InProcess);
