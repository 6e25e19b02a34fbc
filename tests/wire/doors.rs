//! Who gets in, and where: the owner token, health, reflection, addresses and unix sockets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use sessionplane::v1 as wire;
use sessionplane_server::grpc::listener::{Address, BindError, Listener};
use sessionplane_server::grpc::server::Config;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::contract::methods;
use crate::server::{Caller, Running, soon, told};

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// Both versions have the same messages.
const REFLECTION: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// The health of a service, by number.
pub(crate) async fn health(caller: &Caller, service: &str) -> i32 {
    let request = HealthCheckRequest {
        service: service.into(),
    };
    caller
        .ask(HEALTH, &request)
        .await
        .ok::<HealthCheckResponse>()
        .await
        .status
}

fn list_services() -> ServerReflectionRequest {
    let message_request = Some(MessageRequest::ListServices(String::new()));
    ServerReflectionRequest {
        host: String::new(),
        message_request,
    }
}

async fn get_state(caller: &Caller) -> Code {
    let name = wire::session_ref::Ref::Name("a".into());
    let session = Some(wire::SessionRef { r#ref: Some(name) });
    let request = wire::GetStateRequest {
        session,
        min_position: None,
    };
    caller.ask(GET_STATE, &request).await.status().await.code()
}

#[tokio::test]
async fn c54_every_call_but_health_is_refused_without_the_token() {
    let server = Running::start().await;
    let stranger = server.stranger().await;
    let wrong = stranger.header("authorization", "Bearer sp_00000000_wrong");
    let mut paths = methods();
    paths.extend(REFLECTION.map(ToOwned::to_owned));
    paths.push("/no.such.Service/Method".to_owned());
    for path in paths {
        for caller in [&stranger, &wrong] {
            let status = caller.call(&path, &[]).await.status().await;
            assert_eq!(status.code(), Code::Unauthenticated, "{path}");
            assert_eq!(
                told(&status),
                ("UNAUTHENTICATED".to_owned(), "refused".to_owned())
            );
            assert!(
                status.message().contains("owner.token"),
                "{}",
                status.message()
            );
        }
    }
    assert!(!server.fake.was_asked());
    assert_eq!(health(&stranger, "").await, 1);
}

#[tokio::test]
async fn c62_health_tells_of_each_service_and_of_the_process() {
    let server = Running::start().await;
    let stranger = server.stranger().await;
    for service in [
        "",
        "sessionplane.v1.Invoke",
        "sessionplane.v1.SessionControl",
        "liveness",
    ] {
        assert_eq!(
            health(&stranger, service).await,
            1,
            "{service:?} is serving"
        );
    }
    let request = HealthCheckRequest {
        service: "unknown".into(),
    };
    let status = stranger.ask(HEALTH, &request).await.status().await;
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test]
async fn c54_who_needs_no_token_cannot_send_much() {
    let server = Running::with(Config {
        open_reflection: true,
        ..Config::default()
    })
    .await;
    let stranger = server.stranger().await;
    let question = HealthCheckRequest {
        service: "s".repeat(2 * 1024),
    };
    for path in [HEALTH, "/grpc.health.v1.Health/Watch"] {
        let status = stranger.ask(path, &question).await.status().await;
        assert_eq!(status.code(), Code::OutOfRange, "{path}: {status:?}");
    }
    let mut question = list_services();
    question.host = "h".repeat(128 * 1024);
    for path in REFLECTION {
        let mut answer = stranger.ask(path, &question).await;
        assert_eq!(answer.next().await, None, "{path}");
    }
}

#[tokio::test]
async fn c62_reflection_lists_the_public_services_in_both_versions() {
    let server = Running::start().await;
    let caller = server.owner().await;
    for path in REFLECTION {
        let mut answer = caller.ask(path, &list_services()).await;
        let answer = answer.message::<ServerReflectionResponse>().await;
        let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
            panic!("{answer:?}");
        };
        let names: Vec<_> = list
            .service
            .into_iter()
            .map(|service| service.name)
            .collect();
        for public in [
            "sessionplane.v1.Invoke",
            "sessionplane.v1.SessionControl",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        ] {
            assert!(names.iter().any(|name| name == public), "{path}: {names:?}");
        }
        assert!(
            !names.iter().any(|name| name.contains("store")),
            "{names:?}"
        );
    }
}

#[tokio::test]
async fn c54_reflection_may_be_opened_by_configuration_and_nothing_else_with_it() {
    let server = Running::with(Config {
        open_reflection: true,
        ..Config::default()
    })
    .await;
    let stranger = server.stranger().await;
    for path in REFLECTION {
        let mut answer = stranger.ask(path, &list_services()).await;
        let answer = answer.message::<ServerReflectionResponse>().await;
        assert!(answer.message_response.is_some());
    }
    let mut paths = methods();
    paths.push("/no.such.Service/Method".to_owned());
    for path in paths {
        let status = stranger.call(&path, &[]).await.status().await;
        assert_eq!(status.code(), Code::Unauthenticated, "{path}");
    }
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn c54_an_address_that_others_could_reach_is_refused_with_a_way_out() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:50051"] {
        let error = Listener::bind(&address.parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, BindError::NotLoopback(_)), "{error}");
        let told = error.to_string();
        assert!(
            told.contains("127.0.0.1:") && told.contains("unix:"),
            "{told}"
        );
    }
}

