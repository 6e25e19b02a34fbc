//! Server reflection, in the version of today and the one that older tools ask for.
//!
//! What must never enter: a private package.

use super::reading::TimelyBody;
use http::{Request, Response};
use sessionplane::FILE_DESCRIPTOR_SET;
use std::convert::Infallible;
use tonic::body::Body;
use tonic_reflection::server::{Builder, Error};
use tower::util::BoxCloneSyncService;

/// A service of which only its calls are known.
type Service = BoxCloneSyncService<Request<TimelyBody>, Response<Body>, Infallible>;

/// Both versions.
#[derive(Clone)]
pub(crate) struct Reflection {
    /// `grpc.reflection.v1`.
    pub(crate) v1: Service,
    /// `grpc.reflection.v1alpha`.
    pub(crate) v1alpha: Service,
}

impl Reflection {
    /// Serves the public package, health, and itself.
    ///
    /// # Errors
    /// When the descriptors that were compiled in cannot be read.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            v1: Service::new(builder().build_v1()?),
            v1alpha: Service::new(builder().build_v1alpha()?),
        })
    }
}

fn builder() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // So that grpcurl can print the details of a refusal.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}
