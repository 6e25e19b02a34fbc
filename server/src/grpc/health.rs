//! `grpc.health.v1`: whether the server takes calls, per service, for whoever asks.
//!
//! What must never enter: a caller's identity.

use sessionplane::v1 as wire;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

/// Says only that the process runs, so that a drain is not mistaken for a death.
const LIVENESS: &str = "liveness";

/// Largest question, in bytes: the name of a service. Anybody may ask, so that nobody's memory is
/// taken with long ones.
pub(crate) const MAX_QUESTION_BYTES: usize = 1024;

/// What readiness is told of: the server as a whole, and each service.
const READINESS: [&str; 5] = [
    "",
    wire::invoke_server::SERVICE_NAME,
    wire::session_control_server::SERVICE_NAME,
    wire::fleet_server::SERVICE_NAME,
    wire::audit_server::SERVICE_NAME,
];

/// Tells the state of the server. Clones tell the same state.
#[derive(Clone)]
pub(crate) struct Health(HealthReporter);

impl Health {
    /// A server that takes calls.
    pub(crate) async fn serving() -> Self {
        let health = Self(HealthReporter::new());
        health
            .0
            .set_service_status(LIVENESS, ServingStatus::Serving)
            .await;
        health.tell(ServingStatus::Serving).await;
        health
    }

    /// The server is about to stop: send it nothing new.
    pub(crate) async fn stopping(&self) {
        self.tell(ServingStatus::NotServing).await;
    }

    /// The service that answers whoever asks.
    pub(crate) fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService::from_health_reporter(self.0.clone()))
            .max_decoding_message_size(MAX_QUESTION_BYTES)
    }

    async fn tell(&self, status: ServingStatus) {
        for service in READINESS {
            self.0.set_service_status(service, status).await;
        }
    }
}
