//! C53, C57, B48: what a program can reach is what the system's ruleset says, whichever way it tries.

use std::fs;
use std::os::unix::fs::symlink;

use sessionplane_server::adapters::boundary::Access;

use crate::hall::Hall;

/// Everything that must be out of reach, and the ways to it from the workspace.
fn laid_out() -> Hall {
    let hall = Hall::new();
    fs::write(hall.path("data/owner.token"), "secret").unwrap();
    fs::write(hall.path("other/file"), "secret").unwrap();
    fs::write(hall.path("tmp/file"), "secret").unwrap();
    fs::write(hall.path("work/file"), "ours").unwrap();
    symlink(hall.path("data"), hall.path("work/link")).unwrap();
    symlink("../other/file", hall.path("work/link-to-file")).unwrap();
    hall
}

/// Runs `sh`, which says `yes` or `no` for each command: whether it could be done.
async fn tries(hall: &Hall, commands: &[String], access: Access) -> Vec<String> {
    let tried = |command: &String| format!("if {command}; then echo yes; else echo no; fi");
    let script: Vec<String> = commands.iter().map(tried).collect();
    let script = format!("exec 2>/dev/null\n{}", script.join("\n"));
    hall.says(&script, access).await
}

async fn none(hall: &Hall, commands: &[String], access: Access) {
    let told = tries(hall, commands, access).await;
    assert_eq!(told.len(), commands.len(), "{told:?}");
    let done: Vec<_> = commands
        .iter()
        .zip(&told)
        .filter(|(_, told)| *told != "no")
        .collect();
    assert!(done.is_empty(), "{done:?}");
}

async fn each(hall: &Hall, commands: &[String], access: Access) {
    let told = tries(hall, commands, access).await;
    let refused: Vec<_> = commands
        .iter()
        .zip(&told)
        .filter(|(_, told)| *told != "yes")
        .collect();
    assert!(
        refused.is_empty() && told.len() == commands.len(),
        "{refused:?}"
    );
}

/// Without the ruleset each of them can be done: it is that which refuses them.
fn unbound(hall: &Hall, commands: &[String]) {
    for command in commands {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(hall.path("work"));
        shell.stdout(std::process::Stdio::null());
        assert!(shell.status().unwrap().success(), "{command}");
    }
}

/// Each can be done where nothing keeps it from that, in a hall of its own: it may move things away.
fn possible(commands: impl Fn(&Hall) -> Vec<String>) {
    for at in 0..commands(&laid_out()).len() {
        let hall = laid_out();
        unbound(&hall, &commands(&hall)[at..=at]);
    }
}

fn reads(paths: &[&str]) -> Vec<String> {
    paths
        .iter()
        .map(|path| format!("cat {path} > /dev/null"))
        .collect()
}

#[tokio::test]
async fn c57_b48_nothing_outside_can_be_read_whichever_way_it_is_named() {
    let hall = laid_out();
    let at = |name: &str| hall.path(name).to_str().unwrap().to_owned();
    let (token, other) = (at("data/owner.token"), at("other/file"));
    let pid = std::process::id();
    let paths = [
        &*token,
        &*other,
        "../data/owner.token",
        "../other/file",
        "./../other/../other/file",
        "link/owner.token",
        "link-to-file",
        "/etc/shadow",
        "/etc/hostname",
        "/proc/self/environ",
        &format!("/proc/{pid}/environ"),
        &format!("/proc/{pid}/root{token}"),
        &format!("/proc/{pid}/root/etc/hostname"),
        "/proc/self/cwd/../other/file",
        &format!("/proc/self/root{other}"),
        &at("tmp/file"),
    ];
    unbound(&hall, &reads(&paths));
    none(&hall, &reads(&paths), Access::Writable).await;
    let listed = [
        "..",
        "/",
        "/etc",
        "/tmp",
        "/home",
        "/proc",
        &at("data"),
        &at("tmp"),
    ];
    let listed: Vec<String> = listed
        .iter()
        .map(|path| format!("ls {path} > /dev/null"))
        .collect();
    unbound(&hall, &listed);
    none(&hall, &listed, Access::Writable).await;
}

