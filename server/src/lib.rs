//! The Sessionplane server: application layer, adapters and gRPC face.
