//! The code of the benchmarks' schema, and a gRPC service described in Rust, so that nobody needs protoc.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    zlink_codegen::compile("schemas/bench.yaml");

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
