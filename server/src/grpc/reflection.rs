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

/// Largest question, in bytes: the name of a symbol or a file. Configuration may let anybody ask.
const MAX_QUESTION_BYTES: usize = 64 * 1024;

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
        // Each tells of the other: a tool calls only what it finds listed.
        let v1 = builder()
            .register_encoded_file_descriptor_set(
                tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
            )
            .build_v1()?;
        let v1alpha = builder()
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
            .build_v1alpha()?;
        Ok(Self {
            v1: Service::new(v1.max_decoding_message_size(MAX_QUESTION_BYTES)),
            v1alpha: Service::new(v1alpha.max_decoding_message_size(MAX_QUESTION_BYTES)),
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
