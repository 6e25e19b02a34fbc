//! C36: many hostile agents, in process. What is asked of each is the suite's.

use crate::house::{HOSTILE, House};
use crate::suite::hostile::bouts;
use crate::suite::world::quick;

#[tokio::test(flavor = "multi_thread")]
async fn c36_200_hostile_agents_settle_every_run_once_and_every_input() {
    let house = House::new(quick());
    bouts(&house.world(), 0..HOSTILE).await;
}
