//! The floor under every durable write: appended records, one thread that syncs for all who wait.
//! No store, no network, no encoding.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Outcome;
use crate::load::now;
use crate::process::data_dir;

/// Bytes of a record.
const RECORD: usize = 300;
/// Most records of one sync.
const ROUND: usize = 512;
const WARM_UP: Duration = Duration::from_millis(200);

type Waiter = oneshot::Sender<()>;

/// Appends a second, with so many writers that each wait for their record to be on the disk.
pub(crate) async fn rate(writers: usize, length: Duration) -> Outcome<f64> {
    let directory = data_dir()?;
    let file = File::create(directory.path().join("log"))?;
    let (queue, waiting) = mpsc::channel(1024);
    let thread = std::thread::spawn(move || sync_rounds(&file, waiting));
    let done = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..writers {
        let (queue, done): (mpsc::Sender<Waiter>, _) = (queue.clone(), done.clone());
        tasks.spawn(async move {
            loop {
                let (waiter, synced) = oneshot::channel();
                if queue.send(waiter).await.is_err() || synced.await.is_err() {
                    return;
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    drop(queue);
    sleep(WARM_UP).await;
    let (began, before) = (now(), done.load(Ordering::Relaxed));
    sleep(length).await;
    let appended = done.load(Ordering::Relaxed) - before;
    let seconds = began.elapsed().as_secs_f64();
    tasks.shutdown().await;
    thread.join().map_err(|_| "the log's thread panicked")??;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(appended as f64 / seconds)
}

fn sync_rounds(mut file: &File, mut queue: mpsc::Receiver<Waiter>) -> std::io::Result<()> {
    let record = [7_u8; RECORD];
    let (mut round, mut waiters) = (Vec::new(), Vec::new());
    while let Some(first) = queue.blocking_recv() {
        let mut next = Some(first);
        while let Some(waiter) = next {
            round.extend_from_slice(&record);
            waiters.push(waiter);
            next = (waiters.len() < ROUND)
                .then(|| queue.try_recv().ok())
                .flatten();
        }
        file.write_all(&round)?;
        file.sync_data()?;
        round.clear();
        for waiter in waiters.drain(..) {
            // A writer that was stopped wants no answer.
            let _ = waiter.send(());
        }
    }
    Ok(())
}
