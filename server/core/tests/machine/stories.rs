//! Stories: one rule of the contract each, named after it, with fixed inputs and their outcome.

mod abort;
mod admission;
mod boundary;
mod compaction;
mod conflation;
mod disconnect;
mod dispatch;
mod in_hand;
mod interactions;
mod output;
mod placing;
mod queue;
mod recovery;
mod settle;
mod soundness;
mod story;
mod untrusted;
mod words;
