//! C42: how programs end, also those that do not want to, and that nothing of them is left.

use std::time::Duration;

use sessionplane_server::adapters::boundary::Access;
use sessionplane_server::adapters::process_host::{Bounds, Edition, ProcessHost, Program};
use tokio::time::timeout;

use crate::hall::{DEADLINE, Hall, SHORT, all_gone, line, numbers, runs, session, tell};

/// Ignores what it is asked, has children in its group, in sessions of their own and without the
/// mark, all of which hold its streams open, and says the numbers of all five.
pub(crate) const HOSTILE: &str = r#"
trap '' TERM INT HUP
sleep 1000 &
echo $!
(setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1000; done' &)
(setsid sh -c 'trap "" TERM HUP; (echo $$; exec env -i /bin/sleep 1000) & wait' &)
setsid sh -c 'trap "" TERM HUP; sh -c "trap \"\" TERM; echo \$\$; while :; do sleep 1000; done" & exit' &
echo $$
while :; do sleep 1000; done
"#;
pub(crate) const HOSTILE_NUMBERS: usize = 5;

async fn hostile(
    hall: &Hall,
) -> (
    sessionplane_server::adapters::process_host::Started,
    Vec<i32>,
) {
    let mut started = hall.start(hall.shell(HOSTILE, Access::ReadOnly)).await;
    let pids = numbers(&mut started, HOSTILE_NUMBERS).await;
    assert!(pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    (started, pids)
}

#[tokio::test]
async fn c42_the_end_of_its_input_ends_a_program_that_heeds_it() {
    let hall = Hall::within(Bounds {
        input: DEADLINE,
        ..SHORT
    });
    let script = "echo $$; cat > /dev/null; echo bye";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pid = numbers(&mut started, 1).await;
    drop(started.input);
    assert_eq!(line_of(&mut started.output).await.as_deref(), Some("bye"));
    drop(started.hold);
    timeout(DEADLINE / 2, hall.gone())
        .await
        .expect("nobody waits");
    all_gone(&pid).await;
    assert_eq!(hall.left(), (0, 0));
}

async fn line_of(
    output: &mut sessionplane_server::adapters::process_host::Lines<
        tokio::net::unix::pipe::Receiver,
    >,
) -> Option<String> {
    let line = timeout(DEADLINE, output.next()).await.unwrap().unwrap();
    line.map(|line| String::from_utf8(line).unwrap())
}

#[tokio::test]
async fn c42_a_program_that_needs_to_be_asked_is_asked_before_it_is_killed() {
    let hall = Hall::within(Bounds {
        terminate: DEADLINE,
        ..SHORT
    });
    let script = "trap 'echo asked; exit' TERM; echo $$; while :; do sleep 0.05; done";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pid = numbers(&mut started, 1).await;
    drop((started.hold, started.input));
    assert_eq!(line_of(&mut started.output).await.as_deref(), Some("asked"));
    hall.gone().await;
    all_gone(&pid).await;
}

#[tokio::test]
async fn c42_a_hostile_tree_is_dead_within_the_bounds_once_nobody_holds_it() {
    let hall = Hall::new();
    let (started, pids) = hostile(&hall).await;
    drop(started);
    hall.gone().await;
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
    assert_eq!(hall.left(), (0, 0));
}

/// It is over when the program is, whoever still holds its streams.
#[tokio::test]
async fn c42_what_a_program_leaves_behind_does_not_outlive_it() {
    let hall = Hall::new();
    let script = "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & read line";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pids = numbers(&mut started, 1).await;
    drop(started.input);
    // Its end: the orphan had it open as well.
    assert_eq!(line_of(&mut started.output).await, None);
    hall.gone().await;
    all_gone(&pids).await;
    drop(started.hold);
}

#[tokio::test]
async fn c42_a_tree_that_grows_while_it_is_killed_is_dead_all_the_same() {
    let hall = Hall::new();
    // Each child is at once replaced by another one in a session of its own.
    let script = "trap '' TERM; echo $$; \
        grow() { while sleep 0.001; do (setsid sh -c 'trap \"\" TERM; sleep 0.01; sleep 30' &) ; done; }; \
        grow";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pid = numbers(&mut started, 1).await;
    drop(started);
    hall.gone().await;
    all_gone(&pid).await;
    assert_eq!(hall.left(), (0, 0));
}

/// The next program of a session is not started beside what is left of the last one.
#[tokio::test]
async fn c42_the_next_program_of_a_session_waits_until_the_last_ones_tree_is_dead() {
    let hall = Hall::new();
    let (started, pids) = hostile(&hall).await;
    drop(started);
    let mut next = hall.start(hall.shell("echo next", Access::ReadOnly)).await;
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
    assert_eq!(line(&mut next).await.as_deref(), Some("next"));
}

/// Who wants another one has the session now.
#[tokio::test]
async fn c53_the_next_program_of_a_session_evicts_one_that_is_still_held() {
    let hall = Hall::new();
    let mut first = hall
        .start(hall.shell("echo $$; cat", Access::ReadOnly))
        .await;
    let pid = numbers(&mut first, 1).await;
    let mut next = hall.start(hall.shell("echo next", Access::ReadOnly)).await;
    assert!(!runs(pid[0]));
    assert_eq!(line(&mut next).await.as_deref(), Some("next"));
    assert_eq!(line(&mut first).await, None);
}

/// Its own children are no longer its children then.
#[tokio::test]
async fn c42_a_tree_whose_supervisor_was_killed_is_found_by_its_mark() {
    let hall = Hall::new();
    let script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' &); \
                  echo $PPID; exec sleep 1000";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pids = numbers(&mut started, 2).await;
    let supervisor = parent(&pids);
    kill(supervisor);
    hall.gone().await;
    all_gone(&pids).await;
    assert_eq!(hall.left(), (0, 0));
    drop(started);
}

/// Goes on in its second thread and leaves with the first: the system calls it a zombie then.
const LONE: &str = r"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *stay(void *nothing) { for (;;) sleep(1000); return nothing; }
int main(void) {
    pthread_t thread;
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    pthread_create(&thread, 0, stay, 0);
    syscall(SYS_exit, 0);
}
";

/// Threads of a process that have not ended.
fn threads(pid: i32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let states = tasks.map(|task| std::fs::read_to_string(task.path().join("stat")));
    let lives = |stat: &String| !stat.contains(") Z ") && !stat.contains(") X ");
    states.flatten().filter(lives).count()
}

async fn lone(
    hall: &Hall,
) -> (
    sessionplane_server::adapters::process_host::Started,
    Vec<i32>,
) {
    let source = hall.path("lone.c");
    std::fs::write(&source, LONE).unwrap();
    let made = std::process::Command::new("cc")
        .arg("-pthread")
        .arg(&source)
        .arg("-o")
        .arg(hall.path("work/lone"))
        .status();
    assert!(made.unwrap().success(), "whoever links Rust has it");
    let script = "trap '' TERM; setsid ./lone & echo $!; echo $PPID; read line";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pids = numbers(&mut started, 2).await;
    let left = async {
        while runs(pids[0]) {
            // No event tells of the end of a thread.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, left)
        .await
        .expect("its first thread leaves");
    assert_eq!(threads(pids[0]), 1);
    (started, pids)
}

#[tokio::test]
async fn c42_what_goes_on_without_its_first_thread_is_ended_like_any_other() {
    let hall = Hall::new();
    let (started, pids) = lone(&hall).await;
    drop(started);
    hall.gone().await;
    assert_eq!(threads(pids[0]), 0);
    // Also without its supervisor: then it is found by its mark.
    let (started, pids) = lone(&hall).await;
    kill(pids[1]);
    hall.gone().await;
    assert_eq!(threads(pids[0]), 0);
    assert_eq!(hall.left(), (0, 0));
    drop(started);
}

/// With neither supervisor nor mark it falls to the server. Here it can kill its supervisor, because the
/// system does not scope signals; by its number, as a stranger would.
#[tokio::test]
async fn c42_what_lost_its_supervisor_and_its_mark_falls_to_the_server_and_is_ended() {
    let hall = Hall::on(Edition::at_most(5), SHORT);
    let script = "(setsid env -i /bin/sh -c 'trap \"\" TERM HUP; (exec sleep 1000) & \
                  echo $!; echo $$; wait' &); sleep 0.2; echo $PPID; read line; kill -9 $PPID; exec sleep 1000";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pids = numbers(&mut started, 3).await;
    assert!(pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    tell(&mut started, "go on\n").await;
    hall.gone().await;
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
    // Nobody else would wait for it.
    let ended = |pid: &i32| std::fs::exists(format!("/proc/{pid}")).unwrap();
    assert!(!pids[..2].iter().any(ended), "{pids:?}");
    assert_eq!(hall.left(), (0, 0));
}

/// Which of them is the server's binary.
fn parent(pids: &[i32]) -> i32 {
    let is_ours = |pid: &&i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() != "sh" && name.trim() != "sleep"
    };
    *pids.iter().find(is_ours).expect("a supervisor")
}

fn kill(pid: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn c42_the_next_server_ends_what_was_noted_and_left() {
    let hall = Hall::new();
    let (started, pids) = hostile(&hall).await;
    // The next server comes while the supervisor of the last one cannot do anything.
    let next = hall.next_host();
    let ended = timeout(DEADLINE, next.end_leftovers())
        .await
        .unwrap()
        .unwrap();
    assert!(ended >= HOSTILE_NUMBERS, "{ended}");
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
    assert_eq!(hall.left(), (0, 0));
    drop(started);
    let again: ProcessHost = hall.next_host();
    assert_eq!(again.end_leftovers().await.unwrap(), 0);
}

#[tokio::test]
async fn c63_a_host_that_closes_ends_all_of_it_and_hurries() {
    let hall = Hall::within(Bounds {
        input: DEADLINE * 2,
        terminate: DEADLINE * 2,
        ..SHORT
    });
    let (started, pids) = hostile(&hall).await;
    timeout(DEADLINE, hall.host.close())
        .await
        .expect("it hurries");
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
    assert!(!hall.host.is_kept(session(1)));
    drop(started);
}

/// A program that is never read, and never ends, waits for nobody but itself.
#[tokio::test]
async fn a_program_that_nobody_reads_is_ended_like_every_other() {
    let hall = Hall::new();
    let script = "trap '' TERM; echo $$; while :; do echo words words words; echo more >&2; done";
    let mut started = hall.start(hall.shell(script, Access::ReadOnly)).await;
    let pid = numbers(&mut started, 1).await;
    let output = started.output;
    drop((started.hold, started.input));
    timeout(DEADLINE, hall.gone()).await.unwrap();
    all_gone(&pid).await;
    drop(output);
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_any_more_leaves_nothing() {
    let hall = Hall::new();
    let order = hall.shell("exec sleep 1000", Access::ReadOnly);
    let cut = timeout(Duration::from_millis(3), hall.try_start(order)).await;
    drop(cut);
    hall.gone().await;
    assert_eq!(hall.left(), (0, 0));
}

/// What it leaves in its folder is removed in as little room as anything else: a recursion would end the
/// server, and its next start as well.
#[tokio::test]
async fn c42_c57_a_folder_that_a_program_nests_without_end_takes_no_server_down() {
    let hall = Hall::new();
    let mut order = hall.shell("", Access::ReadOnly);
    order.program = Program::At(std::env::current_exe().unwrap());
    order.arguments = [
        "--exact",
        "ends::nests_folders_where_it_is_told_to",
        "--nocapture",
    ]
    .map(str::to_owned)
    .into();
    order.environment = vec![(NESTS.to_owned(), "1".to_owned())];
    let mut started = hall.start(order).await;
    let mut said = Vec::new();
    while let Some(line) = line(&mut started).await {
        said.push(line);
    }
    assert!(said.iter().any(|line| line == "nested"), "{said:?}");
    hall.gone().await;
    assert_eq!(hall.left(), (0, 0));
}

/// What some leave to be removed holds up nobody else: there is some to remove still when others have
/// started, ended and started again.
#[tokio::test]
async fn c60_what_some_programs_leave_holds_up_no_start_of_another() {
    const MANY: usize = 6;
    let hall = Hall::new();
    let mut leaving = Vec::new();
    let others = || (2..).take(MANY);
    for number in others() {
        let mut order = hall.shell("", Access::ReadOnly);
        order.session = session(number);
        order.program = Program::At(std::env::current_exe().unwrap());
        order.arguments = ["--exact", "ends::leaves_files_where_it_is_told_to"]
            .map(str::to_owned)
            .into();
        order.environment = vec![(LEAVES.to_owned(), "1".to_owned())];
        leaving.push(hall.start(order).await);
    }
    for left in &mut leaving {
        while line(left).await.is_some() {}
    }
    for word in ["one", "two"] {
        let mut started = hall
            .start(hall.shell(&format!("echo {word}"), Access::ReadOnly))
            .await;
        assert_eq!(line(&mut started).await.as_deref(), Some(word));
    }
    let ended = others().filter(|it| !hall.host.is_kept(session(*it)));
    assert!(ended.count() < MANY, "it waited for what others left");
    hall.host.close().await;
    assert_eq!(hall.left(), (0, 0));
}

const LEAVES: &str = "SESSIONPLANE_TEST_LEAVES";

/// Does its work only where the test above has started it.
#[test]
fn leaves_files_where_it_is_told_to() {
    if std::env::var_os(LEAVES).is_none() {
        return;
    }
    std::env::set_current_dir(std::env::var_os("TMPDIR").unwrap()).unwrap();
    for number in 0..60_000 {
        std::fs::File::create(number.to_string()).unwrap();
    }
}

const NESTS: &str = "SESSIONPLANE_TEST_NESTS";
/// Deeper than a stack goes that removes a folder within a folder by a call within a call.
const DEEP: usize = 20_000;

/// Does its work only where the test above has started it.
#[test]
fn nests_folders_where_it_is_told_to() {
    if std::env::var_os(NESTS).is_none() {
        return;
    }
    std::env::set_current_dir(std::env::var_os("TMPDIR").unwrap()).unwrap();
    for _ in 0..DEEP {
        std::fs::create_dir("d").unwrap();
        std::env::set_current_dir("d").unwrap();
    }
    println!("\nnested");
}