#[tokio::test]
async fn c57_b48_nothing_outside_can_be_brought_in_by_another_name() {
    let hall = laid_out();
    let commands = |hall: &Hall| {
        let token = hall.path("data/owner.token").to_str().unwrap().to_owned();
        vec![
            format!("ln {token} mine && cat mine"),
            format!("mv {token} mine"),
            format!("ln -s {token} mine && cat mine"),
            format!("cp {token} mine"),
            "ln ../other/file hard && cat hard".to_owned(),
        ]
    };
    possible(commands);
    none(&hall, &commands(&hall), Access::Writable).await;
    assert_eq!(
        fs::read_to_string(hall.path("data/owner.token")).unwrap(),
        "secret"
    );
}

#[tokio::test]
async fn c53_nothing_outside_can_be_written_cut_or_removed() {
    let hall = laid_out();
    let commands = |hall: &Hall| {
        let other = hall.path("other");
        vec![
            format!("echo x > {}/file", other.display()),
            format!("echo x > {}/new", other.display()),
            format!("truncate -s 0 {}/file", other.display()),
            format!("rm -f {}/file", other.display()),
            format!("mkdir {}/new", other.display()),
            "echo x > ../data/new".to_owned(),
            "echo x > link/new".to_owned(),
            "echo x > ../tmp/escape".to_owned(),
            format!("mv file {}/moved", other.display()),
            format!("mv {}/file moved", other.display()),
            format!(
                "chmod 600 {}/file && echo x >> {}/file",
                other.display(),
                other.display()
            ),
        ]
    };
    possible(commands);
    none(&hall, &commands(&hall), Access::Writable).await;
    let other = hall.path("other");
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "secret");
    assert_eq!(fs::read_dir(other).unwrap().count(), 1);
}

#[tokio::test]
async fn c53_its_folder_is_as_the_boundary_says_and_it_has_a_folder_of_its_own() {
    let hall = laid_out();
    let commands = |commands: &[&str]| {
        commands
            .iter()
            .map(|it| (*it).to_owned())
            .collect::<Vec<_>>()
    };
    let reading = commands(&[
        "grep -q ours file",
        "ls > /dev/null",
        "echo x > $TMPDIR/mine",
        "test $HOME = $TMPDIR",
    ]);
    let writing = commands(&[
        "echo x > new",
        "echo x >> file",
        "rm new",
        "mkdir d",
        "mv file d/moved",
    ]);
    each(&hall, &reading, Access::ReadOnly).await;
    none(&hall, &writing, Access::ReadOnly).await;
    each(&hall, &[reading, writing].concat(), Access::Writable).await;
    assert!(hall.path("work/d/moved").exists());
}

/// The folder is the one that was opened, and what takes its path is another.
#[tokio::test]
async fn c53_b48_the_ruleset_is_of_the_folder_that_was_opened_and_not_of_its_path() {
    let hall = laid_out();
    let order = hall.shell(
        "cat file; cat ../other/file || echo refused",
        Access::ReadOnly,
    );
    fs::rename(hall.path("work"), hall.path("moved")).unwrap();
    symlink(hall.path("other"), hall.path("work")).unwrap();
    let mut started = hall.start(order).await;
    let mut said = Vec::new();
    while let Some(line) = crate::hall::line(&mut started).await {
        said.push(line);
    }
    assert_eq!(said, ["oursrefused"]);
}

#[tokio::test]
async fn c57_it_can_signal_and_look_into_no_process_outside() {
    let hall = laid_out();
    let pid = std::process::id();
    let commands = [
        format!("kill -0 {pid}"),
        "kill -0 $PPID".to_owned(),
        format!("cat /proc/{pid}/maps > /dev/null"),
        format!("readlink /proc/{pid}/cwd"),
    ];
    none(&hall, &commands, Access::Writable).await;
}

