//! The `zlink-codegen` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(zlink_codegen::cli::main())
}
