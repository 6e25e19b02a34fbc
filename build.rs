//! Compiles `proto/` into Rust types and a descriptor set, without `protoc`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

const ROOT: &str = "proto";
const PUBLIC: &str = "proto/sessionplane/v1";
const STORED: &str = "proto/sessionplane/store/v1";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let public = protox::compile(protos(PUBLIC)?, [ROOT])?;
    fs::write(
        out.join("sessionplane.bin"),
        protox::prost_reflect::prost::Message::encode_to_vec(&served(&public)),
    )?;
    tonic_prost_build::configure().compile_fds(public)?;

    if env::var_os("CARGO_FEATURE_STORE").is_some() {
        let stored = protox::compile(protos(STORED)?, [ROOT])?;
        tonic_prost_build::configure()
            .build_client(false)
            .build_server(false)
            // Equal records are equal bytes.
            .btree_map(".")
            .compile_fds(stored)?;
    }
    Ok(())
}

/// The descriptor set as it is served: without comments, which reflection never shows.
fn served(
    set: &protox::prost_reflect::prost_types::FileDescriptorSet,
) -> protox::prost_reflect::prost_types::FileDescriptorSet {
    let mut set = set.clone();
    for file in &mut set.file {
        file.source_code_info = None;
    }
    set
}

/// The proto files of one package in name order; Cargo is told to watch them.
fn protos(directory: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={directory}");
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(directory))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "proto")
        {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
