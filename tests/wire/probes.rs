//! The second listener: health for whoever asks, and nothing else for anybody.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use sessionplane_server::grpc::listener::Address;
use sessionplane_server::grpc::server::Config;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::Code;

use crate::contract::methods;
use crate::doors::health;
use crate::server::{Caller, Running, soon};

/// More connections than the listener holds.
const A_CROWD: usize = 80;

fn probes(server: &Running) -> Address {
    let Some(Address::Tcp(address)) = &server.probes else {
        panic!("it answers probes over TCP");
    };
    assert!(address.ip().is_unspecified(), "open to others: {address}");
    Address::Tcp(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()))
}

#[tokio::test]
async fn c54_a_listener_for_probes_answers_health_to_all_and_nothing_else_to_anybody() {
    let server = Running::probed(Config::default()).await;
    let address = probes(&server);
    let stranger = Caller::to(&address).await;
    for service in ["", "sessionplane.v1.Invoke", "liveness"] {
        assert_eq!(health(&stranger, service).await, 1, "{service:?}");
    }
    let owner = stranger.header("authorization", &format!("Bearer {}", server.token));
    let mut paths = methods();
    paths.push("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo".to_owned());
    for path in paths {
        let status = owner.call(&path, &[]).await.status().await;
        assert_eq!(status.code(), Code::Unimplemented, "{path}");
    }
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn c63_probes_hear_that_a_server_stops_while_it_still_takes_calls() {
    let mut server = Running::probed(Config {
        lame_duck: Duration::from_secs(30),
        ..Config::default()
    })
    .await;
    let stranger = Caller::to(&probes(&server)).await;
    assert_eq!(health(&stranger, "").await, 1, "serving");
    server.stop();
    let heard = async {
        while health(&stranger, "").await == 1 {
            tokio::task::yield_now().await;
        }
    };
    soon(heard).await;
    assert_eq!(health(&stranger, "").await, 2, "not serving");
    assert_eq!(health(&stranger, "liveness").await, 1, "yet it runs");
}

#[tokio::test]
async fn c63_a_probe_that_stays_connected_does_not_delay_a_stop() {
    let mut server = Running::probed(Config::default()).await;
    let address = probes(&server);
    let (stranger, silent) = (Caller::to(&address).await, connect(&address).await);
    assert_eq!(health(&stranger, "").await, 1);
    server.stop();
    server.stopped().await;
    assert!(closed(silent).await, "its connections ended with it");
}

#[tokio::test]
async fn c60_a_crowd_of_silent_probes_leaves_room_for_the_next() {
    let server = Running::probed(Config::default()).await;
    let address = probes(&server);
    let mut crowd = Vec::new();
    for _ in 0..A_CROWD {
        crowd.push(connect(&address).await);
    }
    let stranger = Caller::to(&address).await;
    assert_eq!(health(&stranger, "").await, 1);
    let oldest = crowd.swap_remove(0);
    assert!(closed(oldest).await, "the oldest made room");
}

async fn connect(address: &Address) -> TcpStream {
    let Address::Tcp(address) = address else {
        panic!("only over TCP");
    };
    TcpStream::connect(address).await.unwrap()
}

/// Whether the other side ends the connection, after what it had said.
async fn closed(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    match soon(stream.read_to_end(&mut rest)).await {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}
