//! The same services for both generators.
//!
//! It must not know what becomes of them.

use std::fmt::Write as _;

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
    ServiceDescriptorProto,
};

const METHODS: usize = 5;

/// Service and method of every exchange.
fn exchanges(services: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..services).flat_map(|service| (0..METHODS).map(move |method| (service, method)))
}

/// A schema of zlink.
pub fn schema(services: usize) -> String {
    let mut text = String::from("zlink: 1\nnamespace: api\nversion: 1\nmessages:\n");
    text.push_str("  Header: { fields: { trace: { id: 0, type: u64 }, tenant: { id: 1, type: string } } }\n");
    for (service, method) in exchanges(services) {
        for kind in ["Request", "Reply"] {
            let fields = "header: { id: 0, type: Header }, id: { id: 1, type: u64 }, name: { id: 2, type: string }, \
                          amount: { id: 3, type: f64 }, tags: { id: 4, type: list<u32> }";
            let _ = writeln!(text, "  Service{service}Method{method}{kind}: {{ fields: {{ {fields} }} }}");
        }
    }
    text.push_str("services:\n");
    for service in 0..services {
        let _ = writeln!(text, "  service{service}:\n    methods:");
        for method in 0..METHODS {
            let message = format!("Service{service}Method{method}");
            let _ = writeln!(text, "      method{method}: {{ request: {message}Request, reply: {message}Reply }}");
        }
    }
    text
}

/// What protoc would tell tonic of the same.
pub fn descriptor(services: usize) -> FileDescriptorSet {
    let header = message("Header".to_owned(), vec![field("trace", 1, Type::Uint64), field("tenant", 2, Type::String)]);
    let messages = exchanges(services).flat_map(|(service, method)| {
        ["Request", "Reply"].map(|kind| {
            let header =
                FieldDescriptorProto { type_name: Some(".api.Header".to_owned()), ..field("header", 1, Type::Message) };
            let tags = FieldDescriptorProto { label: Some(Label::Repeated.into()), ..field("tags", 5, Type::Uint32) };
            let fields = vec![
                header,
                field("id", 2, Type::Uint64),
                field("name", 3, Type::String),
                field("amount", 4, Type::Double),
                tags,
            ];
            message(format!("Service{service}Method{method}{kind}"), fields)
        })
    });
    let file = FileDescriptorProto {
        name: Some("api.proto".to_owned()),
        package: Some("api".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: std::iter::once(header).chain(messages).collect(),
        service: (0..services).map(service).collect(),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }
}

fn message(name: String, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name), field, ..DescriptorProto::default() }
}

fn field(name: &str, number: i32, ty: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(ty.into()),
        ..FieldDescriptorProto::default()
    }
}

fn service(service: usize) -> ServiceDescriptorProto {
    let method = |method| MethodDescriptorProto {
        name: Some(format!("Method{method}")),
        input_type: Some(format!(".api.Service{service}Method{method}Request")),
        output_type: Some(format!(".api.Service{service}Method{method}Reply")),
        ..MethodDescriptorProto::default()
    };
    ServiceDescriptorProto {
        name: Some(format!("Service{service}")),
        method: (0..METHODS).map(method).collect(),
        ..ServiceDescriptorProto::default()
    }
}
