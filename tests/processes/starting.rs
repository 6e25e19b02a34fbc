//! How a program starts: alone, with what it was given and nothing else.

use std::fs;

use sessionplane_server::adapters::boundary::{Access, Boundary};
use sessionplane_server::adapters::process_host::{Edition, HostError, Program, Reach};

use crate::hall::{Hall, SHORT, line, session, tell};

#[tokio::test]
async fn c57_a_program_gets_its_streams_and_an_environment_of_its_own_and_nothing_of_the_servers() {
    let hall = Hall::new();
    let script = "env | sort | cut -d= -f1; echo --; ls /proc/self/fd 2>/dev/null; echo fds; \
                  pwd; ulimit -c; cat";
    let mut order = hall.shell(script, Access::ReadOnly);
    order.reads = vec!["/proc".into()];
    order.environment = vec![("GIVEN".to_owned(), "1".to_owned())];
    let mut started = hall.start(order).await;
    let mut names = Vec::new();
    loop {
        match line(&mut started).await.unwrap() {
            end if end == "--" => break,
            name => names.push(name),
        }
    }
    let expected = [
        "GIVEN",
        "HOME",
        "LANG",
        "PATH",
        "PWD",
        "SESSIONPLANE_PROCESS",
        "TMPDIR",
    ];
    assert_eq!(names, expected);
    let mut open = Vec::new();
    loop {
        match line(&mut started).await.unwrap() {
            end if end == "fds" => break,
            number => open.push(number),
        }
    }
    // The fourth is the listing's own.
    assert_eq!(open, ["0", "1", "2", "3"]);
    let folder = fs::canonicalize(hall.path("work")).unwrap();
    assert_eq!(line(&mut started).await.unwrap(), folder.to_str().unwrap());
    assert_eq!(line(&mut started).await.unwrap(), "0", "no dumps");
    tell(&mut started, "back\n").await;
    assert_eq!(line(&mut started).await.unwrap(), "back");
}

#[tokio::test]
async fn a_program_has_a_process_group_and_a_session_of_its_own() {
    let hall = Hall::new();
    let script = "read line < /proc/$$/stat; echo $$ $line; cat";
    let mut order = hall.shell(script, Access::ReadOnly);
    order.reads = vec!["/proc".into()];
    let mut started = hall.start(order).await;
    let said = line(&mut started).await.unwrap();
    let words: Vec<&str> = said.split(' ').collect();
    let (pid, group, session) = (words[0], words[5], words[6]);
    assert_eq!((group, session), (pid, pid), "{said}");
}

#[tokio::test]
async fn c53_what_the_system_reaches_is_told_and_is_what_it_said_before() {
    let hall = Hall::new();
    let started = hall.start(hall.shell("cat", Access::ReadOnly)).await;
    assert_eq!(started.reach, hall.host.reach());
    assert_ne!(started.reach, Reach::Nothing, "this suite needs Landlock");
}

/// A system that is older than what is asked for: what it has is used, told, and no more is claimed.
#[tokio::test]
async fn c53_c57_an_older_system_holds_as_much_as_it_says() {
    for (edition, reach) in [
        (Edition::NONE, Reach::Nothing),
        (Edition::at_most(1), Reach::Nothing),
        (Edition::at_most(2), Reach::Nothing),
        (Edition::at_most(3), Reach::Files),
        (Edition::at_most(5), Reach::Files),
    ] {
        let hall = Hall::on(edition, SHORT);
        fs::write(hall.path("other/file"), "outside").unwrap();
        assert_eq!(hall.host.reach(), reach, "{edition:?}");
        let reads = "read line < ../other/file && echo $line; echo x > ../other/new; \
                     true > ../other/file; echo end";
        let mut order = hall.shell(reads, Access::Writable);
        order.require_ruleset = reach.holds_files();
        let mut started = hall.start(order).await;
        assert_eq!(started.reach, reach, "{edition:?}");
        let mut said = Vec::new();
        while let Some(line) = line(&mut started).await {
            said.push(line);
        }
        let left = fs::read_to_string(hall.path("other/file")).unwrap();
        if reach.holds_files() {
            assert_eq!((said, &*left), (vec!["end".to_owned()], "outside"));
        } else {
            // Where it does not hold, it is not required: see below. Nothing at all holds nothing.
            assert_eq!(said.last().map(String::as_str), Some("end"));
            assert_eq!(left.is_empty(), edition == Edition::NONE, "{edition:?}");
        }
        drop(started);
        hall.gone().await;
        let mut required = hall.shell("true", Access::Writable);
        required.require_ruleset = true;
        match hall.try_start(required).await {
            Ok(_) => assert!(reach.holds_files(), "{edition:?}"),
            Err(error) => {
                assert!(!reach.holds_files(), "{error}");
                assert!(error.to_string().contains("not started without"), "{error}");
            }
        }
        hall.gone().await;
        assert_eq!(hall.left(), (0, 0));
    }
}

