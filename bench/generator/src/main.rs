//! Generators side by side: for so many services of five methods, how long generation takes, how many lines come out, and
//! how long `cargo check` of them takes.
//!
//! `zlink-bench-generator DIR [SERVICES...]` works in DIR; without numbers it takes 10, 100 and 500 services. Both get the
//! same thing to say: a request and a reply per method, of five fields each. tonic gets it as a descriptor, so that nobody
//! needs protoc, and its parsing is not counted; the schema of zlink is read and parsed.

mod input;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Anything that ends a measurement.
type Failure = Box<dyn std::error::Error>;

/// Generations of one size; the median counts.
const ROUNDS: usize = 5;
/// After so long no other begins: what takes minutes is known well enough by then.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("usage: zlink-bench-generator DIR [SERVICES...]")?);
    std::fs::create_dir_all(&dir)?;
    let dir = dir.canonicalize()?;
    let mut sizes: Vec<usize> = arguments.map(|size| size.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![10, 100, 500];
    }
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../zlink-runtime");
    let zlink = Package::new(&dir, "of-zlink", &format!("zlink-runtime = {{ path = {runtime:?} }}\n"))?;
    let tonic = Package::new(
        &dir,
        "of-tonic",
        "prost = \"0.14.6\"\ntonic-prost = \"0.14.9\"\n\
         tonic = { version = \"0.14.9\", default-features = false, features = [\"codegen\", \"router\", \"transport\"] }\n",
    )?;
    println!(
        "| services × 5 methods | generator | generation ms | lines | cargo check s | ÷ tonic, generation | ÷ tonic, check |"
    );
    println!("|---:|---|---:|---:|---:|---:|---:|");
    for size in sizes {
        let theirs = tonic.measure(|out| generate_tonic(size, out))?;
        let ours = zlink.measure(|out| generate_zlink(size, &dir, out))?;
        theirs.print(size, "tonic-prost-build", None);
        ours.print(size, "zlink-codegen", Some(&theirs));
    }
    Ok(())
}

fn generate_zlink(size: usize, dir: &Path, out: &Path) -> Result<(), Failure> {
    let schema = dir.join("api.yaml");
    std::fs::write(&schema, input::schema(size))?;
    let schema = zlink_codegen::load(&schema).map_err(|findings| findings.to_string())?;
    let code = zlink_codegen::backend::rust::include(&schema, &Default::default())?;
    Ok(std::fs::write(out, code)?)
}

fn generate_tonic(size: usize, out: &Path) -> Result<(), Failure> {
    let folder = out.parent().ok_or("a file has a folder")?;
    let builder = tonic_prost_build::configure().emit_rerun_if_changed(false).out_dir(folder);
    builder.compile_fds(input::descriptor(size))?;
    Ok(std::fs::rename(folder.join("api.rs"), out)?)
}

/// A package that holds what one generator writes.
struct Package {
    dir: PathBuf,
}

/// What was measured of one size.
struct Measured {
    generation: Duration,
    lines: usize,
    check: Duration,
}

impl Package {
    fn new(dir: &Path, name: &str, dependencies: &str) -> Result<Self, Failure> {
        let dir = dir.join(name);
        std::fs::create_dir_all(dir.join("src"))?;
        let manifest = format!(
            "[workspace]\n\n[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{dependencies}"
        );
        std::fs::write(dir.join("Cargo.toml"), manifest)?;
        Ok(Self { dir })
    }

    fn measure(&self, generate: impl Fn(&Path) -> Result<(), Failure>) -> Result<Measured, Failure> {
        let out = self.dir.join("src/generated.rs");
        let mut times: Vec<Duration> = Vec::new();
        while times.len() < ROUNDS && times.iter().sum::<Duration>() < PATIENCE {
            let start = Instant::now();
            generate(&out)?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let lines = std::fs::read_to_string(&out)?.lines().count();
        // First without the code, so that the dependencies are there and not counted.
        let lib = self.dir.join("src/lib.rs");
        std::fs::write(&lib, "")?;
        self.check()?;
        std::fs::write(&lib, "#![allow(warnings)]\ninclude!(\"generated.rs\");\n")?;
        let check = self.check()?;
        Ok(Measured { generation: times[times.len() / 2], lines, check })
    }

    fn check(&self) -> Result<Duration, Failure> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["check", "--quiet"]).current_dir(&self.dir);
        cargo.env("CARGO_TARGET_DIR", self.dir.join("target")).env("CARGO_INCREMENTAL", "0");
        let start = Instant::now();
        let status = cargo.status()?;
        let took = start.elapsed();
        if status.success() { Ok(took) } else { Err(format!("cargo check fails in {}", self.dir.display()).into()) }
    }
}

impl Measured {
    fn print(&self, size: usize, name: &str, reference: Option<&Measured>) {
        let ratio = |of: fn(&Measured) -> Duration| match reference {
            Some(reference) => format!("{:.3}", of(self).as_secs_f64() / of(reference).as_secs_f64()),
            None => "–".to_owned(),
        };
        println!(
            "| {size} | {name} | {:.0} | {} | {:.1} | {} | {} |",
            self.generation.as_secs_f64() * 1e3,
            self.lines,
            self.check.as_secs_f64(),
            ratio(|it| it.generation),
            ratio(|it| it.check),
        );
    }
}