/// A process of the test's own that ends with it.
struct Victim(std::process::Child);

impl Drop for Victim {
    fn drop(&mut self) {
        drop((self.0.kill(), self.0.wait()));
    }
}

/// The system counts the descriptors that all processes of a user have sent and nobody has taken yet, and
/// lets each send until they are as many as it may have open itself: the server must have room left.
#[tokio::test]
async fn c42_c60_what_it_leaves_in_flight_leaves_the_server_room_to_start_others() {
    let own = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let own = own.maximum.unwrap_or(u64::MAX);
    let hall = laid_out();
    let said = hall
        .says("ulimit -Hn; ulimit -n 2>&1", Access::ReadOnly)
        .await;
    let [most, usual] = &said[..] else {
        panic!("{said:?}");
    };
    let (most, usual): (u64, u64) = (most.parse().unwrap(), usual.parse().unwrap());
    assert!(most <= own / 2 && usual <= most, "{said:?} of {own}");
}

/// A limit of processor time ends a process as a signal does, and Landlock knows nothing of it.
#[tokio::test]
async fn c42_c57_it_can_set_no_limit_and_no_priority_of_a_process_outside() {
    let hall = laid_out();
    let sleep = std::process::Command::new("sleep").arg("1000").spawn();
    let victim = Victim(sleep.unwrap());
    let commands = |pid: &str| {
        [
            format!("prlimit --pid {pid} --cpu=1000:1000"),
            format!("prlimit --pid {pid} --nofile=512:"),
            format!("renice -n 1 -p {pid}"),
            format!("ionice -c 3 -p {pid}"),
            format!("taskset -p 1 {pid} > /dev/null"),
            format!("chrt --batch -p 0 {pid}"),
        ]
    };
    unbound(&hall, &commands(&victim.0.id().to_string()));
    for pid in [
        &*victim.0.id().to_string(),
        "$PPID",
        &std::process::id().to_string(),
    ] {
        none(&hall, &commands(pid), Access::Writable).await;
    }
    let of_all = [format!("renice -n 1 -u {}", rustix::process::getuid())];
    none(&hall, &of_all, Access::Writable).await;
}

/// What tools do to themselves and to what they start.
#[tokio::test]
async fn c53_what_a_program_sets_of_itself_goes_on() {
    let hall = laid_out();
    let commands = [
        "ulimit -n 100",
        "prlimit --nofile=90 true",
        "nice -n 1 true",
        "ionice -c 3 true",
        "taskset 1 true",
        "chrt --batch 0 true",
        "prlimit --pid $$ --nofile > /dev/null",
        "renice -n 2 -p 0 > /dev/null",
        "git init -q made",
    ];
    each(&hall, &commands.map(str::to_owned), Access::Writable).await;
}

/// No way around the ruleset: what it would mount or make for itself is refused as well.
#[tokio::test]
async fn c57_b48_no_mount_namespace_or_device_of_its_own_leads_out() {
    let hall = laid_out();
    fs::create_dir(hall.path("work/sub")).unwrap();
    let made = [
        "mknod disk b 7 0 && rm disk",
        "mknod memory c 1 1 && rm memory",
    ]
    .map(str::to_owned);
    if rustix::process::geteuid().is_root() {
        // Nobody else may make them, whatever holds him.
        unbound(&hall, &made);
    }
    none(&hall, &made, Access::Writable).await;
    let mounts = [
        "mount --bind ../other sub && cat sub/file",
        "unshare -Urm sh -c 'mount --bind ../other sub && cat sub/file'",
        "unshare -Urm sh -c 'mount -t tmpfs none /etc'",
        "unshare -Ur chroot ../other /file",
    ]
    .map(str::to_owned);
    none(&hall, &mounts, Access::Writable).await;
}
