//! The contract conformance suite in process: the application over a memory store.
#![cfg(test)]

#[path = "contract/agents.rs"]
mod agents;
#[path = "contract/durability.rs"]
mod durability;
#[path = "contract/gate.rs"]
mod gate;
#[path = "contract/hostile.rs"]
mod hostile;
#[path = "contract/house.rs"]
mod house;
#[path = "contract/leases.rs"]
mod leases;
#[path = "contract/reading.rs"]
mod reading;
#[path = "conformance/contract.rs"]
mod suite;

use house::InProcess;

contract_conformance!(in_process, InProcess);