/// Without it a ruleset is no promise: a program could end what holds it in.
#[tokio::test]
async fn c53_c57_a_system_without_filters_of_calls_claims_nothing_and_may_be_refused() {
    let hall = Hall::unfiltered();
    assert_eq!(hall.host.reach(), Reach::Nothing);
    let mut order = hall.shell("cat", Access::ReadOnly);
    order.require_ruleset = false;
    let started = hall.start(order).await;
    assert_eq!(started.reach, Reach::Nothing);
    drop(started);
    hall.gone().await;
    let required = hall.try_start(hall.shell("cat", Access::ReadOnly)).await;
    let error = required.unwrap_err().to_string();
    assert!(error.contains("no filters of calls"), "{error}");
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_is_told_and_leaves_nothing() {
    let hall = Hall::new();
    let mut order = hall.shell("", Access::ReadOnly);
    order.program = Program::At(hall.path("work/none"));
    let error = hall.try_start(order).await.unwrap_err().to_string();
    assert!(error.contains("cannot be executed"), "{error}");
    hall.gone().await;
    assert_eq!(hall.left(), (0, 0));
}

#[tokio::test]
async fn what_is_too_much_to_be_handed_over_is_refused() {
    let hall = Hall::new();
    let order = hall.shell(&"x".repeat(70_000), Access::ReadOnly);
    let error = hall.try_start(order).await.unwrap_err().to_string();
    assert!(error.contains("at most 65536"), "{error}");
    hall.gone().await;
    assert_eq!(hall.left(), (0, 0));
}

/// C57: no ruleset can take the data directory out of a folder that holds it.
#[tokio::test]
async fn c57_a_folder_that_holds_the_data_directory_or_lies_in_it_is_refused() {
    let hall = Hall::new();
    let inside = hall.path("data/inside");
    fs::create_dir(&inside).unwrap();
    for folder in [hall.dir.path().to_owned(), hall.path("data"), inside] {
        let mut order = hall.shell("true", Access::ReadOnly);
        order.folder = Boundary::open(&folder, Access::ReadOnly).unwrap();
        let error = hall.try_start(order).await.unwrap_err();
        assert!(matches!(error, HostError::Reaches { .. }), "{error}");
    }
    let mut order = hall.shell("true", Access::ReadOnly);
    order.reads = vec![hall.dir.path().to_owned()];
    let error = hall.try_start(order).await.unwrap_err();
    assert!(matches!(error, HostError::Reaches { .. }), "{error}");
    assert!(!hall.host.is_kept(session(1)));
}

/// C42: it must be found before it can do anything.
#[tokio::test]
async fn c42_a_program_is_noted_durably_when_it_runs_and_not_once_it_is_gone() {
    let hall = Hall::new();
    let started = hall.start(hall.shell("cat", Access::ReadOnly)).await;
    assert_eq!(hall.left(), (1, 1));
    let entry = fs::read_dir(hall.path("data/processes")).unwrap().next();
    let note = fs::read_to_string(entry.unwrap().unwrap().path()).unwrap();
    assert!(note.contains(&session(1).to_string()), "{note}");
    drop(started);
    hall.gone().await;
    assert_eq!(hall.left(), (0, 0));
}
