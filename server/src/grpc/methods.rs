//! What the descriptors say of the methods, so that nothing here says it again by hand.
//!
//! What must never enter: what a method does.

use std::collections::HashSet;

use prost::{DecodeError, Message as _};
use prost_types::FileDescriptorSet;
use sessionplane::FILE_DESCRIPTOR_SET;

/// The methods whose response is a stream.
pub(crate) struct Streaming(HashSet<String>);

impl Streaming {
    /// Reads the descriptors of everything that is served.
    ///
    /// # Errors
    /// When the descriptors that were compiled in cannot be read.
    pub(crate) fn read() -> Result<Self, DecodeError> {
        let mut streaming = HashSet::new();
        for encoded in [
            FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ] {
            let set = FileDescriptorSet::decode(encoded)?;
            for file in &set.file {
                for service in &file.service {
                    let streams = service.method.iter().filter(|one| one.server_streaming());
                    let (package, service) = (file.package(), service.name());
                    streaming.extend(
                        streams.map(|method| format!("/{package}.{service}/{}", method.name())),
                    );
                }
            }
        }
        Ok(Self(streaming))
    }

    /// Whether the response of the method at this path may go on for long.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_of_all_services_are_known_and_nothing_else() {
        let mut streaming: Vec<_> = Streaming::read().unwrap().0.into_iter().collect();
        streaming.sort();
        assert_eq!(
            streaming,
            [
                "/grpc.health.v1.Health/Watch",
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                "/sessionplane.v1.Audit/WatchAudit",
                "/sessionplane.v1.Fleet/WatchSessions",
                "/sessionplane.v1.Invoke/Invoke",
                "/sessionplane.v1.SessionControl/Events",
            ]
        );
    }
}