#[test]
fn addresses_read_back_as_they_print() {
    for text in ["127.0.0.1:50051", "[::1]:50051", "unix:/run/sessiond.sock"] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
    assert_eq!(
        "localhost:7".parse::<Address>().unwrap().to_string(),
        "127.0.0.1:7"
    );
    for text in ["", "50051", "unix:", "example.org:1", "127.0.0.1"] {
        assert!(text.parse::<Address>().is_err(), "{text:?}");
    }
}

/// A directory and a socket's path in it.
fn socket() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    (directory, path)
}

#[tokio::test]
async fn a_unix_socket_is_private_asks_for_the_token_and_leaves_nothing_behind() {
    let (directory, path) = socket();
    let address = Address::Unix(path.clone());
    let mut server = Running::at(&address, directory, Config::default()).await;
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(get_state(&server.owner().await).await, Code::Ok);
    assert_eq!(
        get_state(&server.stranger().await).await,
        Code::Unauthenticated
    );
    server.stop();
    let directory = tempfile::tempdir().unwrap();
    let kept = std::mem::replace(&mut server.directory, directory);
    server.stopped().await;
    assert!(!path.exists());
    let left = fs::read_dir(kept.path()).unwrap().count();
    assert_eq!(left, 1, "only the token is left");
}

#[tokio::test]
async fn a_socket_that_a_dead_server_left_is_replaced_and_a_live_one_is_not() {
    let (_directory, path) = socket();
    let address = Address::Unix(path.clone());
    drop(StdListener::bind(&path).unwrap());
    assert!(path.exists(), "a dead server's socket stays");
    let listener = Listener::bind(&address).await.unwrap();
    let error = Listener::bind(&address).await.unwrap_err();
    assert!(matches!(error, BindError::InUse(_)), "{error}");
    assert!(path.exists(), "the loser left the winner's socket alone");
    drop(listener);
    assert!(!path.exists());
}

#[tokio::test]
async fn of_two_starts_on_a_dead_socket_the_second_looks_when_the_first_is_done() {
    let (directory, path) = socket();
    drop(StdListener::bind(&path).unwrap());
    // The first one looks.
    let first = fs::File::open(directory.path()).unwrap();
    flock(&first, FlockOperation::LockExclusive).unwrap();
    let address = Address::Unix(path.clone());
    let second = tokio::spawn(async move { Listener::bind(&address).await.map(drop) });
    tokio::task::yield_now().await;
    assert!(!second.is_finished(), "it waits");
    fs::remove_file(&path).unwrap();
    let _live = StdListener::bind(&path).unwrap();
    flock(&first, FlockOperation::Unlock).unwrap();
    let error = soon(second).await.unwrap().unwrap_err();
    assert!(matches!(error, BindError::InUse(_)), "{error}");
}

#[tokio::test]
async fn a_path_that_is_too_long_for_a_socket_is_refused_with_its_limit() {
    let (directory, _path) = socket();
    let free = 99 - directory.path().as_os_str().len() - 1;
    let fits = directory.path().join("s".repeat(free));
    Listener::bind(&Address::Unix(fits.clone())).await.unwrap();
    let mut long = fits.into_os_string();
    long.push("s");
    let error = Listener::bind(&Address::Unix(long.into())).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("has 100 bytes") && error.contains("99 at most"),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_never_removed() {
    let (_directory, path) = socket();
    fs::write(&path, "precious").unwrap();
    let error = Listener::bind(&Address::Unix(path.clone()))
        .await
        .unwrap_err();
    assert!(matches!(error, BindError::NotASocket(_)), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}
