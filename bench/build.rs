//! The code of the benchmarks' schema, and a gRPC service described in Rust, so that nobody needs protoc.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=schemas/bench.yaml");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let schema = match zlink_codegen::load("schemas/bench.yaml") {
        Ok(schema) => schema,
        Err(_) => panic!("schemas/bench.yaml has mistakes"),
    };
    let text = zlink_codegen::backend::rust::include(&schema, &Default::default()).expect("generated code");
    std::fs::write(out.join("bench.rs"), text).expect("write to OUT_DIR");

    let call = tonic_build::manual::Method::builder()
        .name("call")
        .route_name("Call")
        .input_type("crate::remote::grpc::Blob")
        .output_type("crate::remote::grpc::Blob")
        .codec_path("tonic_prost::ProstCodec")
        .build();
    let echo = tonic_build::manual::Service::builder().name("Echo").package("echo").method(call).build();
    tonic_build::manual::Builder::new().compile(&[echo]);
}
